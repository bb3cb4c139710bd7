#!/usr/bin/env python3
"""A filter with a window of four generations beside a plain one, and beside a key for each day.

    cargo build --release
    python3 benches/windows/run.py --bin target/release/everbloom

The server is pinned to core 0 with one thread, and has no log. All filters are blocked, for ITEMS
items at 0.01. The window has as many items in each of its five generations as a quarter of ITEMS;
of seven daily keys each has a seventh. The figures are the server's processor time for one
question, in nanoseconds: seven keys are one question of seven BF.EXISTS. 128 requests are sent at
a time, or, where the name says so, 128 questions, which are 896 requests. Half of the items that
are asked for are there.
"""
import argparse
import os
import random
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import servers  # noqa: E402

PIPELINE = 128
DAYS = 7


def cpu_nanos(server):
    folder = "/proc/%d/task" % server.child.pid
    return sum(int(open("%s/%s/schedstat" % (folder, task)).read().split()[0])
               for task in os.listdir(folder))


def questions(client, server, count, at_a_time, requests_of):
    """The processor time of so many questions, each a list of requests about one item."""
    batches = []
    for start in range(0, count, at_a_time):
        requests = [it for n in range(start, start + at_a_time) for it in requests_of(n)]
        batches.append((b"".join(servers.request(*it) for it in requests), len(requests)))
    before = cpu_nanos(server)
    for batch, replies in batches:
        client.sock.sendall(batch)
        for _ in range(replies):
            client.file.readline()
    return (cpu_nanos(server) - before) / len(batches) / at_a_time


def fill(client, key, items):
    for start in range(0, len(items), 1000):
        client.call("BF.MADD", key, *items[start:start + 1000])


def measure(args, server):
    client, figures = servers.Client(), {}
    blocked = ("LAYOUT", "BLOCKED")
    for round_ in range(args.rounds):
        old = ["%d:%d" % (round_, n) for n in range(args.items * 5 // 4)]
        client.call("FLUSHALL")
        client.call("BF.RESERVE", "plain", 0.01, args.items, *blocked)
        client.call("BF.RESERVE", "window", 0.01, args.items, "WINDOW", "SECONDS", 1 << 30)
        for day in range(DAYS):
            client.call("BF.RESERVE", "day:%d" % day, 0.01 / DAYS, args.items // DAYS, *blocked)
            fill(client, "day:%d" % day, old[day * args.items // DAYS:][:args.items // DAYS])
        # Room for what is added below.
        fill(client, "plain", old[:args.items - args.questions])
        for generation in range(5):
            items = old[generation * args.items // 4:][:args.items // 4]
            last = generation == 4
            fill(client, "window", items[:len(items) - args.questions * last])
            if not last:
                client.call("BF.ADVANCE", "window")
        asked = [old[random.randrange(len(old))] if n % 2 else "absent:%d" % n
                 for n in range(args.questions + PIPELINE)]
        new = ["new:%d:%d" % (round_, n) for n in range(args.questions + PIPELINE)]

        def days(n):
            return [("BF.EXISTS", "day:%d" % day, asked[n]) for day in range(DAYS)]

        for name, at_a_time, requests_of in [
            ("EXISTS, plain", PIPELINE, lambda n: [("BF.EXISTS", "plain", asked[n])]),
            ("EXISTS, window", PIPELINE, lambda n: [("BF.EXISTS", "window", asked[n])]),
            ("EXISTS, seven days", PIPELINE // DAYS, days),
            ("EXISTS, seven days, 128 questions", PIPELINE, days),
            ("ADD, plain", PIPELINE, lambda n: [("BF.ADD", "plain", new[n])]),
            ("ADD, window", PIPELINE, lambda n: [("BF.ADD", "window", new[n])]),
        ]:
            nanos = questions(client, server, args.questions, at_a_time, requests_of)
            figures.setdefault(name, []).append(nanos)
    return {name: statistics.median(nanos) for name, nanos in figures.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="target/release/everbloom")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.abspath(args.bin), "serve", "--appendonly", "no", "--save", "",
                   "--io-threads", "1"]
        server = servers.Server("everbloom", command, folder)
        try:
            figures = measure(args, server)
        finally:
            server.child.kill()
            server.child.wait()
    for name, nanos in figures.items():
        print("%-34s %5.0f ns" % (name, nanos))
    for name, one, other in [
        ("EXISTS: plain / window", "EXISTS, plain", "EXISTS, window"),
        ("EXISTS: seven days / window", "EXISTS, seven days", "EXISTS, window"),
        ("the same, 128 questions", "EXISTS, seven days, 128 questions", "EXISTS, window"),
        ("ADD: plain / window", "ADD, plain", "ADD, window"),
    ]:
        print("%-34s %.2f" % (name, figures[one] / figures[other]))


if __name__ == "__main__":
    main()
