"""Chunks of HDF5 datasets that become more than they say when they are decompressed.

HDF5 inflates a chunk to wherever its bytes lead and compares sizes afterwards, so 40 MB can ask for 40 GB. Deflate
makes at most 1032 bytes out of one: chunks of up to 1 MiB are harmless, larger ones are inflated here first, up to the
size that the dataset declares.
"""

import zlib
from itertools import product
from math import prod

import h5py

DEFLATE = 1
HARMLESS = 2**20
SLACK = 2**16  # bytes that filters may add to incompressible numbers


def filters_of(node: h5py.Dataset) -> list[int]:
    """Numbers of the filters that a dataset's chunks go through."""
    settings = node.id.get_create_plist()
    return [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]


def swollen_chunk(node: h5py.Dataset) -> int | None:
    """Bytes of a chunk that is stored in more bytes than it has, which no compression does."""
    declared = prod(node.chunks) * node.dtype.itemsize
    found: list[int] = []

    def look(chunk: h5py.h5d.StoreInfo) -> bool | None:
        if chunk.size > declared + declared // 64 + SLACK:
            found.append(chunk.size)
        return True if found else None

    node.id.chunk_iter(look)
    return found[0] if found else None


def check_inflation(node: h5py.Dataset, selection: tuple[slice, ...], known: set[tuple[int, ...]]) -> None:
    """Raise `OSError` if a chunk under a selection inflates beyond its size; `known` ones are not looked at again."""
    if node.chunks is None or DEFLATE not in filters_of(node):
        return
    declared = prod(node.chunks) * node.dtype.itemsize
    if declared + declared // 64 + SLACK <= HARMLESS:
        return
    ranges = []
    for part, length, chunk in zip(selection, node.shape, node.chunks, strict=True):
        start, stop, _ = part.indices(length)
        ranges.append(range(start // chunk * chunk, stop, chunk))
    for offset in product(*ranges):
        if offset in known:
            continue
        mask, stored = node.id.read_direct_chunk(offset)
        if len(stored) > HARMLESS and not mask >> filters_of(node).index(DEFLATE) & 1:
            inflated = zlib.decompressobj().decompress(stored, declared + SLACK)
            if len(inflated) == declared + SLACK:
                raise OSError(f"the chunk at {offset} becomes more than the {declared} bytes that it should have")
        known.add(offset)
