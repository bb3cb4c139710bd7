#!/usr/bin/env python3
"""What persistence costs: the pause and the memory of a snapshot, and the log's throughput.

    cargo build --release -p everbloom-cli && cargo build --release --manifest-path benches/Cargo.toml
    python3 benches/persistence/run.py [--rounds 5] [--bin target/release/everbloom]

Needs redis-server and two cores. Servers run on core 0 (their background threads and children where the
system puts them), the load on core 1. Medians of the rounds; subjects take turns within a round.

Pause: a filter of 1.2 GB, all of its pages in memory, is saved by BGSAVE while one client asks, one
request at a time and in turn, BF.EXISTS and BF.ADD on that key and on a small one. Beside it
redis-server saves strings of the same size while the client sends GETBIT and SETBIT at random places.
Memory is the resident peak (VmHWM) over the resident size before.

Log: BF.ADD over 50 connections at pipeline 128 with `appendonly no` and with `everysec`; and with `always`
over 50 connections, with and without pipelining, beside one connection, where each command has an fsync of its own.
"""
import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from servers import PORT, Client, everbloom, load, redis  # noqa: E402

MEBIBYTE = 1 << 20


def quantile(times, q):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * q))] * 1000


def measure(client, ops, going_on):
    """Milliseconds at p99.9 and at most, of each operation."""
    times = {name: [] for name in ops}
    while going_on():
        for name, op in ops.items():
            for _ in range(50):
                start = time.perf_counter()
                client.call(*op())
                times[name].append(time.perf_counter() - start)
    return {name: (quantile(t, 0.999), max(t) * 1000, len(t)) for name, t in times.items()}


def pause(server, ops, rounds):
    client = Client()
    resident = server.memory("VmRSS") / MEBIBYTE
    rows = {"quiet": [], "saving": []}
    seconds = []
    for _ in range(rounds):
        end = time.time() + 3
        rows["quiet"].append(measure(client, ops, lambda: time.time() < end))
        start = time.time()
        Client().call("BGSAVE")
        watcher, last = Client(), [0.0]

        def saving():
            last[0] = time.time()
            return watcher.info("rdb_bgsave_in_progress") == "1"
        rows["saving"].append(measure(client, ops, saving))
        seconds.append(time.time() - start)
        assert watcher.info("rdb_last_bgsave_status") == "ok"
    peak = server.memory("VmHWM") / MEBIBYTE
    print("resident %.0f MB, peak %.0f MB: %.3f times; a snapshot takes %.1f s" % (
        resident, peak, peak / resident,
        statistics.median(seconds)))
    for name in ops:
        cells = []
        for mode in ("quiet", "saving"):
            cells.append("%.2f" % statistics.median(r[name][0] for r in rows[mode]))
            cells.append("%.2f" % statistics.median(r[name][1] for r in rows[mode]))
        print("| %s | %s |" % (name, " | ".join(cells)))


def pauses(args, folder):
    print("\n| operation | p99.9 ms, quiet | most | p99.9 ms, saving | most |\n|---|---|---|---|---|")
    server = everbloom(args.bin, folder, "--appendonly", "no")
    try:
        client = Client()
        client.call("BF.RESERVE", "large", "0.001", "610000000")
        client.call("BF.RESERVE", "other", "0.001", "1000000")
        items = iter(range(10**12))
        for _ in range(4000):
            client.call("BF.MADD", "large", *(b"i%d" % next(items) for _ in range(500)))
        pick = lambda: b"i%d" % random.randrange(4_000_000)
        server.unpin()
        pause(server, {
            "BF.EXISTS, the key being saved": lambda: ("BF.EXISTS", "large", pick()),
            "BF.ADD, the key being saved": lambda: ("BF.ADD", "large", b"i%d" % next(items)),
            "BF.EXISTS, another key": lambda: ("BF.EXISTS", "other", pick()),
            "BF.ADD, another key": lambda: ("BF.ADD", "other", b"i%d" % next(items)),
        }, args.rounds)
    finally:
        server.stop()
    server = redis(folder, "--rdbcompression", "no")
    try:
        client = Client()
        for n in range(3):
            client.call("SETBIT", "large%d" % n, 8 * 400 * 2**20 - 1, 1)
            for at in range(0, 400 * 2**20, 4096):
                if at % (4096 * 64) == 0:
                    client.call("SETRANGE", "large%d" % n, at, os.urandom(4096 * 64))
        spot = lambda: random.randrange(8 * 400 * 2**20)
        key = lambda: "large%d" % random.randrange(3)
        pause(server, {
            "redis-server, GETBIT": lambda: ("GETBIT", key(), spot()),
            "redis-server, SETBIT": lambda: ("SETBIT", key(), spot(), 1),
        }, args.rounds)
    finally:
        server.stop()


def throughput(args, folder):
    figures = {}
    plans = {
        "BF.ADD, pipeline 128, no log": (["--appendonly", "no"], ["--pipeline", "128"]),
        "BF.ADD, pipeline 128, everysec": (["--appendfsync", "everysec"], ["--pipeline", "128"]),
        "BF.ADD, 1 connection, always": (["--appendfsync", "always"], ["--clients", "1"]),
        "BF.ADD, 50 connections, always": (["--appendfsync", "always"], ["--clients", "50"]),
        "BF.ADD, 50 connections, pipeline 16, always":
            (["--appendfsync", "always"], ["--clients", "50", "--pipeline", "16"]),
        "BF.ADD, 50 connections, pipeline 128, always":
            (["--appendfsync", "always"], ["--clients", "50", "--pipeline", "128"]),
    }
    for _ in range(args.rounds):
        for name, (settings, words) in plans.items():
            shutil.rmtree(os.path.join(folder, "everbloom-data"), ignore_errors=True)
            server = everbloom(args.bin, folder, *settings)
            server.unpin()
            try:
                figures.setdefault(name, []).append(load(
                    PORT, "--command", "add", "--reserve", "20000000,0.001", "--seconds", "3",
                    *words)["items_per_second"])
            finally:
                server.stop()
    print("\n| load | adds a second |\n|---|---|")
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, value in medians.items():
        print("| %s | %.0f |" % (name, value))
    names = list(plans)
    print("\neverysec over no log: %.2f; always, 50 connections over 1: %.1f, with pipeline 16: %.1f, "
          "with pipeline 128: %.1f" % (
              medians[names[1]] / medians[names[0]],
              *(medians[name] / medians[names[2]] for name in names[3:])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bin", default="target/release/everbloom")
    parser.add_argument("--only", choices=["pause", "log"])
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="everbloom-bench-")
    try:
        if args.only != "log":
            pauses(args, folder)
        if args.only != "pause":
            throughput(args, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
