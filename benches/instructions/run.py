#!/usr/bin/env python3
"""Counts the instructions of the hot paths, and compares them with those in counts.txt beside this file.

    just instructions             fails when a path takes 3 % more instructions than counts.txt says
    just instructions --write     writes counts.txt; the commit says why the numbers changed
    just instructions --only NAME the paths whose names contain this, compared or written

callgrind counts, and gives nearly the same number on every run and on a busy machine. The paths are
`crates/server/examples/instructions.rs` (the library, requests from bytes to replies, a replayed log), and
the module's commands in redis-server, twice: in our code, with what it calls of the C library, and
together with what the host does for us. Numbers are per operation: an item of the library, a request, a command.

They depend on the compiler, the C library and the processor that valgrind shows, so counts.txt names
these. Where they differ, 15 % more fail instead of 3 %.

Needs valgrind, redis-server and python3. The profiles stay in target/instructions:
`callgrind_annotate target/instructions/FILE` shows where the instructions are.
"""
import argparse
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COUNTS = os.path.join(HERE, "counts.txt")
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
PATHS = os.path.join(TARGET, "release/examples/instructions")
MODULE = os.path.join(TARGET, "release/libeverbloom_module.so")
PROFILES = os.path.join(TARGET, "instructions")

# How many more instructions fail, in percent: where everything is as counts.txt says, and elsewhere.
ALLOWED, ALLOWED_ELSEWHERE = 3, 15
# Commands that each path of the module takes.
COMMANDS = 10_000


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def environment():
    """What the numbers depend on beside the code."""
    with open("/proc/cpuinfo") as cpuinfo:
        avx2 = "with" if " avx2 " in cpuinfo.read() else "without"
    redis = re.search(r"v=(\S+)", output("redis-server", "--version"))[1]
    return ["%s, %s %s AVX2" % (output("rustc", "--version"), platform.machine(), avx2),
            "%s, %s, redis-server %s" % (output("valgrind", "--version"), " ".join(platform.libc_ver()), redis)]


def build():
    cargo = ["cargo", "build", "--release", "--quiet"]
    subprocess.run(cargo + ["-p", "everbloom-server", "--example", "instructions"], check=True, cwd=ROOT)
    subprocess.run(cargo + ["-p", "everbloom-module"], check=True, cwd=ROOT)


def callgrind(name, function):
    """The start of a command line that counts within a function, and the file for the profile."""
    profile = os.path.join(PROFILES, re.sub(r"\W+", "-", name))
    if os.path.exists(profile):
        os.remove(profile)
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=" + function,
               "--callgrind-out-file=" + profile, "--log-file=" + profile + ".log"]
    return command, profile


def profile_total(profile):
    with open(profile) as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("summary:"))


def profile_of_object(profile, file):
    """Instructions of the functions of a shared object, with those of the C library that they call."""
    names, total = {}, 0
    here = called = None
    is_call = False

    def name(kind, text):
        number, _, rest = text.partition(" ")
        if rest:
            names[kind, number] = rest
        return names[kind, number]

    with open(profile) as lines:
        for line in lines:
            key, _, value = line.strip().partition("=")
            if key == "ob":
                here = called = name("ob", value)
            elif key == "fn":
                called = here
            elif key == "cob":
                called = name("ob", value)
            elif key == "calls":
                is_call = True
            elif line[:1] in "+-*0123456789" and here is not None:
                cost = int(line.split()[1])
                if here.endswith(file) and (not is_call or "/libc" in called):
                    total += cost
                if is_call:
                    is_call, called = False, here
    return total


def in_process(name):
    command, profile = callgrind(name, "*instructions::counted*")
    operations = int(output(*command, PATHS, name))
    return profile_total(profile) / operations


def request(*words):
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def in_host(name, layout, lookups):
    """Instructions of our code, and of our code and the host's, for items added and then looked up."""
    command, profile = callgrind(name, "*everbloom_module::raw::entry::command*")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        command += ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder,
                    "--loadmodule", MODULE]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            connection = socket.socket(socket.AF_UNIX)
            deadline = time.time() + 60
            while connection.connect_ex(path) != 0:
                if time.time() > deadline or server.poll() is not None:
                    raise RuntimeError("redis-server does not start: see " + profile + ".log")
                time.sleep(0.05)
            replies = connection.makefile("rb")
            requests = [request("BF.RESERVE", "filter", "0.001", "1000000", "LAYOUT", layout)]
            for verb in ["BF.ADD", "BF.EXISTS"][:1 + lookups]:
                requests += [request(verb, "filter", "item %012d" % i) for i in range(COMMANDS)]
            for first in range(0, len(requests), 128):
                together = requests[first:first + 128]
                connection.sendall(b"".join(together))
                for _ in together:
                    reply = replies.readline()
                    assert not reply.startswith(b"-"), reply
            connection.sendall(request("SHUTDOWN", "NOSAVE"))
            server.wait(60)
        finally:
            server.kill()
            server.wait()
    return [profile_of_object(profile, os.path.basename(MODULE)), profile_total(profile)]


def module(layout):
    adds = in_host("module, %s: BF.ADD" % layout, layout, False)
    both = in_host("module, %s: BF.ADD, BF.EXISTS" % layout, layout, True)
    for what, add, all_ in zip(["", ", with the host's work"], adds, both):
        yield "module, %s: BF.ADD%s" % (layout, what), add / COMMANDS
        yield "module, %s: BF.EXISTS%s" % (layout, what), (all_ - add) / COMMANDS


def measure(only):
    os.makedirs(PROFILES, exist_ok=True)
    for name in output(PATHS).splitlines():
        if only in name:
            yield name, in_process(name)
    for layout in ["classic", "blocked"]:
        if only in "module, " + layout:
            yield from module(layout)


def read():
    comments, counts = [], {}
    if os.path.exists(COUNTS):
        for line in open(COUNTS).read().splitlines():
            if line.startswith("#"):
                comments.append(line[2:])
            elif line:
                name, count = line.rsplit(None, 1)
                counts[name] = int(count)
    return comments[-2:], counts


def main():
    parser = argparse.ArgumentParser(description="Counts the instructions of the hot paths.")
    parser.add_argument("--write", action="store_true", help="write counts.txt")
    parser.add_argument("--only", default="", help="the paths whose names contain this")
    options = parser.parse_args()
    build()
    (written_for, before), now_for = read(), environment()
    allowed = ALLOWED if written_for == now_for else ALLOWED_ELSEWHERE
    risen, after = [], {}
    print("%-60s %8s %8s %8s" % ("instructions", "before", "now", "change"))
    for name, count in measure(options.only):
        after[name] = round(count)
        change = 100 * (count / before[name] - 1) if name in before else 0
        print("%-60s %8s %8d %+7.1f%%" % (name, before.get(name, "-"), after[name], change), flush=True)
        if change > allowed or name not in before:
            risen.append(name)
    if options.write:
        with open(COUNTS, "w") as file:
            file.write("# Instructions of an operation on each hot path: see run.py. Counted with:\n")
            file.writelines("# %s\n" % line for line in now_for)
            kept = before if options.only else {}
            file.writelines("%-60s %8d\n" % line for line in {**kept, **after}.items())
    elif written_for != now_for:
        print("\nNOT COMPARABLE: counts.txt was written with\n  %s\nand this is\n  %s\n"
              "so only %d %% more would fail. Run `just instructions --write` on the state before your change."
              % ("\n  ".join(written_for), "\n  ".join(now_for), allowed))
    if risen and not options.write:
        sys.exit("%d %% more instructions or more, or new: %s\nMake them fewer, or run `just instructions --write` "
                 "and say in the commit why there are more." % (allowed, "; ".join(risen)))


main()
