"""The programs of examples/python, small: they exit with 1 when a promise is broken."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "examples/python"


def run(name, *arguments):
    program = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name, size, says",
    [
        ("feed", ["--users", 200], "0 shown twice within a week"),
        ("crawler", ["--pages", 3000], "0 fetched twice within 30 days"),
        ("spam", ["--messages", 5000], "50 of 50 repeats found"),
        ("blacklist", ["--count", 20_000], "0 missed"),
        ("tables", ["--rows", 20_000], "2000 rows looked up, 0 missed"),
        ("bitarray_mmh3", ["--count", 20_000], "0 missed"),
    ],
)
def test_without_a_server(name, size, says):
    assert says in run(name, *size)


def test_the_crawler_fetches_again_after_thirty_days():
    fetched = dict(re.findall(r"day (\d+): (\d+) of", run("crawler", "--pages", 3000)))
    # The filter's key is random, so a page may look as if it had been fetched.
    assert 2950 < int(fetched["38"]) <= 3000
    assert fetched["39"] == "0"


@pytest.mark.parametrize(
    "name, size, says",
    [
        ("guard", ["--rows", 500], "0 answered wrongly"),
        ("guard", ["--rows", 500], "500 look-ups failed, 0 rows were not found"),
        ("checkin", ["--users", 20], "0 counted wrongly"),
        ("cluster", ["--count", 5000], "0 missed"),
    ],
)
def test_with_a_server(server, name, size, says):
    port = server.connection_pool.connection_kwargs["port"]
    assert says in run(name, "--port", port, *size)


def test_with_a_cluster(cluster):
    port = cluster.connection_pool.connection_kwargs["port"]
    assert "0 missed" in run("cluster", "--cluster", "--port", port, "--count", 5000)
