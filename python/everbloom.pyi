"""Bloom filters: "have I seen this before?" in about ten bits an item."""

from collections.abc import Iterable, Iterator, Set
from mmap import mmap
from os import PathLike
from typing import Any, Literal, Protocol, SupportsIndex, Tuple, Union, final, overload, type_check_only

from typing_extensions import Self

__all__ = [
    "BloomFilter",
    "BloomView",
    "CuckooFilter",
    "FormatError",
    "ScalableBloomFilter",
    "WindowedBloomFilter",
    "__version__",
    "load",
]
__version__: str

_Layout = Literal["blocked", "classic"]

_Item = Union[str, bytes, bytearray, memoryview, int, SupportsIndex, Tuple["_Item", ...]]
"""What can be put into a filter: a tuple has from one to eight parts."""

class _Column(Protocol):
    """A column of pandas or polars."""

    def to_numpy(self) -> Any: ...

class _ArrowArray(Protocol):
    """A column in Arrow's memory."""

    def __arrow_c_array__(self, requested_schema: Any = ...) -> Any: ...

class _ArrowStream(Protocol):
    """A column in Arrow's memory, in chunks."""

    def __arrow_c_stream__(self, requested_schema: Any = ...) -> Any: ...

# numpy's arrays are iterables of items, too.
_Items = Union[Iterable[_Item], _Column, _ArrowArray, _ArrowStream]

# What is answered with a list.
_List = Union[list[Any], Tuple[Any, ...], Set[Any], range, Iterator[Any]]

class FormatError(ValueError):
    """Bytes, a file or chunks are not a filter: damaged, cut off, or of another kind."""

def load(
    path: str | PathLike[str],
) -> BloomFilter | ScalableBloomFilter | WindowedBloomFilter | CuckooFilter:
    """Reads a filter of any kind: of save, of `everbloom build` or of `dedup --state`."""

@type_check_only
class _Value:
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def copy(self) -> Self:
        """A filter like this one, with the same items."""

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The filter in pieces, for BF.LOADCHUNK or CF.LOADCHUNK of a server."""

    def fill_ratio(self) -> float:
        """The part of the bits that are 1, or of the slots in use. Reads the whole filter."""

    def estimated_error_rate(self) -> float:
        """The error rate to expect now. Reads the whole filter."""

@type_check_only
class _Lookup:
    def __contains__(self, item: _Item, /) -> bool: ...
    @overload
    def contains_many(self, items: _List) -> list[bool]:
        """For each item, whether it is in the filter.

        A list of bool, or a numpy array of bool when the items are an array or a column. A row
        without a value is an error, or False with skip_missing.
        """

    @overload
    def contains_many(self, items: _Items, *, skip_missing: bool = False) -> Any: ...

@type_check_only
class _Adding(_Lookup):
    def add(self, item: _Item) -> bool:
        """Adds an item; True if it is new: `item in filter` was False before."""

    def update(self, *items: _Items, skip_missing: bool = False) -> None:
        """Adds all items of iterables, arrays and columns."""

    @overload
    def add_many(self, items: _List) -> list[bool]:
        """Adds all items; for each one, whether it was new.

        A list of bool, or a numpy array of bool when the items are an array or a column. A row
        without a value is an error before anything is added, or False with skip_missing.
        An object that is no item is an error before anything is added, too; of an iterator, the
        items before it are added.
        """

    @overload
    def add_many(self, items: _Items, *, skip_missing: bool = False) -> Any: ...

@type_check_only
class _Set(_Value):
    def __or__(self, other: Self, /) -> Self: ...
    def __ior__(self, other: Self, /) -> Self: ...
    def union(self, *others: Self) -> Self:
        """A new filter with the items of this one and of the others."""

    def empty_like(self) -> Self:
        """An empty filter of the same size and key: the two can be united."""

    def to_bytes(self) -> bytes:
        """The filter as bytes. from_bytes and everbloom's Rust library read them."""

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Reads a filter from the bytes of to_bytes."""

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the filter to a file. The file is replaced as a whole, or stays as it was."""

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a file of save, or of the command line."""

@type_check_only
class _Bloom(_Set):
    def clear(self) -> None:
        """Removes all items. The filter keeps its key and its size, or its first layer."""

    @property
    def capacity(self) -> int:
        """How many items the filter is made for: of all layers, or in a window."""

    @property
    def error_rate(self) -> float:
        """The error rate that the filter is made for."""

    @property
    def bits(self) -> int:
        """Length of the bit arrays in bits."""

    @property
    def layout(self) -> _Layout:
        """'blocked' or 'classic'."""

    def estimated_len(self) -> int:
        """How many different items were added, by an estimate. Reads the whole filter."""

@final
class BloomFilter(_Adding, _Bloom):
    """A Bloom filter of fixed size."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.01,
        *,
        seed: int | None = None,
        layout: _Layout = "blocked",
    ) -> BloomFilter: ...
    def __and__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __iand__(self, other: BloomFilter, /) -> BloomFilter: ...
    def shrink_to(self, capacity: int) -> float:
        """Makes the filter smaller; the error rate to expect now.

        ValueError if it would not become smaller.
        """

    @property
    def hashes(self) -> int:
        """Bits set by an item."""

@final
class ScalableBloomFilter(_Adding, _Bloom):
    """A Bloom filter that grows with its items and keeps its error rate."""

    def __new__(
        cls,
        capacity: int = 100,
        error_rate: float = 0.01,
        *,
        expansion: int = 2,
        seed: int | None = None,
        layout: _Layout = "blocked",
    ) -> ScalableBloomFilter: ...
    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[int, bytes | None]]) -> ScalableBloomFilter:
        """The filter of such pieces, from here or from BF.SCANDUMP of a server."""

    @property
    def expansion(self) -> int:
        """The growth factor from one layer's capacity to the next; 0: it does not grow."""

    @property
    def layers(self) -> int:
        """How many layers there are."""

    @property
    def hashes(self) -> list[int]:
        """Bits set by an item, for each layer, oldest first."""

@final
class WindowedBloomFilter(_Bloom):
    """A Bloom filter that remembers the items of a window, and forgets older ones."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.01,
        *,
        ticks: int | None = None,
        generations: int = 4,
        seed: int | None = None,
    ) -> WindowedBloomFilter: ...
    def add(self, item: _Item, now: int | None = None) -> bool:
        """Adds an item at a time; True if it was not in the window."""

    def update(
        self, *items: _Items, now: int | None = None, skip_missing: bool = False
    ) -> None:
        """Adds all items of iterables, arrays and columns."""

    @overload
    def add_many(self, items: _List, now: int | None = None) -> list[bool]:
        """Adds all items; for each one, whether it was new in the window."""

    @overload
    def add_many(
        self, items: _Items, now: int | None = None, *, skip_missing: bool = False
    ) -> Any: ...
    def contains(self, item: _Item, now: int | None = None) -> bool:
        """Whether an item is in the window: False is certain."""

    @overload
    def contains_many(self, items: _List, now: int | None = None) -> list[bool]:
        """For each item, whether it is in the window."""

    @overload
    def contains_many(
        self, items: _Items, now: int | None = None, *, skip_missing: bool = False
    ) -> Any: ...
    def __contains__(self, item: _Item, /) -> bool:
        """Only for a window without ticks: `in` cannot say the time."""

    def advance(self, count: int = 1, now: int | None = None) -> None:
        """Begins so many generations, and forgets those that are too old then."""

    def union(self, *others: Self, now: int | None = None) -> Self:
        """A new filter with the items of this one and of the others.

        At a time, filters that a wrong clock has moved ahead of it begin again.
        """

    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[int, bytes | None]]) -> WindowedBloomFilter:
        """The filter of such pieces, from here or from BF.SCANDUMP of a server."""

    @property
    def ticks(self) -> int | None:
        """How long the window is; None when it is the last `capacity` items."""

    @property
    def generations(self) -> int:
        """In how many steps the window moves."""

    def kept(self) -> list[tuple[int, int]]:
        """The generations, oldest first: when each began, and how many items entered it."""

@final
class CuckooFilter(_Adding, _Set):
    """A cuckoo filter: items can be removed. Without an error rate it is RedisBloom's."""

    def __new__(
        cls,
        capacity: int | None = None,
        error_rate: float | None = None,
        *,
        seed: int | None = None,
        slots: int | None = None,
        bucket_size: int | None = None,
        max_kicks: int | None = None,
        expansion: int | None = None,
    ) -> CuckooFilter: ...
    @property
    def error_rate(self) -> float | None:
        """The error rate that was asked for; None in a filter of RedisBloom's kind."""

    def remove(self, item: _Item) -> bool:
        """Removes an item once; False when it is not there. Only for items that were added."""

    def count(self, item: _Item) -> int:
        """How often the item was added and not removed, or more."""

    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[int, bytes | None]]) -> CuckooFilter:
        """The filter of such pieces, from here or from CF.SCANDUMP of a server."""

    @property
    def capacity(self) -> int:
        """The most items that the tables take. RedisBloom's kind grows earlier."""

    @property
    def expansion(self) -> int:
        """How many times as large as a table the next one is; 0: the filter does not grow."""

    @property
    def slots(self) -> int:
        """The slots of all tables. With an error rate 19 of 20 are used at most: see capacity."""

    @property
    def tables(self) -> int:
        """How many tables there are."""

@final
class BloomView(_Lookup):
    """A filter in borrowed memory, such as a mapped file."""

    def __new__(cls, data: bytes | memoryview | mmap) -> BloomView: ...
    @classmethod
    def open(cls, path: str | PathLike[str]) -> BloomView:
        """Maps a file into memory. Several processes share its memory."""

    def verify(self) -> None:
        """Reads all bits, and raises FormatError when they were changed."""

    def __len__(self) -> int: ...
    @property
    def capacity(self) -> int:
        """How many items the filter is made for; the sum of all layers."""

    @property
    def error_rate(self) -> float:
        """The error rate that the filter is made for."""

    @property
    def layout(self) -> _Layout:
        """'blocked' or 'classic'."""
