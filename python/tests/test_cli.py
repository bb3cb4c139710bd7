"""Files of the command line are read here, and the reverse."""

import subprocess

import pytest

from everbloom import (
    BloomFilter,
    BloomView,
    CuckooFilter,
    FormatError,
    ScalableBloomFilter,
    WindowedBloomFilter,
    load,
)

LINES = [f"line {number}" for number in range(1000)]
OTHERS = [f"other {number}" for number in range(1000)]


@pytest.fixture
def run(binary):
    def run(*arguments, lines=LINES):
        text = "".join(f"{line}\n" for line in lines)
        command = [binary, *map(str, arguments)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("kind", [BloomFilter, ScalableBloomFilter])
def test_files_of_build(run, kind, layout, tmp_path):
    path = tmp_path / "lines.bloom"
    growing = ["--growing"] if kind is ScalableBloomFilter else []
    run("build", path, "-", "--capacity", 1000, "--layout", layout, *growing)
    seen = load(path)
    assert type(seen) is kind and seen == kind.load(path) and seen.layout == layout
    assert all(seen.contains_many(LINES)) and sum(seen.contains_many(OTHERS)) < 5
    assert BloomView.open(path).contains_many(LINES) == [True] * 1000
    other = ScalableBloomFilter if kind is BloomFilter else BloomFilter
    with pytest.raises(FormatError, match="everbloom.load"):
        other.load(path)
    # What is added here is found there.
    seen.update(OTHERS)
    seen.save(path)
    assert run("check", path, lines=[*OTHERS, "x"]) == OTHERS


def test_a_deletable_filter(run, tmp_path):
    path = tmp_path / "lines.bloom"
    run("build", "--deletable", "--growing", path, "-", "--capacity", 100)
    seen = load(path)
    assert type(seen) is CuckooFilter and seen == CuckooFilter.load(path)
    assert len(seen) == 1000 and seen.error_rate == 0.0001 and seen.tables > 1
    assert all(seen.contains_many(LINES)) and sum(seen.contains_many(OTHERS)) < 5
    with pytest.raises(FormatError, match="everbloom.load"):
        BloomFilter.load(path)
    assert seen.remove("line 7")
    seen.add("from python")
    seen.save(path)
    assert run("check", path, lines=["line 7", "line 8", "from python"]) == ["line 8", "from python"]
    run("build", "--deletable", "--ignore-case", path, "-", "--capacity", 1000)
    for read in (load, CuckooFilter.load):
        with pytest.raises(FormatError, match="ignore-case"):
            read(path)


def test_the_state_of_dedup(run, tmp_path):
    state = tmp_path / "state.bloom"
    assert run("dedup", "--state", state) == LINES
    seen = ScalableBloomFilter.load(state)
    assert load(state) == seen and all(seen.contains_many(LINES))
    seen.add("from python")
    seen.save(state)
    assert run("dedup", "--state", state, lines=["line 7", "from python", "new"]) == ["new"]


def test_a_filter_that_folds_is_not_asked_for_text_as_it_is(run, tmp_path):
    path = tmp_path / "names.bloom"
    run("build", path, "-", "-c", 10, "--ignore-case", lines=["Admin"])
    for read in (load, BloomFilter.load, BloomView.open):
        with pytest.raises(FormatError, match="everbloom check"):
            read(path)
    with pytest.raises(FormatError, match="--ignore-case"):
        BloomFilter.from_bytes(path.read_bytes())
    assert run("check", path, lines=["ADMIN", "x"]) == ["ADMIN"]


def test_load_knows_all_kinds(tmp_path):
    path = tmp_path / "filter.bloom"
    for seen in (BloomFilter(10), ScalableBloomFilter(), WindowedBloomFilter(10, ticks=5)):
        seen.save(path)
        assert load(path) == seen
    path.write_bytes(b"something else")
    with pytest.raises(FormatError):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
