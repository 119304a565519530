"""What stops searches and samplers: the clock, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from isthmus import watch as interrupts
from isthmus.errors import AbortedError
from isthmus.watch import Ending, Progress, Watch, drive


class _Thing:
    pass


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def press_in_a_callback() -> None:
    """Press Ctrl-C where Python ignores the exception."""
    thing = _Thing()
    reference = weakref.ref(thing, lambda _: press())
    del thing
    assert reference() is None


class _Result(NamedTuple):
    converged: bool = True
    gap: float | None = None
    conclusion: str = "five steps were done."


class _FiveSteps:
    def __init__(self, action: Callable[[], None], at: int = 2) -> None:
        self.steps, self._action, self._at = 0, action, at

    def __call__(self, watch: Watch) -> _Result:
        with watch.until_stopped():
            while self.steps < 5:
                self.steps += 1
                if self.steps == self._at:
                    self._action()
                if self.steps < 5:
                    watch.poll("counting", 0.0)
        return _Result()


@pytest.fixture(autouse=True)
def handler() -> Iterator[Any]:
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    left = signal.signal(signal.SIGINT, old)
    assert left is signal.default_int_handler


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("action", [press, press_in_a_callback])
@pytest.mark.parametrize("at", [2, 5])
def test_ctrl_c_ends_the_run_even_if_its_exception_is_ignored(
    action: Callable[[], None], at: int
) -> None:
    run = _FiveSteps(action, at)
    _, status = drive(run, "run")
    assert status.ending is Ending.INTERRUPTED
    assert run.steps == at


def test_a_keyboard_interrupt_of_the_run_itself_ends_it() -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    run = _FiveSteps(fail)
    assert drive(run, "run")[1].ending is Ending.INTERRUPTED
    assert run.steps == 2


def test_a_handler_of_the_user_decides_whether_ctrl_c_ends_the_run() -> None:
    pressed: list[int] = []
    old = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        run = _FiveSteps(press)
        assert drive(run, "run")[1].ending is Ending.CONVERGED
        assert run.steps == 5
        assert pressed == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, old)


def test_a_run_in_another_thread_changes_no_handler() -> None:
    endings: list[Ending] = []
    run = _FiveSteps(lambda: None)
    thread = threading.Thread(target=lambda: endings.append(drive(run, "run")[1].ending))
    thread.start()
    thread.join()
    assert endings == [Ending.CONVERGED]


def test_ctrl_c_is_held_back_until_the_block_has_ended() -> None:
    steps: list[str] = []

    def block() -> None:
        with interrupts.held_back():
            press()
            steps.append("pressed once")
            press()
            steps.append("pressed twice")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert steps == ["pressed once", "pressed twice"]


def test_ctrl_c_is_heard_if_the_block_fails() -> None:
    def block() -> None:
        with interrupts.held_back():
            press()
            raise ImportError

    with pytest.raises(KeyboardInterrupt):
        block()


@pytest.mark.parametrize("ignoring", [signal.SIG_IGN, signal.SIG_DFL])
def test_other_settings_of_the_signal_are_left_alone(ignoring: Any) -> None:
    old = signal.signal(signal.SIGINT, ignoring)
    try:
        with interrupts.held_back(), interrupts.recorded() as record:
            assert signal.getsignal(signal.SIGINT) is ignoring
        assert not record.raised
    finally:
        signal.signal(signal.SIGINT, old)


def test_a_block_within_a_block_ends_both() -> None:
    seen: list[str] = []
    watch = Watch(stop=lambda: len(seen) == 1)
    with watch.until_stopped():
        with watch.until_stopped():
            watch.poll()
            seen.append("inner")
            watch.poll()
            seen.append("after")
        assert watch.stopped
        watch.poll()
        seen.append("outer")
    assert seen == ["inner"]
    assert watch.ending is Ending.TIME_LIMIT


def test_progress_is_told_now_and_then_with_what_was_said_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isthmus.watch._REPORT_INTERVAL", 0.0)
    heard: list[Progress] = []
    watch = Watch("name", report=heard.append)
    watch.poll("first", 1.0, 0.5)
    watch.poll()
    watch.suffix = ", again"
    watch.poll("second", 2.0)
    assert [(p.text, p.score, p.done) for p in heard] == [
        ("first", 1.0, 0.5),
        ("first", 1.0, 0.5),
        ("second, again", 2.0, None),
    ]


def test_a_search_without_a_result_before_its_end() -> None:
    def aborted(watch: Watch) -> _Result:
        with watch.until_stopped():
            watch.poll()
            press()
        raise AbortedError("no result", reason="time limit")

    with pytest.raises(AbortedError):
        drive(aborted, "search", time_limit=0.0)
    with pytest.raises(KeyboardInterrupt):
        drive(aborted, "search")
