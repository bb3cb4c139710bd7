#!/usr/bin/env python3
"""The work that must stay fast, timed in this tree and in another revision, in turn.

    just bench-against REV [--redisbloom FILE] [--redis-server PROGRAM] [--only TEXT] [--rounds 5] [--noise]

Builds REV in a worktree of its own, target/against/REV. Each round times every row on every subject, one after
the other, so a slow minute of the machine hits all of them. The table says how many times as fast this tree
is as the other subject: the median of the rounds' ratios, and the lowest and the highest. Beside the speed is the
processor time of the server, user and system, for a request, and its ratios: there less is better. Other programs
delay a request, but add little to its processor time, so believe that where the two disagree. --noise shows it: a
process beside then burns the core of the servers in bursts.

With --redisbloom, or EVERBLOOM_REDISBLOOM=FILE, RedisBloom's module is a subject as well: in redis-server for the
rows of `serve` and of the restart, and beside our module in the same redis-server for those of the module. What
it has no word for, such as the blocked layout, is compared with its own filter.

Servers have one worker and are pinned to core 0, the load generator to core 1; both log nothing but for the
restart. The machine should do nothing else. A full run takes a quarter of an hour.
"""
import argparse
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import servers  # noqa: E402

FIRST_PORT = 7431
MODULE = "libeverbloom_module.so"


class Subject:
    """A build of ours, or RedisBloom: how its servers are started."""

    def __init__(self, name, everbloom, module):
        self.name, self.everbloom, self.module = name, everbloom, module

    def command(self, options, as_module):
        if self.everbloom and not as_module:
            return [self.everbloom, "serve", "--io-threads", "1"]
        return [options.redis_server, "--loadmodule", self.module]

    def layout(self, layout):
        return ["LAYOUT", layout] if self.everbloom else []


def build(folder):
    """Builds the server and the module of a checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    for package in ["everbloom-cli", "everbloom-module"]:
        subprocess.run(["cargo", "build", "--release", "--quiet", "-p", package], check=True, cwd=folder, env=environment)
    built = os.path.join(folder, "target/release")
    return os.path.join(built, "everbloom"), os.path.join(built, MODULE)


def checkout(revision):
    commit = subprocess.run(["git", "rev-parse", "--verify", "--short", revision + "^{commit}"], check=True,
                            cwd=ROOT, capture_output=True, text=True).stdout.strip()
    folder = os.path.join(ROOT, "target/against", commit)
    if not os.path.exists(folder):
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, commit], check=True, cwd=ROOT)
    return commit, folder


class Running:
    """A server on core 0, until `stop`."""

    def __init__(self, command, folder, port, settings):
        self.port = port
        with open(os.path.join(folder, "log"), "a") as log:
            pinned = ["taskset", "-c", "0"] + command
            network = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
            self.child = subprocess.Popen(pinned + network + settings, cwd=folder, stdout=log, stderr=log)

    def wait(self):
        """Waits until the server answers, and returns a connection to it."""
        deadline = time.time() + 600
        while time.time() < deadline and self.child.poll() is None:
            try:
                client = servers.Client(port=self.port)
                if client.call("PING") == b"PONG":
                    return client
            except (OSError, RuntimeError):
                pass
            time.sleep(0.01)
        raise RuntimeError("the server does not answer: " + " ".join(self.child.args))

    def load(self, *flags):
        """Items a second, and microseconds of the server's processor time for a request."""
        flags = [str(flag) for flag in flags]
        figures = servers.load(self.port, "--server-process", str(self.child.pid), *flags)
        return figures["items_per_second"], figures["server_us"]

    def processor_seconds(self):
        """How long its threads have run, in user and system mode."""
        nanos = 0
        for thread in os.listdir("/proc/%d/task" % self.child.pid):
            try:
                with open("/proc/%d/task/%s/schedstat" % (self.child.pid, thread)) as times:
                    nanos += int(times.read().split()[0])
            except OSError:
                pass  # The thread has ended.
        return nanos / 1e9

    def stop(self):
        self.child.kill()
        self.child.wait()


def burn(parent):
    """Burns the core of the servers in bursts, until the parent ends."""
    os.sched_setaffinity(0, {0})
    drawn = random.Random(1)
    while os.getppid() == parent:
        end = time.perf_counter() + drawn.uniform(0.01, 0.2)
        while time.perf_counter() < end:
            pass
        time.sleep(drawn.uniform(0.01, 0.2))


def filter_rows(options, name, pipelines, several):
    """Rows on one filter: their names, and what a round does on a server."""
    size, filled = options.items, options.items // 5 * 2
    for layout in ["classic", "blocked"]:
        def reserve(subject, layout=layout):
            return ",".join([str(size), "0.001", "NONSCALING"] + subject.layout(layout))

        def exists(subject, server, command, load, layout=layout):
            key = ["--key", layout, "--reserve", reserve(subject, layout)]
            if not (server, layout) in options.filled:
                options.filled.add((server, layout))
                server.load("--command", command, *key, "--fill", filled, "--requests", 100, "--keep")
            return server.load("--command", command, *key, "--filled", filled, "--hit-share", 0.5, *load)

        def add(subject, server, command, load, layout=layout):
            words = reserve(subject, layout)
            return server.load("--command", command, "--reserve", words, "--fill", size // 10,
                               "--requests", size // (200 if command == "madd" else 2), *load)

        rows = [("BF.EXISTS", exists, "exists", p) for p in pipelines] + [("BF.ADD", add, "add", p) for p in pipelines]
        if several:
            rows += [("BF.MEXISTS of 100", exists, "mexists", 4), ("BF.MADD of 100", add, "madd", 4)]
        for verb, work, command, pipeline in rows:
            load = ["--clients", 50 if pipeline == 1 else 8, "--pipeline", pipeline, "--seconds", options.seconds]
            label = "%s, %s: %s, pipeline %d" % (name, layout, verb, pipeline)
            yield label, lambda s, server, w=work, c=command, f=load: w(s, server, c, f)


def rows_of_many_keys(options):
    for command in ["exists", "add"]:
        for pipeline in [128, 16]:
            load = ["--keys", options.keys, "--reserve", "100,0.01", "--fill", options.keys * 5,
                    "--clients", 8, "--pipeline", pipeline]
            load += ["--seconds", options.seconds] if command == "exists" else ["--requests", options.keys * 5]
            label = "serve, %d keys: BF.%s, pipeline %d" % (options.keys, command.upper(), pipeline)
            yield label, lambda _, server, c=command, f=load: server.load("--command", c, *f)


def write_log(options, folder):
    """A log of BF.ADD on one key, and as many on many."""
    log = os.path.join(folder, "appendonlydir")
    os.makedirs(log)
    with open(os.path.join(log, "appendonly.aof.manifest"), "w") as manifest:
        manifest.write("file appendonly.aof.1.incr.aof seq 1 type i\n")
    with open(os.path.join(log, "appendonly.aof.1.incr.aof"), "wb") as file:
        file.write(servers.request("BF.RESERVE", "filter", "0.001", options.items))
        for i in range(options.commands):
            file.write(b"*3\r\n$6\r\nBF.ADD\r\n$6\r\nfilter\r\n$15\r\nitem %010d\r\n" % i)
        for i in range(options.commands):
            key = i * 7919 % options.keys
            file.write(b"*3\r\n$6\r\nBF.ADD\r\n$12\r\nkey:%08d\r\n$15\r\nitem %010d\r\n" % (key, i))


def restart(options, subject, log, port):
    """Restarts a second, from the start of the process to its first answer, and its processor time in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(log, "appendonlydir"), os.path.join(folder, "appendonlydir"))
        begun = time.perf_counter()
        settings = ["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"]
        server = Running(subject.command(options, False), folder, port, settings)
        try:
            client = server.wait()
            took, worked = time.perf_counter() - begun, server.processor_seconds()
            # All of the log was read.
            assert client.call("DBSIZE") == 1 + min(options.keys, options.commands)
            return 1 / took, worked * 1e6
        finally:
            server.stop()


def measure(options, subjects):
    """For each row the figures of each subject, a list of rounds: speed, and processor time for a request."""
    rows, works, running = {}, [], {}
    rows_of = {
        False: list(filter_rows(options, "serve", [128, 16, 1], True)) + list(rows_of_many_keys(options)),
        True: list(filter_rows(options, "module", [128], False)),
    }
    with tempfile.TemporaryDirectory() as folder:
        for number, subject in enumerate(subjects):
            for as_module in [False, True]:
                place = os.path.join(folder, "%d-%s" % (number, as_module))
                os.makedirs(place)
                command = subject.command(options, as_module)
                server = Running(command, place, FIRST_PORT + 2 * number + as_module, ["--appendonly", "no"])
                running[subject, as_module] = server
        os.sched_setaffinity(0, {1})
        noise = multiprocessing.Process(target=burn, args=[os.getpid()], daemon=True)
        if options.noise:
            noise.start()
        try:
            versions = {s.name: version(running[s, False].wait(), running[s, True].wait()) for s in subjects}
            for as_module, timed in rows_of.items():
                works += [(label, lambda s, w=work, m=as_module: w(s, running[s, m])) for label, work in timed]
            logs = os.path.join(folder, "restart")
            label = "restart: %d BF.ADD on one key and on %d" % (options.commands, options.keys)
            if options.only in label:
                write_log(options, logs)
            works.append((label, lambda s: restart(options, s, logs, FIRST_PORT - 1)))
            for round_ in range(options.rounds):
                print("round %d of %d" % (round_ + 1, options.rounds), file=sys.stderr)
                for label, work in works:
                    if options.only in label:
                        for subject in subjects:
                            rows.setdefault(label, {}).setdefault(subject.name, []).append(work(subject))
        finally:
            for server in running.values():
                server.stop()
            if options.noise:
                noise.kill()
    return versions, rows


def version(server, host):
    modules = re.findall(rb"name=bf,ver=(\d+)", host.call("INFO", "modules"))
    parts = ["the server says redis_version %s" % server.info("redis_version"),
             "the host of its module %s" % host.info("redis_version")]
    return ", ".join(parts + ["the module's version is %s" % number.decode() for number in modules])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("revision")
    parser.add_argument("--redisbloom", default=os.environ.get("EVERBLOOM_REDISBLOOM"))
    parser.add_argument("--redis-server", default="redis-server", help="the host of the modules")
    parser.add_argument("--only", default="", help="the rows whose names contain this")
    parser.add_argument("--noise", action="store_true", help="burn the core of the servers in bursts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--items", type=int, default=10_000_000, help="the capacity of the one filter")
    parser.add_argument("--keys", type=int, default=300_000)
    parser.add_argument("--commands", type=int, default=1_500_000, help="half of those in the log")
    options = parser.parse_args()
    options.filled = set()
    commit, folder = checkout(options.revision)
    subjects = [Subject("this tree", *build(ROOT)), Subject(commit, *build(folder))]
    if options.redisbloom:
        subjects.append(Subject("RedisBloom", None, os.path.abspath(options.redisbloom)))
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", "benches/Cargo.toml"], check=True, cwd=ROOT)
    versions, rows = measure(options, subjects)
    with open("/proc/cpuinfo") as cpuinfo:
        model = re.search(r"model name\s*: (.*)", cpuinfo.read())
    noise = "; a process beside burned the servers' core in bursts" if options.noise else ""
    print("%s; medians of %d rounds (lowest to highest)%s" % (model[1] if model else "unknown machine", options.rounds, noise))
    for name, known in versions.items():
        print("%s: %s" % (name, known))
    others = [subject.name for subject in subjects[1:]]
    heads = ["to %s" % name for name in others] + ["processor time a request"] + ["that, to %s" % name for name in others]
    print("\n| row | this tree | " + " | ".join(heads) + " |")
    print("|---|--:|" + "--:|" * len(heads))
    for label, figures in rows.items():
        ours = figures["this tree"]
        speed, worked = (statistics.median(figure[part] for figure in ours) for part in (0, 1))
        cells = ["%.2f a second" % speed if label.startswith("restart") else "%.2f M items/s" % (speed / 1e6)]
        cells += [ratios(ours, figures[name], 0) for name in others]
        cells.append("%.2f s" % (worked / 1e6) if label.startswith("restart") else "%.3g µs" % worked)
        cells += [ratios(ours, figures[name], 1) for name in others]
        print("| %s | %s |" % (label, " | ".join(cells)))


def ratios(ours, theirs, part):
    """The rounds' ratios of the speeds, which are part 0, or of the processor times, part 1."""
    each = [our[part] / their[part] for our, their in zip(ours, theirs)]
    return "%.2f (%.2f to %.2f)" % (statistics.median(each), min(each), max(each))


main()
