"""Private K2 for two parties (Wright and Yang 2004), simulated in one process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd
from typing import TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Bools, Floats
from isthmus.errors import ArgumentError, MismatchError, SchemaError
from isthmus.graphs import DAG
from isthmus.statistics import Kind
from isthmus.tables import as_source

FamilyScore: TypeAlias = Callable[[ArrayLike], float]
"""The score of a variable from its counts ``[configuration of the parents, value]``."""

_CIPHER_BITS = 4096
"""Bits of a ciphertext of Paillier's scheme with a modulus of 2,048 bits."""
_ROUNDING = 1e-9
"""Scores that differ by less are equal: sums in another order."""


def k2_score(counts: ArrayLike) -> float:
    """Return the logarithm of K2's score of one variable: f' of the paper, without approximation.

    Parameters
    ----------
    counts
        Rows with each value ``[configuration of the parents, value]``, for two values.

    Examples
    --------
    >>> from isthmus.published import k2_score
    >>> round(k2_score([[3, 1]]), 4)  # ln(3! 1! / 5!)
    -2.9957
    """
    from scipy.special import gammaln

    alpha, total = _alpha(counts)
    return float(gammaln(alpha + 1.0).sum() - gammaln(total + 1.0).sum())


def stirling_score(counts: ArrayLike, *, constants: bool = False) -> float:
    """Return the paper's score g: `k2_score` by Stirling's formula, without its constants.

    With ``ℓ = α₀ + α₁ + 1``, each configuration of the parents contributes
    ``½ (ln α₀ + ln α₁ - ln ℓ) + α₀ ln α₀ + α₁ ln α₁ - ℓ ln ℓ``. The formula fails for empty cells,
    and the paper has no rule for them; here they contribute zero, as ``ln 0! = 0`` does.

    Parameters
    ----------
    counts
        As for `k2_score`.
    constants
        Whether to keep the constants of the formula: ``1 + ½ ln 2π`` per configuration, and
        ``½ ln 2π`` less for each empty cell. The paper drops them, although parent sets differ in
        the number of their configurations.

    Examples
    --------
    >>> from isthmus.published import k2_score, stirling_score
    >>> counts = [[40, 60], [30, 10]]
    >>> exact, approximate = k2_score(counts), stirling_score(counts, constants=True)
    >>> print(abs(exact - approximate) < 0.02)
    True
    """
    alpha, total = _alpha(counts)
    value = 0.5 * (_log(alpha).sum() - _log(total).sum())
    value += (alpha * _log(alpha)).sum() - (total * _log(total)).sum()
    if constants:
        more = np.count_nonzero(alpha) - len(alpha)
        value += len(alpha) + 0.5 * more * np.log(2.0 * np.pi)
    return float(value)


def _alpha(counts: ArrayLike) -> tuple[Floats, Floats]:
    alpha = np.asarray(counts, dtype=np.float64)
    if alpha.ndim != 2 or alpha.shape[1] != 2 or not (alpha >= 0).all():
        raise ArgumentError(
            "counts must have one row per configuration of the parents and two columns, one per "
            f"value, of numbers of at least 0; an array of shape {alpha.shape} was given."
        )
    return alpha, alpha.sum(axis=1) + 1.0


def _log(values: Floats) -> Floats:
    """Logarithms, and zero for zero."""
    return np.log(np.where(values > 0.0, values, 1.0))


@final
@dataclass(frozen=True, eq=False)
class SimulatedK2:
    """What two parties learn from private K2, and what it costs them.

    Attributes
    ----------
    dag
        The network.
    additions
        The parents of each variable in the order in which they were added. Both parties learn this
        order, which the network alone does not show.
    scalar_products
        Number of scalar products between a vector of one party and one of the other.
    encryptions
        Number of ciphertexts that Alice computes and sends: one per row and scalar product.
    """

    dag: DAG
    additions: dict[str, tuple[str, ...]] = field(repr=False)
    scalar_products: int
    encryptions: int

    @property
    def megabytes(self) -> float:
        """Size of these ciphertexts with a modulus of 2,048 bits."""
        return self.encryptions * _CIPHER_BITS / 8e6


def private_k2(
    alice: object,
    bob: object,
    *,
    order: Sequence[str],
    max_parents: int,
    score: FamilyScore = stirling_score,
    key_bits: int | None = None,
) -> SimulatedK2:
    """Learn a network from the columns of two parties, as published (private K2), in a simulation.

    K2 along a known order, with the paper's score g. Both parties are in this process. The counts
    that involve both are scalar products of two vectors of zeros and ones (section 3.2), which
    ``key_bits`` computes under encryption. The protocols of Lindell and Pinkas for ``ln x`` and
    ``x ln x``, and Yao's for the maximum, are not run: the simulation computes their results in the
    open, so it says what the parties learn and what the scalar products cost, and protects nobody.
    For two real parties, use ``learn(TwoParty(...), search=PrivateK2(...))``: it computes the exact
    score on shares and takes more than two values. `StructureOnly` hides the order of the parents.

    Parameters
    ----------
    alice, bob
        The tables of the two parties: the same rows in the same order, and different columns of
        two values each.
    order
        Names of all variables, causes before effects.
    max_parents
        u, the maximum number of parents.
    score
        `stirling_score`, the paper's g, or `k2_score`.
    key_bits
        Number of bits of the modulus of Paillier's scheme; None adds without encryption, with the
        same result. 2,048 takes tens of milliseconds per row and scalar product.

    References
    ----------
    R. Wright and Z. Yang. Privacy-preserving Bayesian network structure computation on distributed
    heterogeneous data. KDD 2004.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import published
    >>> asia = ist.datasets.asia(rows=1000, seed=1)
    >>> alice = {name: asia[name] for name in ("asia", "tub", "smoke", "lung")}
    >>> bob = {name: asia[name] for name in ("bronc", "either", "xray", "dysp")}
    >>> result = published.private_k2(alice, bob, order=asia.dag.nodes, max_parents=2)
    >>> result.additions["either"], result.scalar_products
    (('lung', 'tub'), 184)
    """
    tables = {"Alice": _binary(alice, "Alice"), "Bob": _binary(bob, "Bob")}
    first, second = tables["Alice"], tables["Bob"]
    owned = [*first, *second]
    if sorted(order) != sorted(owned) or len(set(owned)) != len(owned):
        raise MismatchError(
            f"The order must have every column of the two tables once. The columns are {owned}; "
            f"the order is {list(order)}."
        )
    lengths = {len(column) for table in tables.values() for column in table.values()}
    if len(lengths) != 1:
        raise MismatchError(
            f"The tables must have the same rows in the same order; they have {sorted(lengths)}."
        )
    if max_parents < 0:
        raise ArgumentError(f"max_parents must be at least 0; {max_parents} was given.")
    parties = _Parties(first, second, lengths.pop(), key_bits)
    additions: dict[str, tuple[str, ...]] = {}
    for place, child in enumerate(order):
        chosen: list[str] = []
        best = score(parties.counts(child, chosen))
        while len(chosen) < max_parents:
            open_ = [name for name in order[:place] if name not in chosen]
            scores = [score(parties.counts(child, [*chosen, name])) for name in open_]
            if not scores or max(scores) <= best + _ROUNDING:
                break
            best = max(scores)
            chosen.append(open_[scores.index(best)])
        additions[child] = tuple(chosen)
    edges = [(parent, child) for child, chosen in additions.items() for parent in chosen]
    return SimulatedK2(DAG(owned, edges), additions, parties.products, parties.encryptions)


def _binary(data: object, party: str) -> dict[str, Bools]:
    """Return the columns of a party as zeros and ones."""
    names = as_source(data).schema().names
    source = as_source(data, kinds=dict.fromkeys(names, Kind.DISCRETE))
    wide = [v.name for v in source.schema().variables if len(v.levels) > 2]
    if wide:
        raise SchemaError(
            f"The paper's protocol is for columns of two values, and {party}'s columns {wide[:5]} "
            "have more. Leave them out or divide them in two, or use TwoParty with PrivateK2, "
            "which takes any number of levels."
        )
    return {name: column == 1 for name, column in zip(names, source.rows().T, strict=True)}


@final
class _Parties:
    """Two parties who count together."""

    def __init__(
        self, alice: dict[str, Bools], bob: dict[str, Bools], rows: int, key_bits: int | None
    ) -> None:
        self._alice, self._bob, self._rows = alice, bob, rows
        self._key = None if key_bits is None else Paillier(key_bits)
        self.products = self.encryptions = 0

    def counts(self, child: str, parents: Sequence[str]) -> NDArray[np.float64]:
        """Return the α of a variable, ``[configuration, value]`` (section 3.3)."""
        names = [*parents, child]
        cells = [
            self._count(dict(zip(names, values, strict=True)))
            for values in product((False, True), repeat=len(names))
        ]
        return np.array(cells, dtype=np.float64).reshape(-1, 2)

    def _count(self, values: dict[str, bool]) -> int:
        """Count the rows that are compatible with these values at both parties."""
        ours = [_compatible(table, values) for table in (self._alice, self._bob)]
        alone = [vector for vector in ours if vector is not None]
        if len(alone) == 1:
            return int(alone[0].sum())
        self.products += 1
        self.encryptions += self._rows
        if self._key is None:
            return int((alone[0] & alone[1]).sum())
        masked, share = self._key.scalar_product(alone[0], alone[1])
        return (masked + share) % self._key.n


def _compatible(table: dict[str, Bools], values: dict[str, bool]) -> Bools | None:
    """Return which rows of a party have these values; None if none of them is the party's."""
    own = [table[name] == value for name, value in values.items() if name in table]
    return np.logical_and.reduce(own) if own else None


@final
class Paillier:
    """Paillier's additively homomorphic encryption, for the scalar product of section 3.2.

    A reference in plain Python: correct, slow, and not hardened against an observer of its time.
    """

    def __init__(self, bits: int) -> None:
        if bits < 64:
            raise ArgumentError(f"key_bits must be at least 64; {bits} was given.")
        p, q = _prime(bits // 2), _prime(bits // 2)
        while p == q:
            q = _prime(bits // 2)
        self.n = p * q
        self._square = self.n**2
        self._phi = (p - 1) * (q - 1)
        self._inverse = pow(self._phi, -1, self.n)

    def encrypt(self, plain: int) -> int:
        """Return a ciphertext, another one each time."""
        noise = secrets.randbelow(self.n - 1) + 1
        while gcd(noise, self.n) != 1:
            noise = secrets.randbelow(self.n - 1) + 1
        return (1 + plain * self.n) * pow(noise, self.n, self._square) % self._square

    def decrypt(self, cipher: int) -> int:
        """Return the number that was encrypted."""
        return (pow(cipher, self._phi, self._square) - 1) // self.n * self._inverse % self.n

    def scalar_product(self, alice: Bools, bob: Bools) -> tuple[int, int]:
        """Return Alice's and Bob's share of the number of common ones; they add up modulo n."""
        sent = [self.encrypt(int(bit)) for bit in alice]
        mask = secrets.randbelow(self.n)
        total = self.encrypt(mask)
        for cipher, bit in zip(sent, bob, strict=True):
            if bit:
                total = total * cipher % self._square
        return self.decrypt(total), -mask % self.n


def _prime(bits: int) -> int:
    """Draw a prime whose two highest bits are set."""
    while True:
        candidate = secrets.randbits(bits) | 3 << bits - 2 | 1
        if _is_prime(candidate):
            return candidate


def _is_prime(number: int, rounds: int = 40) -> bool:
    """Test by Miller and Rabin: a composite passes with a probability below 4^-rounds."""
    if any(number % small == 0 for small in (3, 5, 7, 11, 13, 17, 19, 23)):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(rounds):
        power = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
