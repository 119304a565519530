"""Compilation in another thread, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from isthmus.neural import perceptron


def test_ctrl_c_leaves_the_compiling_thread_to_be_joined_at_exit() -> None:
    """The process crashed if it ended while the thread was running."""
    threads: list[threading.Thread] = []

    def compile_() -> None:
        threads.append(threading.current_thread())
        time.sleep(0.5)

    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(perceptron._meanwhile(compile_))
        assert threads[0].is_alive()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, old)
        threads[0].join()
