#!/usr/bin/env python3
"""A million small filters, and one of a billion items.

    cargo build --release && cargo build --release --manifest-path benches/Cargo.toml
    python3 benches/extremes/run.py --bin target/release/everbloom

The server is pinned to core 0 and the load to core 1; both keep no log.

Small: one connection creates a million filters by BF.ADD, one item each, keys of 12 bytes, requests
sent in pieces of 64 KiB. Memory is what the resident size of the server grows by, divided by the keys.
Beside it redis-server's ECHO at pipeline 128, the yardstick for the speed.

Large: a filter for a billion items at 0.01 is filled by BF.MADD of 100 items, asked for items
that are there and for others, saved, and loaded by a new server.
"""
import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import servers  # noqa: E402

PORT = 7421
KEYS = 1_000_000


def start(command, folder, port):
    log = open(os.path.join(folder, "log"), "a")
    child = subprocess.Popen(["taskset", "-c", "0"] + command, cwd=folder, stdout=log, stderr=log)
    while True:
        try:
            if call(port, "PING") == b"+PONG\r\n":
                return child
        except OSError:
            pass
        time.sleep(0.05)


def everbloom(args, folder):
    return start([os.path.abspath(args.bin), "serve", "--bind", "127.0.0.1", "--port", str(PORT),
                  "--appendonly", "no", "--save", "", "--io-threads", "1"], folder, PORT)


def call(port, *words):
    with socket.create_connection(("127.0.0.1", port), 3600) as sock:
        sock.sendall(b"*%d\r\n" % len(words)
                     + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
        return sock.recv(1 << 16)


def stop(child):
    child.terminate()
    child.wait()


def resident(child, field="VmRSS"):
    with open("/proc/%d/status" % child.pid) as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def small(args, folder):
    bytes_, rates, echoes = [], [], []
    requests = b"".join(b"*3\r\n$6\r\nBF.ADD\r\n$12\r\nkey:%08d\r\n$6\r\nitem-1\r\n" % i
                        for i in range(KEYS))
    for _ in range(args.rounds):
        server = everbloom(args, folder)
        before = resident(server)
        os.sched_setaffinity(0, {1})
        sock = socket.create_connection(("127.0.0.1", PORT))

        def receive():
            left = 4 * KEYS
            while left > 0:
                left -= len(sock.recv(1 << 20))

        reader = threading.Thread(target=receive)
        begun = time.perf_counter()
        reader.start()
        view = memoryview(requests)
        for at in range(0, len(requests), 1 << 16):
            sock.sendall(view[at:at + (1 << 16)])
        reader.join()
        rates.append(KEYS / (time.perf_counter() - begun))
        bytes_.append((resident(server) - before) / KEYS)
        os.sched_setaffinity(0, {0, 1})
        stop(server)
        redis = start(["redis-server", "--port", "7422", "--save", "", "--appendonly", "no"], folder, 7422)
        figures = servers.load(7422, "--command", "echo", "--pipeline", "128", "--seconds", "2")
        echoes.append(figures["requests_per_second"])
        stop(redis)
    rate, echo = statistics.median(rates), statistics.median(echoes)
    print("a default filter with one item and its key: %.0f bytes" % statistics.median(bytes_))
    print("created: %.0f a second, %.2f of redis-server's ECHO at pipeline 128 (%.0f)"
          % (rate, rate / echo, echo))


def large(args, folder):
    for layout in args.layouts.split(","):
        server = everbloom(args, folder)
        begun = time.perf_counter()
        words = "%d,0.01,NONSCALING,LAYOUT,%s" % (args.items, layout)
        probe = ["--key", "k", "--reserve", words, "--keep"]
        servers.load(PORT, "--command", "mexists", "--fill", str(args.items), "--requests", "1000", *probe)
        filled = time.perf_counter() - begun
        figures = {}
        for name, share in [("present", "1"), ("absent", "0")]:
            figures[name] = servers.load(PORT, "--command", "mexists", "--pipeline", "16", "--seconds", "3",
                                  "--filled", str(args.items), "--hit-share", share, *probe)
        memory = resident(server)
        begun = time.perf_counter()
        assert call(PORT, "SAVE") == b"+OK\r\n"
        saved = time.perf_counter() - begun
        peak = resident(server, "VmHWM")
        card = call(PORT, "BF.CARD", "k")
        stop(server)
        begun = time.perf_counter()
        server = everbloom(args, folder)
        while call(PORT, "BF.CARD", "k") != card:
            time.sleep(0.05)
        loaded = time.perf_counter() - begun
        again = servers.load(PORT, "--command", "mexists", "--pipeline", "16", "--seconds", "1",
                      "--filled", str(args.items), "--hit-share", "1", *probe)
        stop(server)
        print("%s, %d items at 0.01: filled in %.0f s; resident %.2f GB, peak while saving %.2f GB; "
              "saved in %.1f s, loaded in %.1f s" % (layout, args.items, filled, memory / 1e9, peak / 1e9,
                                                     saved, loaded))
        for name, value in list(figures.items()) + [("present, after the restart", again)]:
            print("  BF.MEXISTS, %s: %.1f million items/s, false positives %s"
                  % (name, value["items_per_second"] / 1e6, value.get("false_positive_share")))
        for name in os.listdir(folder):
            if name != "log":
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["small", "large"])
    parser.add_argument("--bin", default="target/release/everbloom")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", type=int, default=1_000_000_000)
    parser.add_argument("--layouts", default="classic,blocked")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="everbloom-bench-")
    try:
        (small if args.what == "small" else large)(args, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
