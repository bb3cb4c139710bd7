#!/usr/bin/env python3
"""What clients can take: attacks on `everbloom serve` and on redis-server, and what others notice.

    cargo build --release -p everbloom-cli
    python3 benches/attacks/run.py [--only WORD] [--bin target/release/everbloom]

Needs redis-server, two cores and 8 GB of memory. The server has core 0 for all its threads, so the
attacker and the others share its only worker. The load is on core 1. Each attack starts a fresh server.
A server with more than 6 GB resident is killed: so that it does not stop the machine.

Meanwhile a process of its own asks a small GET every millisecond over another connection. Its p99 and worst
reply are in the table, with the most memory that was resident (VmHWM) during the attack, and used_memory
at its end.
"""
import argparse
import contextlib
import multiprocessing
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from servers import Client, everbloom, redis, request  # noqa: E402

MEGABYTE = 1_000_000
KEYS = 3_000_000
# What a server may take of the machine.
MOST = 6000 * MEGABYTE
# Items of a filter of 2.4 GB that does not grow, at 0.0001.
LARGE = 1_000_000_000
BOTH = ("everbloom", "redis-server")
OURS = ("everbloom",)


def ask(begun, stop, result):
    """One GET after the other until told to stop; sends the seconds that each took."""
    client, times = Client(), []
    with contextlib.suppress(OSError):
        while not stop.is_set():
            start = time.perf_counter()
            try:
                client.call("GET", "small")
            finally:
                times.append(time.perf_counter() - start)
            begun.set()
            time.sleep(0.001)
    result.send(times)


def guard(server, stop):
    while not stop.wait(0.02) and server.child.poll() is None:
        with contextlib.suppress(OSError):
            if server.memory("VmRSS") > MOST:
                server.child.kill()


@contextlib.contextmanager
def attack(server, name):
    """Measures what others see of the block; it may set `note`."""
    begun, stop = multiprocessing.Event(), multiprocessing.Event()
    ours, theirs = multiprocessing.Pipe()
    watcher = multiprocessing.Process(target=ask, args=(begun, stop, theirs))
    watcher.start()
    begun.wait()
    with open("/proc/%d/clear_refs" % server.child.pid, "w") as peak:
        peak.write("5")
    threading.Thread(target=guard, args=(server, stop), daemon=True).start()
    row = argparse.Namespace(note="")
    try:
        yield row
    except (OSError, RuntimeError) as error:
        row.note = str(error)
    used, survived = "", "no"
    with contextlib.suppress(OSError):
        peak = "%.0f" % (server.memory("VmHWM") / MEGABYTE)
        used = "%.0f" % (int(Client().info("used_memory")) / MEGABYTE)
        survived = "yes"
    if survived == "no":
        peak = "over %d" % (MOST // MEGABYTE)
    stop.set()
    times = sorted(ours.recv())
    watcher.join()
    print("| %s | %s | %.1f | %.1f | %s | %s | %s | %s |" % (
        name, server.name, times[len(times) * 99 // 100] * 1e3, times[-1] * 1e3, peak, used, survived,
        row.note), flush=True)


def milliseconds(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def fill(command, *more):
    """Sends the command for 3 million keys."""
    client, step = Client(), 10_000
    for first in range(0, KEYS, step):
        client.sock.sendall(b"".join(request(command, "key:%08d" % n, *more)
                                     for n in range(first, first + step)))
        for _ in range(step):
            client.reply()


def nothing(server):
    with attack(server, "none, 5 s"):
        time.sleep(5)


def unread_gets(server):
    greedy = Client()
    greedy.call("SET", "large", b"x" * 50 * MEGABYTE)
    with attack(server, "500 pipelined GETs of 50 MB, unread for 5 s"):
        greedy.sock.sendall(request("GET", "large") * 500)
        time.sleep(5)


def unread_scandumps(server):
    greedy = Client()
    greedy.call("BF.RESERVE", "large", "0.01", 14_000_000, "NONSCALING")
    with attack(server, "400 pipelined SCANDUMPs of 16 MB, unread for 5 s"):
        greedy.sock.sendall(request("BF.SCANDUMP", "large", 1) * 400)
        time.sleep(5)


def announced(server):
    with attack(server, "3000 connections that announce $512000000"):
        clients = [Client() for _ in range(3000)]
        for client in clients:
            client.sock.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$512000000\r\n")
        time.sleep(2)


def endless_transaction(server):
    greedy, value = Client(), b"x" * 100_000
    greedy.call("CONFIG", "SET", "maxmemory", "50mb")
    refused = []
    with attack(server, "MULTI and 440 MB of SETs, maxmemory 50 MB") as row:
        greedy.call("MULTI")
        for queued in range(4400):
            try:
                greedy.call("SET", "k", value)
            except RuntimeError as error:
                code = str(error).split()[0]
                refused.append("%s after %.0f MB" % (code, queued * len(value) / MEGABYTE))
        row.note = refused[0] if refused else "never refused"


def statistics_of_large(server):
    greedy = Client()
    greedy.call("BF.RESERVE", "large", "0.01", 417_000_000, "NONSCALING")
    batch = request("BF.STATS", "large") * 1400
    with attack(server, "1400 pipelined BF.STATS, 500 MB (classic), CLIENT KILL") as row:
        greedy.sock.sendall(batch)
        time.sleep(0.1)
        took = milliseconds(lambda: Client().call("CLIENT", "KILL", "SKIPME", "no"))
        row.note = "killed in %.1f ms" % took
    Client().sock.sendall(batch)
    time.sleep(0.1)
    server.child.send_signal(signal.SIGTERM)
    print("| the same, SIGTERM | %s | | | | | ended in %.0f ms |"
          % (server.name, milliseconds(server.child.wait)))


def many_keys(server):
    fill("SET", "1")
    client = Client()
    with attack(server, "100 INFOs, 3 million keys") as row:
        row.note = "median %.2f ms" % statistics.median(
            milliseconds(lambda: client.call("INFO")) for _ in range(100))
    with attack(server, "SCAN to the end in steps of 100") as row:
        cursor, found, begun = b"0", 0, time.perf_counter()
        while True:
            cursor, keys = client.call("SCAN", cursor, "COUNT", 100)
            found += len(keys)
            if cursor == b"0":
                break
        row.note = "%d keys in %.1f s" % (found, time.perf_counter() - begun)
    flush(server, client, "FLUSHALL of 3 million strings")


def many_filters(server):
    fill("BF.ADD", "item")
    flush(server, Client(), "FLUSHALL of 3 million filters")


def flush(server, client, name):
    with attack(server, name) as row:
        row.note = "OK after %.1f ms" % milliseconds(lambda: client.call("FLUSHALL"))
        time.sleep(2)


def first_items(server):
    client = Client()
    client.call("BF.RESERVE", "large", "0.0001", LARGE, "NONSCALING")
    with attack(server, "1000 BF.ADDs into a new filter of 2.4 GB") as row:
        row.note = "slowest add %.1f ms" % max(
            milliseconds(lambda: client.call("BF.ADD", "large", n)) for n in range(1000))


def files_of_empty(server):
    client = Client(600)
    client.call("BF.RESERVE", "large", "0.0001", LARGE, "NONSCALING")
    with attack(server, "BGSAVE of an empty filter of 2.4 GB") as row:
        client.call("BGSAVE")
        while client.info("rdb_bgsave_in_progress") == "1":
            time.sleep(0.1)
        folder = client.call("CONFIG", "GET", "dir")[1].decode()
        row.note = "%.1f MB" % (os.path.getsize(os.path.join(folder, "dump.rdb")) / MEGABYTE)
    with attack(server, "its DUMP") as row:
        try:
            row.note = "%.1f MB" % (len(client.call("DUMP", "large")) / MEGABYTE)
        except RuntimeError as error:
            row.note = str(error)


ATTACKS = [
    (nothing, BOTH), (unread_gets, BOTH), (unread_scandumps, OURS), (announced, BOTH),
    (endless_transaction, BOTH), (statistics_of_large, OURS), (many_keys, BOTH), (many_filters, OURS),
    (first_items, OURS), (files_of_empty, OURS),
]


def describe(binary):
    def said(*command):
        return subprocess.run(command, capture_output=True, text=True, cwd=HERE).stdout.strip()
    with open("/proc/cpuinfo") as info:
        cpu = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    print("%s (revision %s); %s; %s, Linux %s\n" % (
        said(os.path.abspath(binary), "--version"), said("git", "rev-parse", "--short", "HEAD"),
        said("redis-server", "--version").split(" sha=")[0], cpu, os.uname().release))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="target/release/everbloom")
    parser.add_argument("--only", default="", help="a part of the name of the attack's function")
    args = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    describe(args.bin)
    print("| attack | server | others' p99 ms | others' worst ms | resident MB | used_memory MB "
          "| survived | |\n|---|---|--:|--:|--:|--:|---|---|")
    for run, hosts in ATTACKS:
        for host in hosts:
            if args.only not in run.__name__:
                continue
            folder = tempfile.mkdtemp(prefix="everbloom-bench-")
            server = (everbloom(args.bin, folder, "--appendonly", "no") if host == "everbloom"
                      else redis(folder))
            try:
                Client().call("SET", "small", "value")
                run(server)
            except (OSError, RuntimeError) as error:
                print("| %s | %s | | | | | | %s |" % (run.__name__, host, error), flush=True)
            finally:
                server.stop()
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
