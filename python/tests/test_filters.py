"""What a filter does, of either class."""

import copy
import os
import pickle
import re
import stat
import subprocess
import sys

import pytest

import everbloom
from everbloom import (
    BloomFilter,
    BloomView,
    FormatError,
    ScalableBloomFilter,
    WindowedBloomFilter,
)

CLASSES = [BloomFilter, ScalableBloomFilter]
LAYOUTS = ["blocked", "classic"]


@pytest.fixture(params=[(c, l) for c in CLASSES for l in LAYOUTS], ids=lambda p: f"{p[0].__name__}-{p[1]}")
def seen(request):
    """An empty filter with so low a rate that no test meets a false positive."""
    of_class, layout = request.param
    return of_class(10_000, 1e-9, layout=layout)


def test_add_says_whether_the_item_is_new(seen):
    assert "a" not in seen
    assert seen.add("a") is True
    assert seen.add("a") is False
    assert "a" in seen
    assert "b" not in seen
    assert len(seen) == 1
    assert bool(seen)


def test_no_false_negatives_and_the_rate_is_kept():
    for of_class in CLASSES:
        for layout in LAYOUTS:
            seen = of_class(20_000, 0.01, seed=7 if layout == "blocked" else None, layout=layout)
            seen.update(f"item {i}" for i in range(20_000))
            assert all(seen.contains_many([f"item {i}" for i in range(20_000)]))
            assert all(f"item {i}" in seen for i in range(0, 20_000, 7))
            wrong = sum(seen.contains_many([f"other {i}" for i in range(100_000)]))
            assert wrong < 1250, (of_class, layout)


def test_a_scalable_filter_grows_and_keeps_its_rate():
    seen = ScalableBloomFilter(100, 0.01, seed=1)
    seen.update(range(50_000))
    assert seen.layers > 1
    assert seen.capacity >= 50_000
    assert all(seen.contains_many(range(50_000)))
    assert sum(seen.contains_many(range(-50_000, 0))) < 600
    assert seen.error_rate == pytest.approx(0.01)
    assert len(seen.hashes) == seen.layers


def test_what_is_one_item(seen):
    seen.add("text")
    assert b"text" in seen
    assert bytearray(b"text") in seen
    assert memoryview(b"text") in seen
    seen.add("äöü€😀")
    assert "äöü€😀".encode() in seen
    seen.add(7)
    assert "7" not in seen and b"7" not in seen and b"\x07" not in seen and -7 not in seen
    seen.add(True)
    assert 1 in seen
    seen.add(("a", "bc", 7))
    assert ("a", b"bc", 7) in seen
    assert ("ab", "c", 7) not in seen
    seen.add((("a",), "b"))
    assert (("a",), "b") in seen and ("a", "b") not in seen and "a" not in seen
    assert "" not in seen
    seen.add("")
    assert b"" in seen and 0 not in seen


def test_ints_of_all_widths(seen):
    numbers = [0, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**127, 2**128 - 1]
    numbers += [-1, -(2**31), -(2**63), -(2**63) - 1, -(2**127)]
    for number in numbers:
        assert number not in seen
        assert seen.add(number)
        assert number in seen
    assert seen.contains_many(numbers) == [True] * len(numbers)
    for number in [2**128, -(2**127) - 1, 10**100]:
        with pytest.raises(OverflowError, match="from -2\\*\\*127 to 2\\*\\*128 - 1"):
            seen.add(number)
        with pytest.raises(OverflowError):
            number in seen


class Index:
    def __index__(self):
        return 7


class BadIndex:
    def __index__(self):
        raise RuntimeError


def test_other_ints(seen):
    class Int(int):
        pass

    class Str(str):
        pass

    seen.add(Index())
    assert 7 in seen and Int(7) in seen
    seen.add(Str("a"))
    assert "a" in seen
    with pytest.raises(TypeError, match="BadIndex is not an item"):
        seen.add(BadIndex())


@pytest.mark.parametrize("item", [None, 1.5, [1], {1}, {}, object(), 1j, range(3), ("a", None)])
def test_what_is_no_item(seen, item):
    for use in (seen.add, seen.__contains__, lambda x: seen.update([x]), lambda x: seen.contains_many([x])):
        with pytest.raises(TypeError, match="is not an item: items are str, bytes"):
            use(item)
    assert len(seen) == 0


def test_tuples_have_limits(seen):
    with pytest.raises(ValueError, match="from 1 to 8 parts, not 0"):
        seen.add(())
    with pytest.raises(ValueError, match="from 1 to 8 parts, not 9"):
        seen.add(tuple(range(9)))
    deep = ("a",)
    for _ in range(15):
        deep = (deep,)
    assert seen.add(deep)
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(ValueError, match="deep"):
        seen.add(deep)


def test_text_that_is_not_utf8(seen):
    with pytest.raises(UnicodeEncodeError):
        seen.add("\ud800")
    with pytest.raises(ValueError):
        "\ud800" in seen
    assert len(seen) == 0


def test_a_memoryview_must_be_bytes_side_by_side(seen):
    with pytest.raises(BufferError, match="side by side"):
        seen.add(memoryview(b"abcdef")[::2])
    released = memoryview(b"a")
    released.release()
    with pytest.raises(TypeError, match="lends no bytes"):
        seen.add(released)


def test_update_takes_any_iterable(seen):
    seen.update(["a", "b"])
    seen.update(("c",))
    seen.update({"d"})
    seen.update({"e": 1})
    seen.update(x for x in "fg")
    seen.update([])
    assert len(seen) == 7
    assert seen.contains_many(iter("abcdefgh")) == [True] * 7 + [False]
    assert seen.add_many(["h", "h", "a", 1]) == [True, False, False, True]
    assert seen.contains_many([]) == []


@pytest.mark.parametrize("one", ["text", b"bytes", bytearray(b"bytes")])
def test_one_item_is_not_many(seen, one):
    for use in (seen.update, seen.add_many, seen.contains_many):
        with pytest.raises(TypeError, match="is one item"):
            use(one)


def test_not_iterable(seen):
    for use in (seen.update, seen.add_many, seen.contains_many):
        with pytest.raises(TypeError, match="not iterable"):
            use(7)


def test_the_items_before_a_bad_one_are_there(seen):
    with pytest.raises(TypeError, match="row 701, counted from 0: NoneType is not an item"):
        seen.update(iter([1] * 700 + [2, None, 3]))
    assert 2 in seen and 3 not in seen

    def fails():
        yield "a"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        seen.update(fails())
    assert "a" in seen


def test_an_iterator_may_use_the_filter(seen):
    seen.update(range(100))
    seen.update(i for i in range(3000) if i not in seen)
    assert len(seen) == 3000
    assert seen.contains_many(i if seen.add(-i) else i for i in range(3000)) == [True] * 3000


def test_a_list_that_changes_while_it_is_read(seen):
    items = list(range(2000))

    class Emptying:
        def __index__(self):
            items.clear()
            return 5

    items[700] = Emptying()
    with pytest.raises(RuntimeError, match="changed while it was read"):
        seen.update(items)
    assert len(seen) == 0


def test_batches_are_one_by_one(seen):
    items = [i % 1500 for i in range(5000)]
    one_by_one = seen.copy()
    assert seen.add_many(items) == [one_by_one.add(item) for item in items]
    asked = list(range(4000))
    assert seen.contains_many(asked) == [item in one_by_one for item in asked]
    assert seen == one_by_one


def test_copies(seen):
    seen.update(list("abc"))
    for other in (seen.copy(), copy.copy(seen), copy.deepcopy(seen)):
        assert type(other) is type(seen)
        assert other == seen and other is not seen
        other.add("d")
        assert other != seen and "d" not in seen


def test_clear(seen):
    seen.update(range(20_000))
    seen.clear()
    assert len(seen) == 0 and 7 not in seen and not seen
    assert seen.add(7)


def test_pickle(seen):
    seen.update(range(100))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(seen, protocol)) == seen


def test_bytes(seen):
    seen.update(range(100))
    data = seen.to_bytes()
    for form in (bytes, bytearray, memoryview):
        assert type(seen).from_bytes(form(data)) == seen
    # Every byte and every length counts.
    for place in range(len(data) if len(data) < 1000 else 200):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(FormatError):
            type(seen).from_bytes(damaged)
    for length in [0, 1, 8, 31, 32, len(data) - 1]:
        with pytest.raises(FormatError):
            type(seen).from_bytes(data[:length])
    with pytest.raises(FormatError):
        type(seen).from_bytes(data + b"\0")
    other = CLASSES[1 - CLASSES.index(type(seen))]
    with pytest.raises(FormatError, match="other kind"):
        other.from_bytes(data)
    with pytest.raises(TypeError, match="this str lends no bytes"):
        type(seen).from_bytes("text")
    assert issubclass(FormatError, ValueError)


def test_files(seen, tmp_path):
    path = tmp_path / "seen.bloom"
    seen.update(range(100))
    seen.save(path)
    seen.add("more")
    seen.save(str(path))
    assert type(seen).load(path) == seen
    assert [entry.name for entry in tmp_path.iterdir()] == ["seen.bloom"]
    with pytest.raises(FileNotFoundError) as caught:
        type(seen).load(tmp_path / "none")
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        seen.save(tmp_path / "no folder" / "seen.bloom")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        seen.save(tmp_path / "folder")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "seen.bloom"]
    path.write_bytes(b"something else")
    with pytest.raises(FormatError):
        type(seen).load(path)


@pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")
def test_a_file_keeps_its_links_and_its_permissions(seen, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    target, link = folder / "seen.bloom", tmp_path / "link.bloom"
    seen.save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    seen.add("more")
    seen.save(link)
    assert link.is_symlink()
    assert type(seen).load(target) == seen
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    # Nothing else is left in either folder.
    assert list(folder.iterdir()) == [target]
    assert sorted(tmp_path.iterdir()) == [folder, link]


def test_a_link_to_no_file_yet_stays_a_link(seen, tmp_path):
    target, link, second = tmp_path / "seen.bloom", tmp_path / "link", tmp_path / "second"
    link.symlink_to("seen.bloom")
    second.symlink_to(link)
    seen.save(second)
    assert link.is_symlink() and second.is_symlink()
    assert type(seen).load(target) == seen
    # One that leads to itself has no file.
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    with pytest.raises(OSError):
        seen.save(circle)
    assert circle.is_symlink()


def test_what_is_no_file_is_not_replaced(seen, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in [pipe, link]:
        with pytest.raises(OSError, match="is not a file"):
            seen.save(path)
    with pytest.raises(OSError):
        seen.save(tmp_path)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_what_a_killed_process_left_is_not_in_the_way(tmp_path):
    """In a container each process has the id 1, so its names are those of the one before it."""
    program = """
import os
from everbloom import BloomFilter
left = [f".seen.bloom.{os.getpid()}.{count}.tmp" for count in range(2)]
for name in left:
    open(name, "x").close()
BloomFilter(1000).save("seen.bloom")
BloomFilter.load("seen.bloom")
assert sorted(os.listdir()) == [*left, "seen.bloom"]
# A save that fails removes only its own file.
os.mkdir("folder")
open(f".folder.{os.getpid()}.3.tmp", "x").close()
try:
    BloomFilter(1000).save("folder")
except OSError:
    pass
assert sorted(os.listdir()) == sorted([*left, "seen.bloom", "folder", f".folder.{os.getpid()}.3.tmp"])
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_properties(seen):
    assert seen.capacity == 10_000
    assert seen.error_rate == pytest.approx(1e-9)
    assert seen.bits > 400_000
    assert seen.layout in repr(seen) and type(seen).__name__ in repr(seen)
    assert seen.fill_ratio() == 0 and seen.estimated_len() == 0
    seen.update(range(10_000))
    assert 0.2 < seen.fill_ratio() < 0.8
    assert 9_500 < seen.estimated_len() < 10_500
    # Double hashing adds to the classic layout.
    assert 0 < seen.estimated_error_rate() < 1e-6
    assert sys.getsizeof(seen) > seen.bits // 8
    with pytest.raises(AttributeError):
        seen.capacity = 7


def test_equality_and_hash(seen):
    assert seen == seen
    assert seen != "a" and not seen == None  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(seen)


@pytest.mark.parametrize("of_class", CLASSES)
def test_bad_parameters(of_class):
    for capacity, error, text in [
        (0, ValueError, "at least 1"),
        (-1, ValueError, "below 0"),
        (2**64, OverflowError, "2\\*\\*64 or more"),
        (2**64 - 1, (MemoryError, ValueError), "no "),
        (10**17, MemoryError, "no memory"),
        (1000.5, TypeError, "must be an int"),
        ("a", TypeError, "must be an int"),
    ]:
        with pytest.raises(error, match=text):
            of_class(capacity)
    for rate in [0, 1, -1, 2, float("nan"), float("inf"), 1e-300]:
        with pytest.raises(ValueError):
            of_class(100, rate)
    for rate in ("0.1", None, b"1", [0.1]):
        with pytest.raises(TypeError, match="the error rate must be a number, not <class '"):
            of_class(100, rate)
    with pytest.raises(TypeError, match="'blocked' or 'classic', not 7"):
        of_class(100, layout=7)
    with pytest.raises(ValueError, match="'blocked' or 'classic', not 'round'"):
        of_class(100, layout="round")
    with pytest.raises(ValueError, match="seed is for the blocked layout"):
        of_class(100, seed=1, layout="classic")
    for seed in (-1, 2**64, 1.5):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            of_class(100, seed=seed)
    with pytest.raises(TypeError):
        of_class(100, 0.01, 7)


def test_an_error_in_a_file_names_it(tmp_path):
    path = tmp_path / "seen.bloom"
    window = WindowedBloomFilter(100)
    cases = [
        (b"", [BloomFilter.load, everbloom.load, BloomView.open]),
        (b"EVRBLOOM", [BloomFilter.load, everbloom.load, BloomView.open]),
        (BloomFilter(9).to_bytes()[:-1], [BloomFilter.load, everbloom.load, BloomView.open]),
        (BloomFilter(9).to_bytes(), [ScalableBloomFilter.load, WindowedBloomFilter.load]),
        (ScalableBloomFilter().to_bytes(), [BloomFilter.load, WindowedBloomFilter.load]),
        (window.to_bytes(), [BloomFilter.load, ScalableBloomFilter.load]),
    ]
    for data, loads in cases:
        path.write_bytes(data)
        for load in loads:
            with pytest.raises(everbloom.FormatError, match=f"^{re.escape(str(path))}: [a-z]"):
                load(path)


def test_seeds():
    assert BloomFilter(100, seed=7) == BloomFilter(100, 0.01, seed=7)
    assert BloomFilter(100, seed=7) != BloomFilter(100, seed=8)
    assert BloomFilter(100) != BloomFilter(100)
    assert ScalableBloomFilter(seed=7) == ScalableBloomFilter(100, 0.01, seed=7, expansion=2)


def test_everything_is_described():
    """Docstrings, and a stub with the same names and parameters."""
    from pathlib import Path

    stub = Path(everbloom.__file__).parent
    stubs = [path for path in stub.rglob("*.pyi")]
    assert stubs and (stub / "py.typed").exists()
    text = stubs[0].read_text()
    for of_class in CLASSES:
        for name in dir(of_class):
            if not name.startswith("_"):
                assert getattr(of_class, name).__doc__, name
                assert f"def {name}(" in text, name
        assert f"{of_class.__name__}(capacity" in of_class.__doc__
    assert everbloom.__doc__ and everbloom.__version__
