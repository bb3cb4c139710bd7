"""Memory that the system refuses is a MemoryError, not the end of the program."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")

# About 600 MB each, of which almost nothing is written.
MAKERS = [
    "BloomFilter(450_000_000)",
    "BloomFilter(450_000_000, layout='classic')",
    "ScalableBloomFilter(450_000_000)",
    "WindowedBloomFilter(1_200_000_000)",
    "CuckooFilter(slots=2**29)",
]

PROGRAM = """
import copy
import pickle
import resource
import sys

from everbloom import BloomFilter, CuckooFilter, ScalableBloomFilter, WindowedBloomFilter

maker, room = sys.argv[1], float(sys.argv[2])
seen = eval(maker)
seen.add("a")
size = sys.getsizeof(seen)
assert size > 400_000_000, size
before = resource.getrlimit(resource.RLIMIT_AS)
with open("/proc/self/statm") as pages:
    taken = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + int(room * size), before[1]))

copies = {
    "copy": seen.copy,
    "copy.copy": lambda: copy.copy(seen),
    "copy.deepcopy": lambda: copy.deepcopy(seen),
    "chunks": seen.chunks,
}
# These take the filter twice.
doubles = {"pickle": lambda: pickle.dumps(seen), "to_bytes": seen.to_bytes}
# Windows of items cannot be united.
if not isinstance(seen, (CuckooFilter, WindowedBloomFilter)):
    copies["|"] = lambda: seen | seen
    copies["union"] = lambda: seen.union(seen)
for name, make in {**copies, **doubles}.items():
    try:
        made = make()
    except MemoryError:
        continue
    assert room > 1 and name in copies, f"{name} took memory that is not there"
    del made
if room < 1 and hasattr(seen, "save"):
    try:
        seen.save("seen.bloom")
    except MemoryError:
        pass
    else:
        raise AssertionError("save took memory that is not there")
assert "a" in seen and "b" not in seen and len(seen) == 1

resource.setrlimit(resource.RLIMIT_AS, before)
again = seen.copy()
assert "a" in again and "b" not in again and len(again) == 1
"""


@pytest.mark.parametrize("room", [0.5, 1.5])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_copy_without_memory_is_an_error(maker, room, tmp_path):
    """Room for half a filter, and for one and a half, beside the filter itself."""
    program = [sys.executable, "-c", PROGRAM, maker, str(room)]
    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


GROWING = """
import resource

from everbloom import CuckooFilter, ScalableBloomFilter, WindowedBloomFilter

before = resource.getrlimit(resource.RLIMIT_AS)


def limit(room):
    with open("/proc/self/statm") as pages:
        taken = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, before[1]))


seen = ScalableBloomFilter(100_000, 1e-4)
seen.add_many(range(100_000))
limit(3_000_000)
for first in range(100_000, 2_000_000, 100_000):
    try:
        new = seen.add_many(range(first, first + 100_000))
    except MemoryError as error:
        assert "bytes by which the filter must grow" in str(error), error
        break
    assert sum(new) > 99_900, sum(new)
else:
    raise AssertionError("the filter took memory that is not there")
absent = next(i for i in range(10_000_000, 20_000_000) if i not in seen)
for add in [seen.add, lambda item: seen.add_many([item]), lambda item: seen.update([item])]:
    try:
        add(absent)
    except MemoryError:
        continue
    raise AssertionError("an item had no room, and no error")
assert absent not in seen
resource.setrlimit(resource.RLIMIT_AS, before)
assert all(seen.contains_many(range(first)))
assert seen.add(absent) and not seen.add(absent)

window = WindowedBloomFilter(100_000_000, ticks=40)
window.add("a", 0)
limit(3_000_000)
for add in [window.add, lambda item, now: window.add_many([item], now)]:
    try:
        add("b", 10)
    except MemoryError:
        continue
    raise AssertionError("a generation had no memory, and no error")
assert window.contains("a", 10) and not window.contains("b", 10)
resource.setrlimit(resource.RLIMIT_AS, before)

cuckoo = CuckooFilter(slots=2**20, expansion=64)
cuckoo.update(["a"] * 4)
limit(3_000_000)
try:
    cuckoo.add("a")
except MemoryError:
    pass
else:
    raise AssertionError("a table had no memory, and no error")
assert cuckoo.count("a") == 4
"""


def test_growth_without_memory_is_an_error():
    program = [sys.executable, "-c", GROWING]
    ended = subprocess.run(program, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
