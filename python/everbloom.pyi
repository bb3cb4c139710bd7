"""Bloom filters: "have I seen this before?" in about ten bits an item."""

from collections.abc import Generator, Iterable, Iterator
from os import PathLike
from typing import Any, Literal, Protocol, SupportsIndex, Tuple, Union, final, overload

__all__ = ["BloomFilter", "FormatError", "ScalableBloomFilter", "__version__"]
__version__: str

_Layout = Literal["blocked", "classic"]

_Item = Union[str, bytes, bytearray, memoryview, int, SupportsIndex, Tuple["_Item", ...]]
"""What can be put into a filter: a tuple has from one to eight parts."""

class _Column(Protocol):
    """A column of pandas, polars or Arrow."""

    def to_numpy(self) -> Any: ...

# numpy's arrays are iterables of items, too.
_Items = Union[Iterable[_Item], _Column]

# What is answered with a list.
_List = Union[list[Any], Tuple[Any, ...], Generator[Any, Any, Any]]

class FormatError(ValueError):
    """Bytes, a file or chunks are not a filter: damaged, cut off, or of another kind."""

@final
class BloomFilter:
    """A Bloom filter of fixed size."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.01,
        *,
        seed: int | None = None,
        layout: _Layout = "blocked",
    ) -> BloomFilter: ...
    def add(self, item: _Item) -> bool:
        """Adds an item; True if it is new: `item in filter` was False before."""

    def update(self, items: _Items, *, skip_missing: bool = False) -> None:
        """Adds all items of an iterable, an array or a column."""

    @overload
    def add_many(self, items: _List) -> list[bool]:
        """Adds all items; for each one, whether it was new.

        A list of bool, or a numpy array of bool when the items are an array or a column. A row
        without a value is an error before anything is added, or False with skip_missing.
        """

    @overload
    def add_many(self, items: _Items, *, skip_missing: bool = False) -> Any: ...
    @overload
    def contains_many(self, items: _List) -> list[bool]:
        """For each item, whether it is in the filter.

        A list of bool, or a numpy array of bool when the items are an array or a column. A row
        without a value is an error, or False with skip_missing.
        """

    @overload
    def contains_many(self, items: _Items, *, skip_missing: bool = False) -> Any: ...

    def __contains__(self, item: _Item, /) -> bool: ...
    def __len__(self) -> int: ...
    def __or__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __and__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __ior__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __iand__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __copy__(self) -> BloomFilter: ...
    def __deepcopy__(self, memo: Any, /) -> BloomFilter: ...
    def clear(self) -> None:
        """Removes all items. The filter keeps its size and its key."""

    def copy(self) -> BloomFilter:
        """A filter like this one, with the same items."""

    def empty_like(self) -> BloomFilter:
        """An empty filter of the same size and key: the two can be united and intersected."""

    def shrink_to(self, capacity: int) -> float:
        """Makes the filter smaller; the error rate to expect now."""

    def to_bytes(self) -> bytes:
        """The filter as bytes. from_bytes and everbloom's Rust library read them."""

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> BloomFilter:
        """Reads a filter from the bytes of to_bytes."""

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the filter to a file. The file is replaced as a whole, or stays as it was."""

    @classmethod
    def load(cls, path: str | PathLike[str]) -> BloomFilter:
        """Reads a filter that save wrote."""

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The filter in pieces, for BF.LOADCHUNK of a server."""

    @property
    def capacity(self) -> int:
        """How many items the filter is made for."""

    @property
    def error_rate(self) -> float:
        """The error rate when it holds as many items as its capacity."""

    @property
    def bits(self) -> int:
        """Length of the bit array in bits."""

    @property
    def hashes(self) -> int:
        """Bits set by an item."""

    @property
    def layout(self) -> _Layout:
        """'blocked' or 'classic'."""

    def fill_ratio(self) -> float:
        """The part of the bits that are 1. Reads the whole filter."""

    def estimated_error_rate(self) -> float:
        """The error rate to expect now. Reads the whole filter."""

    def estimated_len(self) -> int:
        """How many different items were added, by an estimate. Reads the whole filter."""

@final
class ScalableBloomFilter:
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
    def add(self, item: _Item) -> bool:
        """Adds an item; True if it is new: `item in filter` was False before."""

    def update(self, items: _Items, *, skip_missing: bool = False) -> None:
        """Adds all items of an iterable, an array or a column."""

    @overload
    def add_many(self, items: _List) -> list[bool]:
        """Adds all items; for each one, whether it was new.

        A list of bool, or a numpy array of bool when the items are an array or a column. A row
        without a value is an error before anything is added, or False with skip_missing.
        """

    @overload
    def add_many(self, items: _Items, *, skip_missing: bool = False) -> Any: ...
    @overload
    def contains_many(self, items: _List) -> list[bool]:
        """For each item, whether it is in the filter.

        A list of bool, or a numpy array of bool when the items are an array or a column. A row
        without a value is an error, or False with skip_missing.
        """

    @overload
    def contains_many(self, items: _Items, *, skip_missing: bool = False) -> Any: ...

    def __contains__(self, item: _Item, /) -> bool: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __copy__(self) -> ScalableBloomFilter: ...
    def __deepcopy__(self, memo: Any, /) -> ScalableBloomFilter: ...
    def clear(self) -> None:
        """Removes all items. The filter keeps its key and its first layer."""

    def copy(self) -> ScalableBloomFilter:
        """A filter like this one, with the same items."""

    def to_bytes(self) -> bytes:
        """The filter as bytes. from_bytes and everbloom's Rust library read them."""

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> ScalableBloomFilter:
        """Reads a filter from the bytes of to_bytes."""

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the filter to a file. The file is replaced as a whole, or stays as it was."""

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ScalableBloomFilter:
        """Reads a filter that save wrote."""

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The filter in pieces, for BF.LOADCHUNK of a server."""

    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[int, bytes]]) -> ScalableBloomFilter:
        """The filter of such pieces, from here or from BF.SCANDUMP of a server."""

    @property
    def capacity(self) -> int:
        """The sum of the layers' capacities."""

    @property
    def error_rate(self) -> float:
        """The error rate that it keeps."""

    @property
    def expansion(self) -> int:
        """The growth factor from one layer's capacity to the next; 0: it does not grow."""

    @property
    def layers(self) -> int:
        """How many layers there are."""

    @property
    def bits(self) -> int:
        """Length of the bit arrays in bits."""

    @property
    def hashes(self) -> list[int]:
        """Bits set by an item, for each layer, oldest first."""

    @property
    def layout(self) -> _Layout:
        """'blocked' or 'classic'."""

    def fill_ratio(self) -> float:
        """The part of the bits that are 1. Reads the whole filter."""

    def estimated_error_rate(self) -> float:
        """The error rate to expect now. Reads the whole filter."""

    def estimated_len(self) -> int:
        """How many different items were added, by an estimate. Reads the whole filter."""
