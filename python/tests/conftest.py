"""The programs that tests need, and servers.

EVERBLOOM names the binary `everbloom`; without it, the one that `cargo build` made is taken. The
module is the one beside it.
"""

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

ROOT = Path(__file__).parents[2]
BINARY = Path(os.environ.get("EVERBLOOM", ROOT / "target/debug/everbloom")).absolute()


def find(program, how):
    """The program. Without it the test is skipped, or fails when it must not be."""
    if program is None or not Path(program).exists():
        if os.environ.get("EVERBLOOM_REQUIRE_PEERS"):
            pytest.fail(f"there is no {program}: {how}")
        pytest.skip(f"there is no {program}: {how}")
    return program


@contextmanager
def running(command, folder):
    """A client of a server of this command, which takes `--port`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--dir", folder], stdout=subprocess.DEVNULL
    )
    client = redis.Redis(port=port)
    try:
        for _ in range(200):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait()


@pytest.fixture(scope="session")
def binary():
    return find(BINARY, "cargo build -p everbloom-cli makes it")


@pytest.fixture(scope="session")
def server(binary, tmp_path_factory):
    with running([binary, "serve"], tmp_path_factory.mktemp("server")) as client:
        yield client


@pytest.fixture
def cluster(tmp_path):
    """A cluster of one node, which has all slots."""
    redis_server = find(shutil.which("redis-server"), "install redis-server")
    module = BINARY.with_name("libeverbloom_module.so")
    find(module, "cargo build -p everbloom-module makes it")
    command = [redis_server, "--save", "", "--cluster-enabled", "yes", "--loadmodule", module]
    # The bus has the port 10 000 higher otherwise, which need not exist.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        command += ["--cluster-port", str(free.getsockname()[1])]
    with running(command, tmp_path) as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        for _ in range(200):
            if b"cluster_state:ok" in client.execute_command("CLUSTER INFO", NEVER_DECODE=True):
                break
            time.sleep(0.05)
        yield client
