"""What does a request cost beside the bare call, and does waiting together pay?

A service in a process of its own, asked over loopback: lists per second and their latency with one
client and with sixteen, beside `Recommender.recommend` of the same users in this process; durable
events per second on SQLite and, with --postgres URL, on PostgreSQL; and the time from a click to
the changed list. `ratio` is a request's median over the bare call's, with one client;
`undisturbed_ratio` that of the fastest tenth of each. A request wakes four threads one after the
other, and on a busy machine each of them waits for its turn, which the bare call does not;
`cpu_ratio` is that of the processor time of both processes. Both use one thread of BLAS, as the
service does anyway: a second one of the bare call would spin for 30 ms after each product, on a
core that the service needs.

For each model also: what reasons cost beside the list, the 99th percentile of short lists alone and
beside a stream of the largest requests that are allowed, the memory of the process, and how long
/health takes while a thousand clients send their requests byte by byte.

    python -m benchmarks.service --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from threadpoolctl import threadpool_limits

from ltocf.data.sources.catalog import load_dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.settings import make_config

K = 20
CLIENTS = 16
CHUNK = 1 << 20  # bytes to read at a time
Call = Callable[[http.client.HTTPConnection, int], None]


class Service:
    """`ltocf serve` on a free port."""

    def __init__(self, run: Path, events: str) -> None:
        command = [sys.executable, "-m", "ltocf", "serve", str(run), "--port", "0"]
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--events", events], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        lines = (line for line in self.process.stderr if "http://" in line)
        self.port = int(next(lines).split("127.0.0.1:")[1].split()[0])
        self.start_seconds = time.perf_counter() - started

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def cpu_seconds(self) -> float:
        """The processor time of its process until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self, kind: str = "RssAnon") -> float:
        """Of memory: RssAnon is its own, VmRSS also counts mapped files that others may share."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kilobytes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
        return int(kilobytes[kind]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    """The answer, read by hand: http.client parses headers as those of an e-mail, and what that
    takes is no cost of the service."""
    if connection.sock is None:
        connection.connect()
    line = f"GET {path} HTTP/1.1\r\nHost: {connection.host}:{connection.port}\r\n\r\n"
    connection.sock.sendall(line.encode())
    head, body = b"", connection.sock.recv(CHUNK)
    while not head:
        before, end, after = body.partition(b"\r\n\r\n")
        if end:
            head, body = before, after
        else:
            body += connection.sock.recv(CHUNK)
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert head.startswith(b"HTTP/1.1 200") and length is not None, head
    while len(body) < int(length[1]):
        body += connection.sock.recv(CHUNK)
    return body


def post(connection: http.client.HTTPConnection, path: str, value: object) -> None:
    connection.request("POST", path, json.dumps(value), {"content-type": "application/json"})
    reply = connection.getresponse()
    body = reply.read()
    assert reply.status == 201, body


def load(service: Service, clients: int, calls: int, call: Call) -> dict[str, float]:
    """Calls per second, and the median and 99th percentile of their milliseconds."""
    taken: list[list[float]] = [[] for _ in range(clients)]

    def ask(client: int) -> None:
        connection = service.connect()
        for n in range(client, calls, clients):
            started = time.perf_counter()
            call(connection, n)
            taken[client].append(1000 * (time.perf_counter() - started))
        connection.close()

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    every = np.concatenate(taken)
    p50, p99 = np.quantile(every, [0.5, 0.99])
    return {"per_second": calls / elapsed, "p50_ms": float(p50), "p99_ms": float(p99)}


def store_run(path: Path, data: str, name: str) -> Recommender:
    """GF-CF as it is, LT-OCF with vectors that were not trained: their values do not matter."""
    dataset = load_dataset(data)
    if name != "ltocf":
        recommender = Recommender(name).fit(dataset)
        Run.store(path, recommender.config, dataset, recommender.model, {})
        return Recommender.load(path)
    model = build_model(BipartiteGraph(dataset.split.train), "ltocf", {})
    model.initialise_(0)
    config = make_config({}, [f"dataset={json.dumps(str(data))}"])
    Run.store(path, config, dataset, model, {})
    return Recommender.load(path)


def measure_reasons(service: Service, recommender: Recommender, requests: int) -> dict[str, float]:
    """Lists of 10 with and without their reasons, in turn."""
    ids = recommender.dataset.split.train.user_ids
    users = ids[np.random.default_rng(1).integers(len(ids), size=requests)]
    connection = service.connect()
    taken: dict[str, list[float]] = {"": [], "&reasons=true": []}
    for user in users:
        for option, times in taken.items():
            started = time.perf_counter()
            get(connection, f"/users/{quote(str(user), safe='')}/recommendations?k=10{option}")
            times.append(1000 * (time.perf_counter() - started))
    plain, reasons = (statistics.median(times) for times in taken.values())
    return {"list_of_10_p50_ms": plain, "reasons_p50_ms": reasons, "reasons_ratio": reasons / plain}


def ask_much(port: int, largest: list[dict[str, Any]], answered: Any, ended: Any) -> None:
    """Ask for these in turn, without a pause, until it is `ended`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for number in count():
        if ended.is_set():
            break
        body = json.dumps(largest[number % len(largest)])
        connection.request("POST", "/recommendations", body, {"content-type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status in (200, 503), reply.status
        answered.value += 1


def measure_beside_large(
    service: Service, recommender: Recommender, requests: int
) -> dict[str, float]:
    """One client's short lists alone, and beside another who asks for as much as is allowed: twice
    as many, so that a few of the largest requests are answered in the meantime."""
    ids = recommender.dataset.split.train.user_ids
    random = np.random.default_rng(2)
    requests = 2 * requests
    users = [str(user) for user in ids[random.integers(len(ids), size=requests)]]
    paths = [f"/users/{quote(user, safe='')}/recommendations?k={K}" for user in users]
    some = [str(user) for user in ids[np.arange(500)]]
    largest = [{"users": some, "k": 200}, {"users": some[:5], "k": 1000, "reasons": True}]
    alone = load(service, 1, requests, lambda c, n: void(get(c, paths[n])))
    # A process of its own, as another client is: its thread would hold up the one that measures.
    context = multiprocessing.get_context("spawn")
    answered, ended = context.Value("i", 0), context.Event()
    other = context.Process(target=ask_much, args=(service.port, largest, answered, ended))
    other.start()
    while not answered.value:
        assert other.is_alive()
        time.sleep(0.01)
    answered.value = 0
    beside = load(service, 1, requests, lambda c, n: void(get(c, paths[n])))
    large_answered = answered.value
    ended.set()
    other.join()
    return {
        "alone_p50_ms": alone["p50_ms"],
        "alone_p99_ms": alone["p99_ms"],
        "beside_large_p50_ms": beside["p50_ms"],
        "beside_large_p99_ms": beside["p99_ms"],
        "beside_large_ratio": beside["p99_ms"] / alone["p99_ms"],
        "large_answered": large_answered,
    }


def measure_slow_clients(service: Service, clients: int = 1000) -> dict[str, float]:
    """/health while so many send half a request and no more."""
    slow = []
    for _ in range(clients):
        one = socket.create_connection(("127.0.0.1", service.port))
        one.sendall(b"GET /health HTTP/1.1\r\nx-slow: ")
        slow.append(one)
    taken = []
    for _ in range(50):
        started = time.perf_counter()
        connection = service.connect()
        get(connection, "/health")
        connection.close()
        taken.append(1000 * (time.perf_counter() - started))
    for one in slow:
        one.close()
    return {
        "slow_clients": clients,
        "health_p50_ms": statistics.median(taken),
        "health_longest_ms": max(taken),
    }


def measure_lists(service: Service, recommender: Recommender, requests: int) -> dict[str, float]:
    ids = recommender.dataset.split.train.user_ids
    random = np.random.default_rng(0)
    users = ids[random.integers(len(ids), size=requests)]
    paths = [f"/users/{quote(str(user), safe='')}/recommendations?k={K}" for user in users]
    connection = service.connect()
    bare, served, bare_cpu, client_cpu = [], [], 0.0, 0.0
    before = service.cpu_seconds()
    for user, path in zip(users, paths, strict=True):  # in turn: a noisy moment hits both
        started, cpu = time.perf_counter(), time.process_time()
        recommender.recommend(user, K)
        bare_cpu += time.process_time() - cpu
        middle, cpu = time.perf_counter(), time.process_time()
        get(connection, path)
        client_cpu += time.process_time() - cpu
        bare.append(1000 * (middle - started))
        served.append(1000 * (time.perf_counter() - middle))
    served_cpu = service.cpu_seconds() - before + client_cpu
    (bare_p10, bare_p50), (p10, p50, p99) = (
        np.quantile(bare, [0.1, 0.5]).tolist(),
        np.quantile(served, [0.1, 0.5, 0.99]).tolist(),
    )
    result = {
        "bare_p50_ms": bare_p50,
        "one_client_p50_ms": p50,
        "one_client_p99_ms": p99,
        "ratio": p50 / bare_p50,
        "undisturbed_bare_ms": bare_p10,
        "undisturbed_ms": p10,
        "undisturbed_ratio": p10 / bare_p10,
        "cpu_ratio": served_cpu / bare_cpu,
    }
    for clients in (1, CLIENTS):
        found = load(service, clients, requests, lambda c, n: void(get(c, paths[n])))
        result |= {f"{clients}_clients_{name}": value for name, value in found.items()}
    result["batching_ratio"] = (
        result[f"{CLIENTS}_clients_per_second"] / result["1_clients_per_second"]
    )
    return result


def void(value: object) -> None:
    pass


def measure_events(service: Service, recommender: Recommender, events: int) -> dict[str, float]:
    items = recommender.dataset.split.train.item_ids.ids.to_list()

    def one(connection: http.client.HTTPConnection, n: int) -> None:
        post(connection, "/events", {"user": f"new {n % 500}", "item": items[n % len(items)]})

    single = load(service, CLIENTS, events, one)

    def hundred(connection: http.client.HTTPConnection, n: int) -> None:
        many = [{"user": f"new {n}", "item": items[(n + m) % len(items)]} for m in range(100)]
        post(connection, "/events", {"events": many})

    many = load(service, CLIENTS, max(events // 50, CLIENTS), hundred)
    return {
        "events_per_second": single["per_second"],
        "event_p50_ms": single["p50_ms"],
        "events_by_hundreds_per_second": 100 * many["per_second"],
    }


def measure_click(service: Service, recommender: Recommender, clicks: int) -> dict[str, float]:
    """An event and the list after it: two requests, in which the list always changes."""
    connection, taken = service.connect(), []
    items = recommender.dataset.split.train.item_ids.ids.to_list()
    path, before = f"/users/clicker/recommendations?k={K}", b""
    for n in range(clicks):
        started = time.perf_counter()
        post(connection, "/events", {"user": "clicker", "item": items[n]})
        after = get(connection, path)
        taken.append(1000 * (time.perf_counter() - started))
        assert after != before
        before = after
    return {"click_to_list_p50_ms": statistics.median(taken)}


def measure_model(directory: Path, name: str, arguments: argparse.Namespace) -> dict[str, float]:
    directory.mkdir()
    recommender = store_run(directory / "run", arguments.data, name)
    stores = {"sqlite": f"{directory}/events.db"}
    if arguments.postgres and name == arguments.models[0]:
        stores["postgresql"] = arguments.postgres
    result: dict[str, float] = {}
    for kind, store in stores.items():
        service = Service(directory / "run", store)
        try:
            if kind == "sqlite":
                result["start_seconds"] = service.start_seconds
                result["megabytes_at_start"] = service.megabytes()
                result["rss_megabytes_at_start"] = service.megabytes("VmRSS")
                result |= measure_lists(service, recommender, arguments.requests)
                result |= measure_reasons(service, recommender, arguments.requests)
                result |= measure_beside_large(service, recommender, arguments.requests)
                result |= measure_slow_clients(service)
                result |= measure_click(service, recommender, 50)
                result["megabytes_at_end"] = service.megabytes()
            found = measure_events(service, recommender, arguments.events)
            result |= {f"{kind}_{key}": value for key, value in found.items()}
        finally:
            service.stop()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="town")
    parser.add_argument("--models", nargs="+", default=["ltocf", "gfcf"])
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--postgres", metavar="URL", help="an empty database")
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    arguments = parser.parse_args()
    threadpool_limits(1, user_api="blas")
    result: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.models:
            found = measure_model(Path(directory) / name, name, arguments)
            result |= {f"{name} {key}": value for key, value in found.items()}
    if not arguments.json:
        for name, value in result.items():
            print(f"{name:48} {value:.3f}")
    print(json.dumps({"data": Path(arguments.data).name} | result))


if __name__ == "__main__":
    main()
