"""Screenshots of reports with 8 to 500 nodes, on a desktop and on a phone, to look at.

    python benchmarks/report_pictures.py FOLDER [REPORT ...]

Writes reports of 8 (asia), 31 (breast cancer, mixed), 37 (alarm), 100 (simulated), 223 (andes) and
500 (simulated) nodes, of hidden causes (pag), a bootstrap, a posterior, and smaller mixed and
Gaussian networks, and for each the page as it opens, the whole network up to 300 nodes, the
communities, the largest of them, and what-if where the page can answer. Networks are looked for
in ../shared/data, or under ISTHMUS_DATA.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import isthmus as ist
from isthmus.io import read_bif

HOME = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCREENS = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}


def classic(name: str) -> Any:
    return read_bif(HOME / "networks" / f"{name}.bif.gz").sample(2_000, seed=1)


def breast_cancer() -> Any:
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer(as_frame=True)
    return table.data.assign(diagnosis=table.target.map({0: "malignant", 1: "benign"}))


def genes(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, count))
    for j in range(1, count):
        parents = rng.choice(np.arange(max(0, j - 40), j), min(j, 2), replace=False)
        table[:, j] += table[:, parents] @ rng.choice([-0.8, 0.8], len(parents))
        table[:, j] /= table[:, j].std()
    return {f"gene_{j:03d}": table[:, j] for j in range(count)}


TABLES: dict[int, Callable[[], Any]] = {
    8: lambda: classic("asia"),
    31: breast_cancer,
    37: lambda: classic("alarm"),
    100: lambda: genes(100),
    223: lambda: classic("andes"),
    500: lambda: genes(500),
}


def without_some() -> Any:
    """Return columns of which some common causes are missing."""
    table = ist.simulate.linear(ist.simulate.erdos_renyi(14, 22, seed=3), 2_000, seed=3).data
    return {name: table[name] for i, name in enumerate(table) if i not in (2, 3, 4)}


def means() -> Any:
    table = breast_cancer()
    return table[[name for name in table if name.startswith("mean") or name == "diagnosis"]]


def learned(table: Callable[[], Any]) -> ist.Solution:
    return ist.learn(table(), seed=1)


RESULTS: dict[str, Callable[[], Any]] = {
    **{str(count): partial(learned, make) for count, make in TABLES.items()},
    "pag": lambda: ist.learn(without_some(), search=ist.BossFCI()),
    "bootstrap": lambda: ist.bootstrap(classic("asia"), replicates=100),
    "posterior": lambda: ist.sample(classic("asia"), draws=500),
    "mixed": lambda: ist.learn(means(), seed=1),
    "gaussian": lambda: ist.learn(genes(12), seed=1),
}


def report(name: str, folder: Path) -> Path:
    """Write the report of this name."""
    path = folder / f"{name}.html"
    RESULTS[name]().report(path, table="table.csv")
    return path


def pictures(browser: Any, path: Path) -> None:
    """Take pictures of all views of a report."""
    for screen, size in SCREENS.items():
        page = browser.new_page(viewport=size)
        page.set_default_timeout(240_000)  # milliseconds; a busy machine takes its time
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("#waiting", state="detached")
        for name in ("opened", "all", "groups", "largest", "whatif"):
            if name == "largest":
                page.evaluate("Report.change({ community: 0 })")
            elif name != "opened":
                button = page.locator(f"[data-mode={name}], [data-view={name}]")
                if not button.count():
                    continue
                button.click()
            page.wait_for_timeout(400)
            page.screenshot(path=path.with_name(f"{path.stem}-{screen}-{name}.png"))
        page.close()


def main(folder: Path, names: list[str]) -> None:
    """Write reports and their pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name in names:
            pictures(browser, report(name, folder))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(RESULTS))
