"""Filters in memory that is only lent."""

import mmap

import numpy as np
import pytest

from everbloom import BloomFilter, BloomView, FormatError, ScalableBloomFilter


@pytest.fixture(params=["fixed", "scalable", "classic"])
def seen(request):
    made = {
        "fixed": lambda: BloomFilter(1000, 1e-6),
        "scalable": lambda: ScalableBloomFilter(100, 1e-6),
        "classic": lambda: BloomFilter(1000, 1e-6, layout="classic"),
    }[request.param]()
    made.update(range(1000))
    return made


def check(view, seen):
    assert view.contains_many(np.arange(1000)).all()
    assert view.contains_many(["x", 7]) == [False, True]
    assert 7 in view and "y" not in view
    assert (len(view), view.capacity) == (len(seen), seen.capacity)
    assert (view.error_rate, view.layout) == (seen.error_rate, seen.layout)
    view.verify()


def test_a_mapped_file(seen, tmp_path):
    path = tmp_path / "seen.bloom"
    seen.save(path)
    view = BloomView.open(path)
    check(view, seen)
    # The file is replaced, and the view keeps the old one.
    seen.clear()
    seen.save(path)
    assert 7 in view and 7 not in BloomView.open(path)
    path.unlink()
    assert 7 in view and f"{len(view)} items" in repr(view)


def test_views_of_buffers(seen, tmp_path):
    data = seen.to_bytes()
    check(BloomView(data), seen)
    check(BloomView(memoryview(b"xx" + data)[2:]), seen)
    path = tmp_path / "seen.bloom"
    path.write_bytes(data)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = BloomView(mapped)
    with pytest.raises(BufferError):
        mapped.close()
    check(view, seen)
    del view
    mapped.close()


def test_what_is_no_view(seen, tmp_path):
    data = seen.to_bytes()
    for other in (bytearray(data), "text", 7, None):
        with pytest.raises(TypeError, match="a view is of bytes"):
            BloomView(other)
    for damaged in (b"", b"EVRBLOOM", data[:-1], data + b"\0", b"X" + data[1:]):
        with pytest.raises(FormatError):
            BloomView(damaged)
    changed = bytearray(data)
    changed[-70] ^= 1
    view = BloomView(bytes(changed))
    with pytest.raises(FormatError):
        view.verify()
    with pytest.raises(FileNotFoundError):
        BloomView.open(tmp_path / "missing")
    with pytest.raises(AttributeError):
        view.add("x")
