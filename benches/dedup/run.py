#!/usr/bin/env python3
"""`everbloom dedup` beside huniq and runiq: time, processor time, peak memory, and what each prints.

    cargo install huniq runiq
    cargo build --release -p everbloom-cli
    python3 benches/dedup/run.py [--lines 10000000] [--runs 5] [--bin target/release/everbloom]

Lines look like URLs, have about 87 bytes, and 7 % of them repeat an earlier one. They are made once and kept
in --file. The programs read that file as standard input and write to /dev/null, in turn, --runs times each;
the table has the medians. Before each round, and in the last two columns of the head, is the machine's load:
on a busy machine the figures mean little.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPEATS = 0.07
WORDS = 2000


def make(path, count):
    """Writes the lines; the same ones every time."""
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(4, 9))) for _ in range(WORDS)]

    def url(number):
        # An odd multiplier spreads the numbers; its parts choose the words.
        mixed = number * 0x9E3779B97F4A7C15 % (1 << 64)
        a, b, c, d, e = (words[(mixed >> shift) % WORDS] for shift in (0, 11, 22, 33, 44))
        return "https://www.%s.example/%s/%s/%s-%s?id=%012d&page=%d&l=en\n" % (
            a, b, c, d, e, number * 2654435761 % (1 << 39), number % 97)

    different = 0
    with open(path + ".part", "w") as file:
        for _ in range(count):
            if different and rng.random() < REPEATS:
                file.write(url(rng.randrange(different)))
            else:
                file.write(url(different))
                different += 1
    os.rename(path + ".part", path)


def measure(command, path):
    """Seconds, seconds of processor time, and megabytes at the peak."""
    with open(path, "rb") as lines:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=lines, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit("%s failed with %d" % (command, child.returncode))
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def printed(command, path):
    """How many lines it prints."""
    with open(path, "rb") as lines:
        child = subprocess.Popen(command, stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        count = 0
        while piece := child.stdout.read(1 << 20):
            count += piece.count(b"\n")
        child.wait()
    return count


def version(command):
    outcome = subprocess.run([command[0], "--version"], capture_output=True, text=True)
    return (outcome.stdout or outcome.stderr).strip().splitlines()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bin", default="target/release/everbloom")
    parser.add_argument("--file", help="where the lines are, or will be")
    parser.add_argument("--huniq", default=shutil.which("huniq") or "huniq")
    parser.add_argument("--runiq", default=shutil.which("runiq") or "runiq")
    args = parser.parse_args()
    path = args.file or os.path.join(tempfile.gettempdir(), "everbloom-dedup-%d.txt" % args.lines)
    if not os.path.exists(path):
        make(path, args.lines)
    subjects = [
        ("everbloom dedup", [args.bin, "dedup"]),
        ("huniq", [args.huniq]),
        ("runiq", [args.runiq]),
    ]
    size = os.path.getsize(path)
    print("%d lines, %d bytes; %d cores; load %.1f %.1f %.1f" % (
        args.lines, size, os.cpu_count(), *os.getloadavg()))
    for _, command in subjects:
        print("  " + version(command))
    results = {name: [] for name, _ in subjects}
    for _ in range(args.runs):
        for name, command in subjects:
            results[name].append(measure(command, path))
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in results.items()}
    print("\n| program | s | fastest s | processor s | MB at the peak | lines printed |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, command in subjects:
        seconds, busy, memory = medians[name]
        fastest = min(row[0] for row in results[name])
        print("| %s | %.2f | %.2f | %.2f | %.0f | %d |" % (
            name, seconds, fastest, busy, memory, printed(command, path)))
    ours, others = medians["everbloom dedup"], [medians["huniq"], medians["runiq"]]
    other = min(others)
    print("\n%.1f times as fast as the faster one, with %.2f of its memory" % (
        other[0] / ours[0], ours[2] / other[2]))


if __name__ == "__main__":
    main()
