"""Filters that Rust wrote are read here, and the reverse.

`tests/golden` holds filters that an earlier version of the Rust library wrote; they must load for
ever. `cargo build --example exchange` makes the program for the other direction.
"""

import subprocess
from pathlib import Path

import pytest
from conftest import find

from everbloom import BloomFilter, ScalableBloomFilter

GOLDEN = Path(__file__).parent / "golden"
EXCHANGE = Path(__file__).parents[1] / "target/debug/examples/exchange"

# The same as in examples/exchange.rs.
ITEMS = ["text", "", "ä€😀", b"\0\xff\0", 7, 0, -7, -(2**63), 2**64 - 1, 2**128 - 1, -(2**127)]
ITEMS += [("a", 7, b"\0"), (("a", 1), (2,)), (1, 2, 3, 4, 5, 6, 7, "8")]
ITEMS += range(1000, 1400)
OTHERS = ["7", "other", "a", "1000"]

LAYOUTS = ["blocked", "classic"]


def check(folder, layout):
    """The filters that Rust wrote, and the same made here."""
    seed = 7 if layout == "blocked" else None
    for written, made in [
        (
            BloomFilter.load(folder / f"fixed-{layout}.bloom"),
            BloomFilter(600, 1e-6, seed=seed, layout=layout),
        ),
        (
            ScalableBloomFilter.load(folder / f"scalable-{layout}.bloom"),
            ScalableBloomFilter(100, 1e-6, seed=seed, layout=layout),
        ),
    ]:
        assert all(written.contains_many(ITEMS))
        assert not any(written.contains_many(OTHERS))
        assert written.layout == layout
        made.update(ITEMS)
        if folder == GOLDEN and layout == "blocked" and isinstance(made, ScalableBloomFilter):
            # It grew when the second layer had 18 times as much room, and goes on from there.
            assert (written.capacity, len(written)) == (1900, len(made))
            written.update(range(2000, 4000))
            assert written.capacity == 1900 + 2 * 1800
            assert all(written.contains_many([*ITEMS, *range(2000, 4000)]))
            continue
        assert made == written


@pytest.mark.parametrize("layout", LAYOUTS)
def test_filters_from_rust(layout):
    check(GOLDEN, layout)


def run(*arguments):
    find(EXCHANGE, "cargo build --example exchange makes it")
    subprocess.run([EXCHANGE, *arguments], check=True)


def test_filters_of_todays_rust(tmp_path):
    run("write", tmp_path)
    for layout in LAYOUTS:
        check(tmp_path, layout)


def test_filters_for_rust(tmp_path):
    for layout in LAYOUTS:
        fixed = BloomFilter(600, 1e-6, layout=layout)
        fixed.update(ITEMS)
        fixed.save(tmp_path / f"fixed-{layout}.bloom")
        growing = ScalableBloomFilter(100, 1e-6, layout=layout)
        growing.update(ITEMS)
        growing.save(tmp_path / f"scalable-{layout}.bloom")
    run("check", tmp_path)
    # The check notices what is missing.
    fixed.clear()
    fixed.save(tmp_path / "fixed-classic.bloom")
    with pytest.raises(subprocess.CalledProcessError):
        run("check", tmp_path)
