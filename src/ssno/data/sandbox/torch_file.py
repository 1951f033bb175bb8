"""Find the tensors of a PyTorch file (torch.save since 1.6: a ZIP file) without unpickling it.

    archive/data.pkl      a pickle that says what there is; a tensor is a call with the number of its storage
    archive/data/0 ...    the numbers, stored without compression, so that they can be read in place

A pickle is a program. This one is not run: its steps are read, and those that a list of dicts of tensors needs are
followed here, on plain values. A tensor is never made, only its place in the file. Anything else ends the reading.
"""

import os
import pickletools
import zipfile
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ssno.data.sandbox.arrays import place_of
from ssno.data.sandbox.report import MAX_OBJECTS, Record, Report

NUMBERS = {"Double": "<f8", "Float": "<f4", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Short": "<i2"}
NUMBERS |= {"Bool": "|b1", "Char": "|i1", "Byte": "|u1"}
STORAGES = {f"torch {name}Storage": code for name, code in NUMBERS.items()}
TENSOR, ORDERED = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
PUSH = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
MAX_AXES = 32
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Name(NamedTuple):
    """Something that a pickle wants to import: compared with names, never imported."""

    text: str


class _Tensor(NamedTuple):
    storage: str
    dtype: str
    numbers: int  # of the storage
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def examine_torch(path: str, budget: int) -> Record:
    """The tensors in a list of dicts, called "0/pos", "0/x", ..., each at its place in the file."""
    report = Report("torch", budget)
    with zipfile.ZipFile(path) as archive, open(path, "rb") as raw:
        members = {info.filename: info for info in archive.infolist()}
        pickles = [name for name in members if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError(f"{len(pickles)} members called data.pkl, expected one")
        folder = pickles[0].removesuffix("data.pkl")
        if (order := members.get(f"{folder}byteorder")) and raw_bytes(order, raw, most=16) != b"little":
            raise ValueError("numbers with the high byte first")
        cases = plain_values(raw_bytes(members[pickles[0]], raw, most=os.path.getsize(path)))
        if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
            raise ValueError("no list of dicts")
        tensors = {
            f"{number}/{key}": value
            for number, case in enumerate(cases)
            for key, value in case.items()
            if isinstance(value, _Tensor)
        }
        if len(tensors) > MAX_OBJECTS:
            raise ValueError(f"more than {MAX_OBJECTS} tensors")
        for name, tensor in tensors.items():
            list_tensor(report, name, tensor, members[f"{folder}data/{tensor.storage}"], raw)
    size = sum(prod(record["shape"]) * np.dtype(record["dtype"]).itemsize for record in report.answer["arrays"])
    if size > os.path.getsize(path):
        raise ValueError(f"its tensors have {size} bytes together, more than the file: several share the same numbers")
    return report.answer


def list_tensor(report: Report, name: str, tensor: _Tensor, info: zipfile.ZipInfo, raw: BinaryIO) -> None:
    """A tensor, if all its numbers lie in its storage, and the storage in the file."""
    dtype = np.dtype(tensor.dtype)
    offset, room = stored_at(info, raw)
    last = tensor.first + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
    if min((*tensor.shape, *tensor.strides, tensor.first, 0)) < 0:
        report.refuse(name, f"has a shape {tensor.shape} or steps {tensor.strides} below zero")
    elif (count := prod(tensor.shape)) > tensor.numbers or (count > 0 and (last + 1) * dtype.itemsize > room):
        report.refuse(name, "has more numbers than the file holds for it")
    else:
        strides = [dtype.itemsize * step for step in tensor.strides]
        report.add(name, tensor.shape, dtype, offset=offset + dtype.itemsize * tensor.first, strides=strides)


def stored_at(info: zipfile.ZipInfo, raw: BinaryIO) -> tuple[int, int]:
    """Where the bytes of a member begin, and how many are there."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed, which torch.save never does")
    return place_of(info, raw)


def raw_bytes(info: zipfile.ZipInfo, raw: BinaryIO, *, most: int) -> bytes:
    """The bytes of an uncompressed member."""
    offset, size = stored_at(info, raw)
    raw.seek(offset)
    return raw.read(max(0, min(size, most)))


def plain_values(pickle: bytes) -> Any:
    """What a pickle describes, as lists, dicts, tuples, numbers, text and `_Tensor`s."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        start = marks.pop()
        taken = stack[start:]
        del stack[start:]
        return taken

    argument: Any
    for step, argument, _ in pickletools.genops(pickle):
        match step.name:
            case "PROTO" | "BINPERSID":  # the description of a storage stays as it is
                pass
            case "STOP":
                return stack.pop()
            case "MARK":
                marks.append(len(stack))
            case "GLOBAL":
                stack.append(_Name(argument))
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "TUPLE":
                stack.append(tuple(since_mark()))
            case "APPEND" | "APPENDS":
                values = since_mark() if step.name == "APPENDS" else [stack.pop()]
                stack[-1].extend(values)
            case "SETITEM" | "SETITEMS":
                pairs = since_mark() if step.name == "SETITEMS" else [stack.pop(-2), stack.pop()]
                stack[-1].update({str_key(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)})
            case "REDUCE":
                values, call = stack.pop(), stack.pop()
                stack.append(called(call, values))
            case name if name in PUSH:
                stack.append(argument)
            case name if name in CONSTANTS:
                stack.append(CONSTANTS[name])
            case name if name in TUPLES:
                start = len(stack) - TUPLES[name]
                stack[start:] = [tuple(stack[start:])]
            case name:
                raise ValueError(f"the step {name}, which plain tensors do not need")
    raise ValueError("no end")


def str_key(key: Any) -> str:
    """The key of a dict, which must be text."""
    if not isinstance(key, str):
        raise ValueError(f"a key of type {type(key).__name__}")
    return key


def called(call: Any, values: Any) -> Any:
    """What becomes of the only two calls that plain tensors need; all others are refused by name."""
    wanted = call.text if isinstance(call, _Name) else "something made by the file"
    if wanted == ORDERED and values == ():
        return {}
    if wanted != TENSOR:
        raise ValueError(f"it asks for {wanted!r}, which is no plain tensor")
    (_, kind, storage, _, numbers), first, shape, strides, *_ = values
    whole = (numbers, first, *shape, *strides)
    if not isinstance(storage, str) or len(shape) > MAX_AXES or not all(type(number) is int for number in whole):
        raise ValueError("a tensor without a storage, a shape and steps")
    if kind.text not in STORAGES:
        raise ValueError(f"it asks for {kind.text!r}, which is no plain tensor")
    return _Tensor(storage, STORAGES[kind.text], numbers, first, tuple(shape), tuple(strides))
