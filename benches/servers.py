"""What the scripts in python share: a client, and servers pinned to core 0 with the load on core 1."""
import json
import os
import socket
import subprocess
import time

PORT = 7411
# `cargo run --manifest-path benches/Cargo.toml` leaves it there.
LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "target/release/everbloom-benches")


def load(port, *flags):
    """Puts a load on a server from core 1, and returns what the load generator prints."""
    command = ["taskset", "-c", "1", LOAD, "load", "--port", str(port)] + list(flags)
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def request(*args):
    args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in args)


class Client:
    def __init__(self, timeout=60, port=PORT):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def call(self, *args):
        self.sock.sendall(request(*args))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("the server hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def info(self, field):
        for line in self.call("INFO").decode().splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        raise RuntimeError("no field " + field)


class Server:
    """A server on core 0. From here on this process, the load, is on core 1."""

    def __init__(self, name, command, folder):
        self.name = name
        with open(os.path.join(folder, "log"), "a") as log:
            self.child = subprocess.Popen(
                ["taskset", "-c", "0"] + command + ["--port", str(PORT), "--bind", "127.0.0.1"],
                cwd=folder, stdout=log, stderr=log)
        os.sched_setaffinity(0, {1})
        for _ in range(600):
            try:
                if Client().call("PING") == b"PONG":
                    return
            except (OSError, RuntimeError):
                time.sleep(0.05)
        raise RuntimeError("the server does not start")

    def memory(self, field):
        """Bytes: VmRSS is what is resident, VmHWM the most that ever was."""
        with open("/proc/%d/status" % self.child.pid) as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
        return 0

    def unpin(self):
        """Lets the threads that save run on any core; the workers keep to theirs."""
        for thread in os.listdir("/proc/%d/task" % self.child.pid):
            try:
                with open("/proc/%d/task/%s/comm" % (self.child.pid, thread)) as name:
                    if not name.read().startswith("worker"):
                        os.sched_setaffinity(int(thread), {0, 1})
            except OSError:
                pass

    def stop(self):
        self.child.kill()
        self.child.wait()


def everbloom(binary, folder, *settings):
    command = [os.path.abspath(binary), "serve", "--io-threads", "1", "--save", ""]
    return Server("everbloom", command + list(settings), folder)


def redis(folder, *settings):
    command = ["redis-server", "--save", "", "--appendonly", "no"]
    return Server("redis-server", command + list(settings), folder)
