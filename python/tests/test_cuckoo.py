"""Filters of which items can be removed."""

import copy
import pickle

import numpy as np
import pytest

import everbloom
from everbloom import BloomFilter, CuckooFilter, FormatError


def test_items_come_and_go():
    seen = CuckooFilter(1000)
    assert seen.add("a") and "a" in seen and "b" not in seen
    assert not seen.add("a")
    assert seen.count("a") == 2 and len(seen) == 2
    assert seen.remove("a") and "a" in seen
    assert seen.remove("a") and "a" not in seen
    assert not seen.remove("a")
    assert seen.add_many([1, (2, "x"), 1]) == [True, True, False]
    assert seen.contains_many(np.array([1, 7])).tolist() == [True, False]


def test_what_stays_is_found_while_it_grows():
    seen = CuckooFilter(256)
    assert seen.slots == 512, "sized by items, as the Rust library does"
    seen.update(range(10_000))
    assert seen.tables > 1 and len(seen) == 10_000 and seen.slots >= 10_000
    assert 0.3 < seen.fill_ratio() < 1 and 0 < seen.estimated_error_rate() < 1
    assert all(seen.remove(number) for number in range(5000))
    assert seen.contains_many(np.arange(5000, 10_000)).all()
    assert seen.contains_many(np.arange(5000)).mean() < 0.5


def test_slots_are_counted_as_cf_reserve_does():
    assert CuckooFilter().slots == 1024
    assert CuckooFilter(slots=1000, bucket_size=4).slots == 1024


def test_a_full_one():
    seen = CuckooFilter(slots=4, bucket_size=2, max_kicks=5, expansion=0)
    with pytest.raises(ValueError, match="full"):
        seen.update(range(100))
    assert len(seen) <= 4
    with pytest.raises(ValueError, match="full"):
        for number in range(100):
            seen.add(number)


def test_what_is_no_filter():
    for arguments, error in [
        ({"bucket_size": 0}, ValueError),
        ({"bucket_size": 256}, OverflowError),
        ({"max_kicks": 0}, ValueError),
        ({"expansion": 40_000}, ValueError),
        ({"expansion": 2**16}, OverflowError),
        ({"capacity": -1}, ValueError),
        ({"capacity": "a"}, TypeError),
        ({"slots": -1}, ValueError),
        ({"capacity": 8, "slots": 8}, ValueError),
    ]:
        with pytest.raises(error):
            CuckooFilter(**arguments)


def test_copies_and_chunks():
    seen = CuckooFilter(100, bucket_size=4)
    seen.update(range(1000))
    for again in (
        seen.copy(),
        copy.deepcopy(seen),
        pickle.loads(pickle.dumps(seen)),
        CuckooFilter.from_chunks(seen.chunks()),
    ):
        assert again == seen and again.remove(7) and again != seen
    assert pickle.loads(pickle.dumps(CuckooFilter())) == CuckooFilter()
    chunks = list(seen.chunks())
    for bad in ([], chunks[1:], chunks[:-1], [chunks[0], *chunks[2:]], [(1, b"x" * 38)]):
        with pytest.raises(FormatError):
            CuckooFilter.from_chunks(bad)
    assert "1000 items" in repr(seen)


def test_an_error_rate_is_kept():
    seen = CuckooFilter(1000, 0.001, seed=7)
    assert seen.error_rate == 0.001 and CuckooFilter(1000).error_rate is None
    seen.update(range(1000))
    assert seen.tables == 1
    seen.update(range(1000, 10_000))
    assert seen.tables > 1 and seen.estimated_error_rate() < 0.001
    assert seen.contains_many(np.arange(10_000)).all()
    assert seen.contains_many(np.arange(10_000, 210_000)).mean() < 0.0013
    assert all(seen.remove(number) for number in range(9000))
    assert seen.contains_many(np.arange(9000, 10_000)).all() and len(seen) == 1000
    for again in (
        seen.copy(),
        pickle.loads(pickle.dumps(seen)),
        CuckooFilter.from_bytes(seen.to_bytes()),
        CuckooFilter.from_chunks(seen.chunks()),
    ):
        assert again == seen and again.remove(9500) and again != seen
    empty = CuckooFilter(10, 0.01)
    assert CuckooFilter.from_chunks(empty.chunks()) == empty
    assert CuckooFilter(10, 0.01) != CuckooFilter(10, 0.01), "each has a key of its own"
    assert CuckooFilter(10, 0.01, seed=1) == CuckooFilter(10, 0.01, seed=1)


def test_an_error_rate_leaves_nothing_else_to_choose():
    for arguments, error in [
        ({"error_rate": 0.01}, ValueError),
        ({"capacity": 10, "error_rate": 0.01, "bucket_size": 4}, ValueError),
        ({"capacity": 10, "error_rate": 0.01, "max_kicks": 20}, ValueError),
        ({"slots": 10, "error_rate": 0.01}, ValueError),
        ({"capacity": 10, "seed": 1}, ValueError),
        ({"capacity": 10, "error_rate": 0.6}, ValueError),
        ({"capacity": 10, "error_rate": float("nan")}, ValueError),
        ({"capacity": 10, "error_rate": "a"}, TypeError),
    ]:
        with pytest.raises(error):
            CuckooFilter(**arguments)


def test_bytes_that_are_no_cuckoo_filter():
    data = CuckooFilter(100).to_bytes()
    assert CuckooFilter.from_bytes(data) == CuckooFilter(100)
    for bad in (b"", data[:-1], data[:70] + b"x" + data[71:]):
        with pytest.raises(FormatError):
            CuckooFilter.from_bytes(bad)


def test_the_union_of_two_has_the_items_of_both():
    one = CuckooFilter(1000, 0.001)
    other = one.empty_like()
    one.update(range(400))
    other.update(range(300, 800))
    both = one | other
    assert len(both) == 900 and both.count(350) == 2 and both.count(1) == 1
    assert both.contains_many(np.arange(800)).all()
    assert one.union(other) == both and one.union() == one
    one |= other
    assert one == both
    # An item that is in both is there twice, so a filter with itself has each twice.
    twice = one.empty_like()
    twice.update(range(300))
    twice |= twice
    assert len(twice) == 600 and twice.count(7) == 2 and twice.remove(7) and 7 in twice
    with pytest.raises(ValueError, match="keys"):
        one |= CuckooFilter(1000, 0.001)
    with pytest.raises(ValueError, match="hashes"):
        one |= CuckooFilter(1000)
    with pytest.raises(ValueError, match="no room"):
        one.union(both, both)
    with pytest.raises(TypeError):
        one.union(BloomFilter(1000))


def test_files_of_the_command_line(tmp_path):
    path = tmp_path / "absent.bloom"
    for seen in (CuckooFilter(100, 0.001, expansion=0), CuckooFilter(100)):
        seen.update(["a", "b"])
        seen.save(path)
        assert CuckooFilter.load(path) == everbloom.load(path) == seen
    with pytest.raises(FormatError, match="another kind"):
        BloomFilter.load(path)
    BloomFilter(100).save(path)
    with pytest.raises(FormatError, match="another kind"):
        CuckooFilter.load(path)
    assert (seen.expansion, CuckooFilter(100, 0.01).expansion) == (1, 2)
    assert 100 <= CuckooFilter(100, 0.01).capacity < 130
