"""The types in everbloom.pyi are those of the module."""

import subprocess
import sys
from pathlib import Path

ALLOWED = Path(__file__).parent / "stubtest.txt"


def test_the_stubs_are_what_there_is(tmp_path):
    check = [sys.executable, "-m", "mypy.stubtest", "everbloom", "--allowlist", ALLOWED]
    result = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


PROGRAM = """
import numpy, pandas
from everbloom import BloomFilter

seen = BloomFilter(100)
answers: list[bool] = seen.add_many(["a", b"b", 7, ("a", 1)])
seen.update(name for name in ["a"])
column = pandas.Series(["a", None])
new = column[seen.add_many(column, skip_missing=True)]
found = ~seen.contains_many(numpy.arange(9))
lines: list[bool] = seen.contains_many(iter(["a"]))
names: list[bool] = seen.add_many({"a"})
numbers: list[bool] = seen.contains_many(range(9))
class Arrow:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
seen.update(Arrow())
wrong: int = seen.contains_many(line for line in ["a"])
wrong = seen.contains_many(iter(["a"]))
seen.add(1.5)
"""


def test_a_program_is_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    check = [sys.executable, "-m", "mypy", "--ignore-missing-imports", program]
    result = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    errors = [line for line in result.stdout.splitlines() if "error:" in line]
    assert len(errors) == 3 and 'has incompatible type "float"' in errors[2], result.stdout
    assert all('expression has type "list[bool]"' in error for error in errors[:2]), result.stdout
