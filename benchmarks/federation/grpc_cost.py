"""Time and CPU of sums over gRPC, beside bare gRPC that carries the same bytes over the same TLS.

    python benchmarks/federation/grpc_cost.py [--sites 3] [--variables 50] [--repeat 5]

Coordinator and sites are threads of one process, with keys, masks, ledgers on disk, mutual TLS 1.3
and loopback sockets. The CPU of "bare gRPC" is that of one stream per site which carries messages
of the same sizes in the same order, with nothing done to them. "carrier" is our transport with the
same messages; its ratio to bare gRPC is what reconnects, numbering and waiting cost.
"""

from __future__ import annotations

import argparse
import queue
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.graphs import Knowledge
from isthmus.statistics import Schema
from isthmus.watch import Watch
from isthmus_joint import (
    ADMM,
    Extract,
    Federation,
    FileLedger,
    Identity,
    Member,
    Policy,
    SecureSums,
    Signature,
    SiteController,
    Study,
    Transport,
)
from isthmus_joint.secure_sum.envelopes import LARGEST, size_of
from isthmus_joint.transport.certificates import own_certificate
from isthmus_joint.transport.over_grpc import (
    CoordinatorCredentials,
    GrpcSite,
    GrpcTransport,
    SiteCredentials,
    grpc_library,
)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Recording(Transport):
    """Passes messages on, and keeps the sizes of all exchanges."""

    def __init__(self, inner: GrpcTransport) -> None:
        self._inner = inner
        self.exchanges: list[dict[str, tuple[int, int]]] = []

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        answers = list(self._inner.exchange(outgoing))
        sizes = sorted(map(len, answers))
        self.exchanges.append(
            {n: (len(m), s) for (n, m), s in zip(outgoing.items(), sizes, strict=True)}
        )
        return answers


class Certified:
    """Certificates of a coordinator and of sites."""

    def __init__(self, names: list[str]) -> None:
        certificate, key = own_certificate("benchmark", ["localhost", "127.0.0.1"])
        self.sites: dict[str, SiteCredentials] = {}
        for name in names:
            self.sites[name] = SiteCredentials(*own_certificate(name), certificate)
        pinned = {n: c.certificate for n, c in self.sites.items()}
        self.coordinator = CoordinatorCredentials(certificate, key, pinned)


def study_of(names: list[str], d: int) -> tuple[Study, list[Signature], dict[str, Identity]]:
    keys = {n: Identity.generate() for n in (*names, "author", "coordinator")}
    schema = Schema.continuous([f"x{i}" for i in range(d)])
    study = Study.draft(
        "Cost",
        purpose="benchmark",
        author=keys["author"].public,
        coordinator=keys["coordinator"].public,
        members=[Member(n, f"Organisation {n}", keys[n].public) for n in names],
        schema=schema,
        bounds=dict.fromkeys(schema.names, (-10.0, 10.0)),
        protocol=SecureSums(),
        requests=["moments", "totals", "consensus"],
        rounds=1000,
        exact=True,
    )
    signatures = [study.sign(keys["author"])] + [study.sign(keys[n], n) for n in names]
    return study, signatures, keys


def policy_of(study: Study, folder: Path) -> Policy:
    return Policy(
        minimum_cohort=2,
        minimum_cell=1,
        minimum_organisations=3,
        variables=study.schema.names,
        protocols=(study.protocol.name,),
        requests=tuple(sorted(study.requests)),
        rounds_per_study=10**6,
        rounds_per_year=10**6,
        queries_per_year=10**6,
        stop_file=folder / "STOP",
        exact_studies=("*",),
        columns_per_row=9.0,
        largest_share=1.0,
        peers=study.members,
    )


def bare(certified: Certified, exchanges: list[dict[str, tuple[int, int]]]) -> tuple[float, float]:
    """Carry messages of these sizes over plain streams; return seconds and CPU seconds."""
    grpc = grpc_library()
    names = list(certified.sites)
    outboxes: dict[str, queue.SimpleQueue[bytes | None]] = {n: queue.SimpleQueue() for n in names}
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    big = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))

    def connected(requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
        name = next(requests).decode()

        def read() -> None:
            for answer in requests:
                inbox.put(answer)

        pool.submit(read)
        while (message := outboxes[name].get()) is not None:
            yield message

    pool = ThreadPoolExecutor(len(names))
    server = grpc.server(ThreadPoolExecutor(2 * len(names) + 4), options=big)
    handler = grpc.stream_stream_rpc_method_handler(connected)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("b", {"C": handler}),))
    port = server.add_secure_port("127.0.0.1:0", certified.coordinator.server())
    server.start()
    sizes = {n: [e[n][1] for e in exchanges if n in e] for n in names}

    def site(name: str) -> None:
        options = (*big, ("grpc.ssl_target_name_override", "localhost"))
        with grpc.secure_channel(
            f"127.0.0.1:{port}", certified.sites[name].channel(), options
        ) as channel:
            answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            answers.put(name.encode())
            left = iter(sizes[name])
            for _ in channel.stream_stream("/b/C")(iter(answers.get, None)):
                answers.put(bytes(next(left, 0)))
            answers.put(None)

    sites = ThreadPoolExecutor(len(names))
    for name in names:
        sites.submit(site, name)
    for name in names:  # wait until all are connected
        outboxes[name].put(b"")
    for name in names:
        sizes[name].insert(0, 0)
    for _ in names:
        inbox.get()
    start, used = time.perf_counter(), cpu()
    for exchange in exchanges:
        for name, (size, _) in exchange.items():
            outboxes[name].put(bytes(size))
        for _ in exchange:
            inbox.get()
    spent = time.perf_counter() - start, cpu() - used
    for name in names:
        outboxes[name].put(None)
    sites.shutdown()
    server.stop(0.5).wait()
    return spent


def carried(
    certified: Certified, exchanges: list[dict[str, tuple[int, int]]]
) -> tuple[float, float]:
    """Carry messages of these sizes over our transport; return seconds and CPU seconds."""
    with ExitStack() as stack:
        transport = stack.enter_context(
            GrpcTransport("127.0.0.1", 0, certified.coordinator, bytes(32), size_of(LARGEST))
        )
        for name, credentials in certified.sites.items():
            sizes = iter([e[name][1] for e in exchanges if name in e])
            stack.enter_context(
                GrpcSite(
                    f"127.0.0.1:{transport.port}",
                    credentials,
                    bytes(32),
                    lambda _, sizes=sizes: bytes(next(sizes)),  # type: ignore[misc]
                    2**28,
                )
            )
        transport.gather(certified.sites)
        start, used = time.perf_counter(), cpu()
        for exchange in exchanges:
            messages = {n: bytes(size) for n, (size, _) in exchange.items()}
            assert len(list(transport.exchange(messages))) == len(exchange)
        return time.perf_counter() - start, cpu() - used


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sites", type=int, default=3)
    options.add_argument("--variables", type=int, default=50)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--steps", type=int, default=20)
    given = options.parse_args()
    names = [f"s{i}" for i in range(given.sites)]
    certified = Certified(names)
    study, signatures, keys = study_of(names, given.variables)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        inner = stack.enter_context(
            GrpcTransport("127.0.0.1", 0, certified.coordinator, study.identity, size_of(LARGEST))
        )
        for site in names:
            table = np.clip(rng.normal(size=(given.rows, given.variables)), -9, 9)
            data = {n: table[:, i] for i, n in enumerate(study.schema.names)}
            controller = SiteController(
                study,
                signatures,
                keys[site],
                Extract.freeze(study, data, policy_of(study, folder)),
                policy_of(study, folder),
                FileLedger(folder / f"{site}.jsonl"),
            )
            stack.enter_context(
                GrpcSite(
                    f"127.0.0.1:{inner.port}",
                    certified.sites[site],
                    study.identity,
                    controller.site().handle,
                    2**28,
                )
            )
        inner.gather(names)
        print(f"{given.sites} sites, {given.variables} variables, {given.rows} rows per site")
        walls, cpus, first = [], [], 1
        transport = Recording(inner)
        for _ in range(given.repeat):
            transport = Recording(inner)
            federation = Federation(
                study, signatures, keys["coordinator"], transport, first_round=first
            )
            start, used = time.perf_counter(), cpu()
            federation.moments()
            walls.append(time.perf_counter() - start)
            cpus.append(cpu() - used)
            first += 1
        sizes = [pair for e in transport.exchanges for pair in e.values()]
        inwards, outwards = (sum(side) / given.sites / 1e3 for side in zip(*sizes, strict=True))
        print(
            f"five-exchange sum: {min(walls):.3f} s (median {np.median(walls):.3f}), "
            f"{np.median(cpus):.3f} CPU s; a site sends {outwards:.1f} kB and receives "
            f"{inwards:.1f} kB"
        )
        federation = Federation(study, signatures, keys["coordinator"], inner, first_round=first)
        times: list[float] = [time.perf_counter()]
        used = cpu()
        known = Knowledge().bind(federation.schema().names)
        consensus = federation.objective(ADMM.accepts)
        watch = Watch(stop=lambda: bool(times.append(time.perf_counter())))
        ADMM(rounds=given.steps).search(consensus, known, np.random.default_rng(0), watch)
        rounds = np.diff(times)[1:]
        print(
            f"ADMM round: median {np.median(rounds):.3f} s, all {given.steps} rounds "
            f"{cpu() - used:.2f} CPU s"
        )
        exchanges = transport.exchanges * 20
        plain, ours = [], []
        for _ in range(given.repeat):
            plain.append(bare(certified, exchanges))
            ours.append(carried(certified, exchanges))
        a, b = np.median(plain, axis=0), np.median(ours, axis=0)
        print(
            f"the same messages, 20 sums: bare gRPC {a[0]:.3f} s, {a[1]:.3f} CPU s; "
            f"carrier {b[0]:.3f} s, {b[1]:.3f} CPU s; CPU ratio {b[1] / a[1]:.2f}"
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"peak memory of all parties together: {peak} MB")


if __name__ == "__main__":
    main()
