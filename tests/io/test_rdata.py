"""Files of R, written here item by item from the description of R's format."""

import bz2
import gzip
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import FormatError
from isthmus.io import read_rdata
from isthmus.networks import ConditionalGaussian, DiscreteNetwork, GaussianNetwork, MixedNetwork

NIL = struct.pack(">i", 254)
VERSION_2 = struct.pack(">3i", 2, 0x40202, 0x20300)
VERSION_3 = struct.pack(">4i", 3, 0x40202, 0x30500, 5) + b"UTF-8"


def char(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">2i", 9 | 0x40000, len(raw)) + raw


def pairs(entries: dict[str, bytes]) -> bytes:
    """Return a linked list whose cells have tags, which are new symbols."""
    cells = [struct.pack(">2i", 2 | 0x400, 1) + char(tag) + value for tag, value in entries.items()]
    return b"".join(cells) + NIL


def item(kind: int, body: bytes, attributes: dict[str, bytes]) -> bytes:
    flags = kind | (0x200 if attributes else 0)
    return struct.pack(">i", flags) + body + (pairs(attributes) if attributes else b"")


def texts(*values: str, **attributes: bytes) -> bytes:
    return item(16, struct.pack(">i", len(values)) + b"".join(map(char, values)), attributes)


def reals(*values: float, **attributes: bytes) -> bytes:
    return item(14, struct.pack(f">i{len(values)}d", len(values), *values), attributes)


def integers(*values: int) -> bytes:
    return item(13, struct.pack(f">i{len(values)}i", len(values), *values), {})


def items(entries: dict[str, bytes], **attributes: bytes) -> bytes:
    named = {"names": texts(*entries)} | attributes
    return item(19, struct.pack(">i", len(entries)) + b"".join(entries.values()), named)


def table(values: list[float], **levels: list[str]) -> bytes:
    shape = integers(*map(len, levels.values()))
    return reals(*values, dim=shape, dimnames=items({k: texts(*v) for k, v in levels.items()}))


def root(values: list[float], levels: list[str]) -> bytes:
    """Return a table of one axis, whose name R leaves out."""
    names = item(19, struct.pack(">i", 1) + texts(*levels), {})
    return reals(*values, dim=integers(len(levels)), dimnames=names)


def node(parents: list[str], **entries: bytes) -> bytes:
    return items({"parents": texts(*parents), **entries})


def fitted(**nodes: bytes) -> bytes:
    return items(nodes, **{"class": texts("bn.fit", "bn.fit.dnet")})


def rda(version: bytes = VERSION_2, **objects: bytes) -> bytes:
    mark = b"RDX2\n" if version is VERSION_2 else b"RDX3\n"
    return mark + b"X\n" + version + pairs(objects)


RAIN = root([0.2, 0.8], ["yes", "no"])
COLD = root([0.5, 0.25, 0.25], ["a", "b", "c"])
WET = [0.9, 0.1, 0.3, 0.7, 0.8, 0.2, 0.4, 0.6, 0.6, 0.4, 0.5, 0.5]
"""The node fastest, then rain, then cold, as R lays arrays out."""

DISCRETE = fitted(
    wet=node(
        ["cold", "rain"],
        prob=table(WET, wet=["wet", "dry"], rain=["yes", "no"], cold=["a", "b", "c"]),
    ),
    rain=node([], prob=RAIN),
    cold=node([], prob=COLD),
)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("version", [VERSION_2, VERSION_3])
def test_a_discrete_network_whose_axes_are_in_another_order_than_its_parents(
    tmp_path: Path, compress: Callable[[bytes], bytes], version: bytes
) -> None:
    path = tmp_path / "weather.rda"
    path.write_bytes(compress(rda(version, weather=DISCRETE)))
    network = read_rdata(path)
    assert isinstance(network, DiscreteNetwork)
    assert set(network.dag.edges) == {("rain", "wet"), ("cold", "wet")}
    assert network.levels["cold"] == ("a", "b", "c")
    parents = network.dag.parents("wet")
    found = network.tables["wet"].transpose(*map(parents.index, ("rain", "cold")), 2)
    expected = [[[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [[0.3, 0.7], [0.4, 0.6], [0.5, 0.5]]]
    np.testing.assert_allclose(found, expected)


def test_an_object_that_save_rds_wrote(tmp_path: Path) -> None:
    path = tmp_path / "weather.rds"
    path.write_bytes(gzip.compress(b"X\n" + VERSION_3 + DISCRETE))
    network = read_rdata(path)
    assert isinstance(network, DiscreteNetwork)
    assert network.levels["rain"] == ("yes", "no")


def test_a_gaussian_network(tmp_path: Path) -> None:
    named = {"names": texts("(Intercept)", "x")}
    nodes = {
        "x": node([], coefficients=reals(2.0, names=texts("(Intercept)")), sd=reals(3.0)),
        "y": node(["x"], coefficients=reals(1.0, -0.5, **named), sd=reals(0.5)),
    }
    (tmp_path / "line.rda").write_bytes(rda(line=fitted(**nodes)))
    network = read_rdata(tmp_path / "line.rda")
    assert isinstance(network, GaussianNetwork)
    assert network.coefficients["y"] == {"x": -0.5}
    assert dict(network.intercepts) == {"x": 2.0, "y": 1.0}
    assert dict(network.variances) == {"x": 9.0, "y": 0.25}


def test_a_conditional_gaussian_network(tmp_path: Path) -> None:
    # One column per configuration of (rain, cold): rain changes fastest.
    slopes = reals(
        *(1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0, 5.0, 50.0, 6.0, 60.0),
        dim=integers(2, 6),
        dimnames=item(19, struct.pack(">i", 2) + texts("(Intercept)", "x") + NIL, {}),
    )
    configurations = items({"rain": texts("yes", "no"), "cold": texts("a", "b", "c")})
    nodes = {
        "rain": node([], prob=RAIN),
        "cold": node([], prob=COLD),
        "x": node([], coefficients=reals(0.0, names=texts("(Intercept)")), sd=reals(1.0)),
        "y": node(
            ["rain", "cold", "x"],
            coefficients=slopes,
            sd=reals(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
            dlevels=configurations,
        ),
    }
    (tmp_path / "mixed.rda").write_bytes(rda(mixed=fitted(**nodes)))
    network = read_rdata(tmp_path / "mixed.rda")
    assert isinstance(network, MixedNetwork)
    y = network.conditionals["y"]
    assert isinstance(y, ConditionalGaussian)
    assert y.discrete == ("rain", "cold")
    np.testing.assert_allclose(y.intercepts, [[1, 3, 5], [2, 4, 6]])
    np.testing.assert_allclose(y.coefficients[..., 0], [[10, 30, 50], [20, 40, 60]])
    np.testing.assert_allclose(y.variances, [[1, 9, 25], [4, 16, 36]])


def test_rows_without_probabilities_are_an_error_or_equal_ones(tmp_path: Path) -> None:
    nan = float("nan")
    child = table([0.9, 0.1, nan, nan], wet=["wet", "dry"], rain=["yes", "no"])
    nodes = {"rain": node([], prob=RAIN), "wet": node(["rain"], prob=child)}
    (tmp_path / "n.rda").write_bytes(rda(n=fitted(**nodes)))
    with pytest.raises(FormatError, match="normalise=True"):
        read_rdata(tmp_path / "n.rda")
    network = read_rdata(tmp_path / "n.rda", normalise=True)
    assert isinstance(network, DiscreteNetwork)
    np.testing.assert_allclose(network.tables["wet"], [[0.9, 0.1], [0.5, 0.5]])


def test_one_of_several_networks_by_name(tmp_path: Path) -> None:
    other = fitted(rain=node([], prob=RAIN))
    (tmp_path / "two.rda").write_bytes(rda(first=DISCRETE, second=other, text=texts("hello")))
    with pytest.raises(FormatError, match=r"first.*second"):
        read_rdata(tmp_path / "two.rda")
    assert read_rdata(tmp_path / "two.rda", "second").dag.nodes == ("rain",)


def test_damaged_and_foreign_files_are_format_errors(tmp_path: Path) -> None:
    path = tmp_path / "bad.rda"
    whole = rda(weather=DISCRETE)
    rng = np.random.default_rng(0)
    cases = [b"", b"hello", b"RDA2\nA\n", b"\x80\x04}.", bytes(20), *(whole[:k] for k in (6, 30))]
    for _ in range(60):
        changed = bytearray(whole)
        for place in rng.integers(0, len(whole), size=3):
            changed[place] = rng.integers(256)
        cases += [bytes(changed), whole[: rng.integers(len(whole))], bz2.compress(bytes(changed))]
    refused = 0
    for case in cases:
        path.write_bytes(case)
        try:
            read_rdata(path)
        except FormatError:
            refused += 1
    assert refused > 150


def test_functions_and_nested_lists_without_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.rda"
    deep = struct.pack(">2i", 19, 1) * 5000
    for body in (struct.pack(">i", 21), deep, struct.pack(">i", 8)):
        path.write_bytes(b"X\n" + VERSION_2 + body)
        with pytest.raises(FormatError):
            read_rdata(path)
