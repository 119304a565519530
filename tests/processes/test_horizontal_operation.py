"""Metrics, health and logs of real processes: what they say, and that they carry no data."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from tests.processes.hospitals import Hospitals, rows

from isthmus_joint.transport.certificates import free_port

SERIES = re.compile(r'([a-z_]+)(?:\{([a-z]+="(?:[^"\\]|\\.)*",?)*\})? (-?[0-9.e+-]+|nan|inf)')


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def await_page(port: int, path: str, text: str) -> str:
    end = time.monotonic() + 120
    while text not in (found := get(port, path)[1]):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def test_programs_watch_a_federation(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 70, 80)
    ports = {name: free_port() for name in (*world.names, "coordinator")}
    for name in world.names:
        world.start(name, "--metrics", str(ports[name]), "--log", "json")
    await_page(ports["s0"], "/ready", "not connected")
    assert get(ports["s0"], "/ready")[0] == 503
    assert get(ports["s0"], "/health") == (200, "running\n")
    (world.home("s1") / "STOP").touch()
    await_page(ports["s1"], "/ready", "stop file")
    (world.home("s1") / "STOP").unlink()
    metrics = ("--metrics", f"127.0.0.1:{ports['coordinator']}", "--log", "json")
    run = world.coordinate(*metrics, "-o", "network.csv")
    pages = [await_page(ports["coordinator"], "/metrics", "isthmus_run_state")]
    end = time.monotonic() + 240
    while run.poll() is None:
        assert time.monotonic() < end, [world.log(n) for n in ("coordinator", *world.names)]
        time.sleep(0.1)
    assert run.returncode == 0, world.log("coordinator")
    pages += [get(ports[name], "/metrics")[1] for name in world.names]
    for page in pages:
        lines = page.splitlines()
        assert lines[0].startswith("# HELP isthmus_")
        assert all(line.startswith("#") or SERIES.fullmatch(line) for line in lines), page
        assert "process_resident_memory_bytes" in page
    assert 'isthmus_site_ledger_entries_total{event="unmasked"} 1.0' in pages[1]
    states = [json.loads(line) for line in world.log("coordinator").splitlines() if line[:1] == "{"]
    assert [s["state"] for s in states if s["log"] == "run"] == ["gathering", "running", "done"]
    logs = {name: world.log(name) for name in world.names}
    for name, text in logs.items():
        events = [json.loads(line) for line in text.splitlines()]
        assert {"connected", "ledger"} <= {e["log"] for e in events}
        assert len(pages) == 4
        known = {"time", "log", "study", "number", "event", "round", "why"}
        assert all(e.keys() <= known for e in events), name
    json_lines = "\n".join(json.dumps(s) for s in states)
    require_no_values(world, "\n".join([*logs.values(), *pages, json_lines]))


def require_no_values(world: Hospitals, text: str) -> None:
    """No value of a table, no sum, no name of a column and no key is in a text."""
    forbidden = {f"{v:.6f}"[:8] for table in world.tables.values() for v in table.ravel()}
    pooled = world.pooled()
    forbidden |= {f"{v:.6f}"[:7] for v in (*pooled.sum(0), *pooled.mean(0), *pooled.var(0))}
    found = sorted(v for v in forbidden if v in text)
    assert not found, found
    for name in (*world.names, "board"):
        for key in world.home(name).glob("*.pem"):
            assert key.read_text().splitlines()[1] not in text
    # The test can fail: a table is found if it is there.
    shown = text + " ".join(map(str, rows(3, 0).ravel()))
    assert any(v in shown for v in forbidden)
