"""Walk an HDF5 (or NetCDF-4) file without leaving it.

Links that leave the file, virtual datasets, external storage, objects, references and unknown filters are never
followed. Chunks that were never written make an array incomplete. Data are read through, up to a budget.
"""

from math import prod
from typing import Any

import h5py

from ssno.data.readers.arrays import SLACK, check_inflation, filters_of
from ssno.data.sandbox.report import MAX_OBJECTS, Record, Report, plain, read_through, why_not

MAX_DEPTH = 32
MAX_ATTRIBUTE = 64 * 2**10
MAX_CHUNK = 128 * 2**20
FILTERS = {1, 2, 3, 32000}  # deflate, shuffle, fletcher32, lzf


def attributes_of(node: h5py.Group | h5py.Dataset) -> Record:
    """Small plain attributes; others are left out."""
    found = {}
    for name in list(node.attrs.keys())[:MAX_OBJECTS]:
        if isinstance(name, bytes):  # no UTF-8
            continue
        attribute = h5py.h5a.open(node.id, name.encode())
        if attribute.get_space().get_simple_extent_npoints() * attribute.get_type().get_size() > MAX_ATTRIBUTE:
            continue
        value = plain(node.attrs[name])
        if value is not None:
            found[name] = value
    return found


def examine_hdf5(path: str, budget: int) -> Record:
    """Walk an HDF5 file without leaving it and without visiting anything twice."""
    report = Report("hdf5", budget)
    with h5py.File(path, "r") as file:
        seen = {h5py.h5o.get_info(file.id).addr}
        stack: list[tuple[str, h5py.Group]] = [("", file["/"])]
        while stack:
            prefix, group = stack.pop()
            report.answer["groups"][prefix] = attributes_of(group)
            for key in group:
                name = f"{prefix}/{key}".lstrip("/")
                if len(seen) >= MAX_OBJECTS or name.count("/") > MAX_DEPTH:
                    raise ValueError(f"more than {MAX_OBJECTS} objects or {MAX_DEPTH} levels of groups")
                if isinstance(key, bytes):
                    report.refuse(name, "has a name that is not UTF-8; rename it")
                    continue
                link = group.get(key, getlink=True)
                if isinstance(link, h5py.ExternalLink):
                    report.refuse(name, f"is a link to another file, {link.filename!r}")
                    continue
                if isinstance(link, h5py.SoftLink):
                    report.refuse(name, f"is a soft link to {link.path!r}; name the target itself")
                    continue
                address = h5py.h5o.get_info(group.id, key.encode()).addr
                if address in seen:
                    report.refuse(name, "is a second name of something listed elsewhere")
                    continue
                seen.add(address)
                node = group[key]
                if isinstance(node, h5py.Group):
                    stack.append((name, node))
                elif isinstance(node, h5py.Dataset):
                    examine_dataset(name, node, report)
                else:
                    report.refuse(name, "is a named type, not data")
    return report.answer


def examine_dataset(name: str, node: h5py.Dataset, report: Report) -> None:
    """List a dataset if its numbers can be read."""
    attributes = attributes_of(node)
    if str(attributes.get("NAME", "")).startswith("This is a netCDF dimension but not a netCDF variable"):
        return
    why = why_not_dataset(node)
    if why is None and node.size:
        try:
            read_through(Checked(node), node.dtype.itemsize, report)
        except Exception as error:
            why = f"cannot be read: {error}"
    if why is not None:
        report.refuse(name, why)
    else:
        report.add(name, node.shape, node.dtype, attributes=attributes, dims=dimension_names(node))


class Checked:
    """A dataset whose chunks are inflated with care before they are read."""

    def __init__(self, node: h5py.Dataset):
        self.node, self.shape, self.ndim = node, node.shape, node.ndim
        self.known: set[tuple[int, ...]] = set()

    def __getitem__(self, selection: slice | tuple[slice, ...]) -> Any:
        chosen = selection if isinstance(selection, tuple) else (selection,)
        check_inflation(self.node, (*chosen, *[slice(None)] * (self.ndim - len(chosen))), self.known)
        return self.node[selection]


def why_not_dataset(node: h5py.Dataset) -> str | None:
    """Why a dataset is not read, found from its description alone."""
    if node.shape is None:
        return "is empty"
    if node.is_virtual or node.external:
        return "takes its numbers from other files (virtual dataset or external storage)"
    if why := why_not(node.dtype):
        return why
    if unknown := set(filters_of(node)) - FILTERS:
        return f"is stored with filter {min(unknown)}, which ssno does not run; store it with gzip"
    size = node.size * node.dtype.itemsize
    if node.chunks is None:
        stored = node.id.get_storage_size()
        return None if stored >= size else f"is incomplete: {stored} of {size} bytes were written"
    if prod(node.chunks) * node.dtype.itemsize > MAX_CHUNK:
        return f"has chunks of {node.chunks}, larger than {MAX_CHUNK} bytes; store it with smaller ones"
    expected = prod(-(-n // chunk) for n, chunk in zip(node.shape, node.chunks, strict=True))
    written = node.id.get_num_chunks() if size else expected
    if written != expected:
        return f"is incomplete: {written} of {expected} chunks were written"
    if (swollen := swollen_chunk(node)) is None:
        return None
    return f"has a chunk of {prod(node.chunks) * node.dtype.itemsize} bytes stored in {swollen}: hostile"


def dimension_names(node: h5py.Dataset) -> list[str]:
    """Names that the file gives to the axes (NetCDF-4 dimension scales, HDF5 labels); empty if any is unnamed."""
    names = []
    try:
        for dim in node.dims:
            scale = dim[0].name.rsplit("/", 1)[-1] if len(dim) else ""
            names.append(dim.label or scale)
    except (RuntimeError, OSError, ValueError, KeyError):
        return []
    return names if all(names) else []


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
