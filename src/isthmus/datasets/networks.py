"""Networks from textbooks and papers, typed from the numbers that these print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DownloadError, MissingExtraError, counted
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork, GaussianNetwork, Network


@final
class Dataset(Mapping[str, NDArray[Any]]):
    """A table together with the network it was simulated from. Pass it to ``learn`` directly.

    Parameters
    ----------
    table
        The columns.
    network
        The network that they were simulated from.
    description
        Subject of the data, and where they were published.
    """

    def __init__(
        self, table: Mapping[str, NDArray[Any]], network: Network, description: str
    ) -> None:
        self._table = dict(table)
        self.network = network
        self.description = description

    @property
    def dag(self) -> DAG:
        """The true graph."""
        return self.network.dag

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        rows = counted(len(next(iter(self._table.values()))), "row")
        return f"Dataset({rows}, {counted(len(self), 'column')}): {self.description}"


_YES = ("yes", "no")


def asia(rows: int = 5000, *, seed: int = 0) -> Dataset:
    """Chest clinic: diseases of the lung, their causes and their symptoms.

    Eight variables of a fictitious clinic by Lauritzen and Spiegelhalter, Local computations with
    probabilities on graphical structures, Journal of the Royal Statistical Society B 50 (1988).

    Parameters
    ----------
    rows
        Number of rows to simulate.
    seed
        Random seed. The same seed gives the same rows.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia()
    >>> ist.shd(ist.learn(data).cpdag, data.dag.cpdag()) <= 4
    True
    """
    edges = [
        ("asia", "tub"), ("smoke", "lung"), ("smoke", "bronc"), ("tub", "either"),
        ("lung", "either"), ("either", "xray"), ("bronc", "dysp"), ("either", "dysp"),
    ]  # fmt: skip
    nodes = ["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"]
    tables = {
        "asia": [0.01],
        "tub": [0.05, 0.01],
        "smoke": [0.5],
        "lung": [0.1, 0.01],
        "bronc": [0.6, 0.3],
        "either": [1.0, 1.0, 1.0, 0.0],  # tub, lung
        "xray": [0.98, 0.05],
        "dysp": [0.9, 0.8, 0.7, 0.1],  # bronc, either
    }
    return _simulated(
        _binary(nodes, edges, tables), rows, seed, "chest clinic, Lauritzen & Spiegelhalter 1988"
    )


def burglary(rows: int = 5000, *, seed: int = 0) -> Dataset:
    """Burglary and earthquake: why the alarm rings, and whether the neighbours call.

    Five variables by Pearl (1988), with the numbers of Russell and Norvig, Artificial
    Intelligence: A Modern Approach. Causes are rare, so few rows say little about them.

    Parameters
    ----------
    rows, seed
        As for `asia`.
    """
    nodes = ["burglary", "earthquake", "alarm", "john", "mary"]
    edges = [("burglary", "alarm"), ("earthquake", "alarm"), ("alarm", "john"), ("alarm", "mary")]
    tables = {
        "burglary": [0.001],
        "earthquake": [0.002],
        "alarm": [0.95, 0.94, 0.29, 0.001],  # burglary, earthquake
        "john": [0.9, 0.05],
        "mary": [0.7, 0.01],
    }
    return _simulated(
        _binary(nodes, edges, tables), rows, seed, "burglary and earthquake, Russell & Norvig"
    )


def sprinkler(rows: int = 5000, *, seed: int = 0) -> Dataset:
    """Sprinkler: whether the grass is wet, and why.

    Four variables, with the numbers of Russell and Norvig, Artificial Intelligence: A Modern
    Approach.

    Parameters
    ----------
    rows, seed
        As for `asia`.
    """
    nodes = ["cloudy", "sprinkler", "rain", "wet"]
    edges = [("cloudy", "sprinkler"), ("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")]
    tables = {
        "cloudy": [0.5],
        "sprinkler": [0.1, 0.5],
        "rain": [0.8, 0.2],
        "wet": [0.99, 0.9, 0.9, 0.0],  # sprinkler, rain
    }
    return _simulated(_binary(nodes, edges, tables), rows, seed, "sprinkler, Russell & Norvig")


def water_level(rows: int = 1000, *, seed: int = 0) -> Dataset:
    """Water level: a linear Gaussian network of a reservoir, made up for these pages.

    Rain and snow fill a reservoir, which feeds a turbine; temperature melts snow and drives demand.

    Parameters
    ----------
    rows, seed
        As for `asia`.
    """
    coefficients: dict[str, dict[str, float]] = {
        "temperature": {},
        "rain": {},
        "melt": {"temperature": 0.8},
        "level": {"rain": 1.2, "melt": 0.9},
        "demand": {"temperature": -0.6},
        "power": {"level": 0.7, "demand": 0.5},
    }
    edges = [(parent, node) for node, own in coefficients.items() for parent in own]
    network = GaussianNetwork(
        DAG(list(coefficients), edges),
        {"temperature": 12.0, "rain": 80.0, "melt": 5.0, "level": 20.0, "demand": 60.0, "power": 9},
        coefficients,
        {"temperature": 36, "rain": 100, "melt": 9.0, "level": 25, "demand": 16, "power": 9},
    )
    table = network.sample(rows, seed=seed)
    return Dataset(table, network, "reservoir, made up; linear Gaussian")


def _binary(
    nodes: Sequence[str],
    edges: Sequence[tuple[str, str]],
    tables: Mapping[str, Sequence[float]],
) -> DiscreteNetwork:
    """Build a network from the probabilities of "yes", for parents in the order of the nodes."""
    dag = DAG(nodes, edges)
    full = {}
    for node in nodes:
        yes = np.array(tables[node]).reshape((2,) * len(dag.parents(node)))
        full[node] = np.stack([yes, 1.0 - yes], axis=-1)
    return DiscreteNetwork(dag, dict.fromkeys(nodes, _YES), full)


def _simulated(network: DiscreteNetwork, rows: int, seed: int, description: str) -> Dataset:
    return Dataset(network.sample(rows, seed=seed), network, description)


# --- Download files, check them and keep them ---------------------------------------------------


def fetch(url: str, *, sha256: str, folder: str | Path | None = None) -> Path:
    """Download a file once, check its checksum and return its path.

    If the file is already in the folder and has this checksum, it is not downloaded again, so the
    second call works offline.

    Parameters
    ----------
    url
        Address of the file: ``http://…`` or ``https://…``.
    sha256
        Its SHA-256 checksum, 64 hexadecimal digits. The source of the data should publish it;
        otherwise compute it from a copy that you trust, for example by ``sha256sum FILE``.
    folder
        Folder to keep the file in. By default the cache folder of the operating system for
        ``isthmus``.

    Returns
    -------
    Path
        The file, whose name ends as that in the address.

    Raises
    ------
    DownloadError
        If the file cannot be downloaded, or has a different checksum. No file is kept then.
    """
    digest = str(sha256).strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ArgumentError(
            f"sha256 is {sha256!r}; it must be the 64 hexadecimal digits of a SHA-256 checksum."
        )
    address = urlsplit(url)
    if address.scheme not in {"http", "https"} or not address.netloc:
        raise ArgumentError(f"url is {url!r}; it must begin with http:// or https://.")
    try:
        import pooch
        from requests import HTTPError, RequestException
    except ImportError:
        raise MissingExtraError("pooch", "datasets", "fetch()") from None
    place = Path(pooch.os_cache("isthmus") if folder is None else folder)
    # A checksum in the name keeps apart files that are called alike.
    name = re.sub(r"[^\w.-]", "_", unquote(address.path).rpartition("/")[2]) or "file"
    path = place.expanduser().resolve() / f"{digest[:12]}-{name}"

    def download(source: str, output: str, _: object) -> None:
        pooch.HTTPDownloader()(source, output, None)
        actual = pooch.file_hash(output)
        if actual != digest:
            raise DownloadError(
                f"{source} has the SHA-256 checksum {actual}, not {digest}: the file has changed "
                "or was damaged on its way. Use it only if its source confirms the new checksum."
            )

    try:
        pooch.retrieve(url, f"sha256:{digest}", path.name, path.parent, downloader=download)
    except HTTPError as error:
        if error.response is not None:
            error.response.close()  # pooch leaves it open
        raise DownloadError(
            f"{url} cannot be downloaded: the server answers {error}. Check the address, or save "
            f"the file as {path} by hand."
        ) from None
    except RequestException as error:
        raise DownloadError(
            f"{url} cannot be downloaded ({type(error).__name__}). Check the connection and the "
            f"proxy, or copy the file from another computer to {path}."
        ) from None
    return path
