"""The engine that computes on secret shares: programs, openings and what they cost.

Columns are multiplied by oblivious transfer, see `secret_products`; the runtime of SPU gets shares
of what was counted, and never a column. It computes with 128 bits, of which 40 are fractions, by
Cheetah: two parties that follow the protocol, with no dealer and no third party.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, ArgumentError
from isthmus.joint.shares.link import require_spu
from isthmus.joint.shares.secret_products import SecretProducts
from isthmus.joint.shares.shares import FRACTION, SecretShare, pack, unpack

if TYPE_CHECKING:
    from spu.libspu.link import Context

Input = SecretShare | NDArray[Any]
BOTH = (0, 1)


class Opener(Protocol):
    """Opens values: nothing else makes anything known to a party."""

    def open(self, what: str, share: bytes, to: Sequence[int]) -> bytes:
        """Exchange shares of a value with the other party.

        Returns
        -------
        bytes
            The own share, which is that of an earlier attempt if there was one, followed by the
            other's if this party learns the value.
        """


@final
class LinkOpener:
    """Opens values without any record, over the link of the engines; for tests and benchmarks."""

    def __init__(self, link: Context) -> None:
        self._link = link

    def open(self, what: str, share: bytes, to: Sequence[int]) -> bytes:
        del what
        other = 1 - self._link.rank
        if other in to:
            self._link.send(other, share)
        return share + (bytes(self._link.recv(other)) if self._link.rank in to else b"")


@final
@dataclass(frozen=True)
class RevealedValue:
    """A value that was opened.

    Attributes
    ----------
    what
        Description of the value.
    to
        Ranks of the parties that learned it.
    value
        The value; None at a party that did not learn it.
    """

    what: str
    to: tuple[int, ...]
    value: Any


@final
@dataclass
class _Compiled:
    executable: Any
    inputs: list[str]
    outputs: list[str] = field(default_factory=list)


@final
class SecretSharingRuntime:
    """Computes together with the other party on an established link.

    Both parties must call the same methods in the same order with the same shapes.

    Parameters
    ----------
    opener
        Opens values; by default without a record.
    log
        File for the link's statistics, of every program.
    """

    def __init__(
        self,
        link: Context,
        opener: Opener | None = None,
        log: Path | None = None,
    ) -> None:
        require_spu()
        import jax
        import spu

        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]  # noqa: FBT003
        self.rank: int = link.rank
        self.transcript: list[RevealedValue] = []
        self._link = link
        self._opener = LinkOpener(link) if opener is None else opener
        self._cache: dict[Any, _Compiled] = {}
        self._names = 0
        _quieten(log)
        self._runtime = spu.Runtime(link.spawn(), _config(measured=log is not None))

    @cached_property
    def products(self) -> SecretProducts:
        """Products of both parties' columns."""
        return SecretProducts(self._link)

    def run(self, program: Callable[..., Any], *inputs: Input) -> list[SecretShare]:
        """Run a program of JAX on secret and public inputs.

        Parameters
        ----------
        program
            A function of arrays. It is compiled once for each combination of shapes, so it must
            depend on nothing else.

        Returns
        -------
        list of Secret
            Its results, as shares.
        """
        runtime = self._runtime
        compiled = self._compile(program, inputs)
        try:
            for name, value in zip(compiled.inputs, inputs, strict=True):
                runtime.set_var(name, pack(value))
            runtime.run(compiled.executable)
            results = [unpack(runtime.get_var(name)) for name in compiled.outputs]
            for name in (*compiled.inputs, *compiled.outputs):
                runtime.del_var(name)
        except RuntimeError as error:
            raise stopped(error) from error
        return results

    def open(self, secret: SecretShare, what: str, to: Sequence[int] = BOTH) -> NDArray[Any] | None:
        """Open a secret to some parties, and record that.

        Parameters
        ----------
        secret
            The shares of both parties are put together, nothing else.

        Returns
        -------
        array or None
            The value; None at a party that does not learn it.
        """
        words = np.ascontiguousarray(secret.words)
        try:
            shares = np.frombuffer(self._opener.open(what, words.tobytes(), to), dtype=np.uint64)
            value = None
            if self.rank in to:
                own, theirs = shares.reshape(2, *words.shape)
                value = replace(secret, words=own).combine(theirs)
        except (RuntimeError, ValueError) as error:
            raise stopped(error) from error
        self.transcript.append(RevealedValue(what, tuple(to), value))
        return value

    def publish(
        self, values: NDArray[np.float64], what: str, owner: int, shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Tell the other party numbers that one party computed alone, and record that.

        Parameters
        ----------
        values
            The numbers, at their owner; ignored at the other party.
        shape
            Their shape, which both parties know.
        """
        given = values if owner == self.rank else np.zeros(shape)
        data = np.ascontiguousarray(given, dtype=np.float64).tobytes()
        try:
            shares = np.frombuffer(self._opener.open(what, data, (1 - owner,)), dtype=np.float64)
            values = shares[-math.prod(shape) :].reshape(shape)
        except (RuntimeError, ValueError) as error:
            raise stopped(error) from error
        self.transcript.append(RevealedValue(what, (1 - owner,), values))
        return values

    def agree(self, topic: str, terms: object) -> None:
        """Check that both parties are about to compute the same, or raise `AbortedError`.

        Parameters
        ----------
        terms
            Plain data that must be equal. Only a hash of it is exchanged.
        """
        text = json.dumps([topic, terms], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()
        other = 1 - self.rank
        try:
            self._link.send(other, digest)
            theirs = bytes(self._link.recv(other)).decode(errors="replace")
        except RuntimeError as error:
            raise stopped(error) from error
        if theirs != digest:
            raise AbortedError(
                f"The two parties do not agree on the {topic}: names, levels, owners, number of "
                "rows and options must be equal. Nothing was computed."
            )

    def close(self) -> None:
        """End the link."""
        self._link.stop_link()

    def _compile(self, program: Callable[..., Any], inputs: tuple[Input, ...]) -> _Compiled:
        import jax
        from spu.libspu import Visibility
        from spu.utils import frontend

        kinds = [isinstance(value, np.ndarray) for value in inputs]
        shapes = [(value.shape, np.dtype(value.dtype).str) for value in inputs]
        key = (program, tuple(kinds), tuple(shapes))
        if key in self._cache:
            return self._cache[key]
        self._names += 1
        names = [f"program{self._names}.in{i}" for i in range(len(inputs))]
        described = [
            jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
            for shape, dtype in shapes
        ]
        seen = [Visibility.VIS_PUBLIC if public else Visibility.VIS_SECRET for public in kinds]
        executable, _ = frontend.compile(
            frontend.Kind.JAX,
            program,
            described,
            {},
            names,
            seen,
            lambda flat: [f"program{self._names}.out{i}" for i in range(len(flat))],
        )
        self._cache[key] = _Compiled(executable, names, list(executable.output_names))
        return self._cache[key]


def _quieten(log: Path | None) -> None:
    """Keep the engine's notes off the terminal; statistics go to a file if one is given."""
    from spu.libspu import logging

    options = logging.LogOptions()
    options.enable_console_logger = log is None
    options.log_level = logging.LogLevel.ERROR if log is None else logging.LogLevel.INFO
    if log is not None:
        options.system_log_path = str(log)
    logging.setup_logging(options)


def _config(*, measured: bool) -> Any:
    from spu.libspu import RuntimeConfig

    terms = {
        "protocol": "CHEETAH",
        "field": "FM128",
        "fxp_fraction_bits": FRACTION,
        # Ferret, the default, sends less per comparison, but takes 0.6 GB and 5 s to begin with.
        "cheetah_2pc_config": {"ot_kind": "YACL_Softspoken"},
        "enable_pphlo_profile": measured,
    }
    config = RuntimeConfig()
    if not config.ParseFromJsonString(json.dumps(terms)):
        raise AbortedError(f"This release of spu does not know the settings {terms}.")
    return config


def stopped(error: Exception) -> AbortedError:
    """Return the error for a link that broke, or for messages that the engine cannot read."""
    return AbortedError(
        "The computation with the other party stopped: its engine did not answer in time, or sent "
        f"something that cannot be read ({str(error).splitlines()[0][:120]}). Nothing more was "
        "revealed."
    )


def connect_local(rank: int, ports: tuple[int, int], message_timeout: float = 60.0) -> Context:
    """Connect two engines on this computer without encryption, for tests and benchmarks."""
    if rank not in BOTH:
        raise ArgumentError(f"The rank must be 0 or 1, got {rank!r}.")
    require_spu()
    from spu.libspu import link

    description = link.Desc()
    description.recv_timeout_ms = int(1000 * message_timeout)
    for i, port in enumerate(ports):
        description.add_party(f"party {i}", f"127.0.0.1:{port}")
    return link.create_brpc(description, rank)
