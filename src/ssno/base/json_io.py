"""JSON on disk, read and written in one way.

    {"format": "ssno-model", "version": 1, ...}          `write_document`, `read_document`
    {"kind": "epoch", "step": 128, ...}                  `write_json`, `read_json`, or text: `to_text`, `from_text`

Files come from anywhere, so reading takes regular files only (no pipes, no devices), of a stated size and depth, and
runs nothing. JSON has no infinity: a number that is not finite is written as null and read as None, also where an older
file spells it `Infinity`, `NaN` or 1e999. Whatever is wrong ends in `DocumentError`, which names the file and a remedy.
"""

import dataclasses
import json
import math
import os
import stat
import types
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ssno.base.atomic_write import write_whole
from ssno.base.checks import require_one_of, unknown_name

LARGEST = 64 * 2**20
"""Bytes of a document unless its reader says otherwise."""
DEEPEST = 64
"""Lists and objects inside each other."""


class DocumentError(ValueError):
    """A file is no readable document of the kind that was asked for; the message says why and what to do."""


def read_regular(path: Path, *, limit: int = LARGEST) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; pipes and devices are refused instead of waited for."""
    odd = f"{path} is not a regular file (a folder, a pipe or a device). Give an ordinary file."
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DocumentError(odd)
            if status.st_size > limit:
                raise DocumentError(f"{path} has more than the {limit} bytes that are read of such a file.")
            return file.read(status.st_size)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise DocumentError(odd) from None


def from_text(text: str | bytes) -> Any:
    """Parse JSON. Raises `ValueError` if it is not valid, or nested too deeply."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    level, depth = [value], 0
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
    return value


def to_text(value: Any, *, indent: int | None = None) -> str:
    """JSON of plain values; numbers that are not finite become null."""
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def read_json(path: Path, *, remedy: str, limit: int = LARGEST) -> Any:
    """The value in a JSON file. `remedy` is the sentence that tells what to do with a damaged one."""
    try:
        return from_text(read_regular(path, limit=limit))
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"{path} is not valid JSON ({error}). {remedy}") from None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, (to_text(value, indent=1) + "\n").encode())


def read_document(path: Path, *, format: str, versions: Collection[int], remedy: str) -> dict[str, Any]:
    """The object in a JSON file that says which format and version it has; both are checked, and stay in it."""
    content = read_json(path, remedy=remedy)
    found = content.get("format") if isinstance(content, dict) else None
    if found != format:
        raise DocumentError(f"{path} does not have the format {format!r}, it has {found!r}. {remedy}")
    if (version := content.get("version")) not in versions:
        known = " and ".join(map(str, versions))
        raise DocumentError(f"{path} has format version {version!r}; this ssno reads version {known}. Upgrade ssno.")
    return content


def write_document(path: Path, content: Mapping[str, Any], *, format: str, version: int) -> None:
    """Write what `read_document` reads, whole or not at all."""
    write_json(path, {"format": format, "version": version, **content})


def number(value: float | int | None) -> float:
    """A number as it was before it was written: what was not finite counts as infinite."""
    return math.inf if value is None else float(value)


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody to write to the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _inside(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


# Frozen dataclasses from parsed JSON: every field checked against its annotation, every problem named with its place.
#
# The inverse is `dataclasses.asdict`. Nothing that a file says is imported or run.

Description = TypeVar("Description")


def description_from_json(kind: type[Description], values: Mapping[str, Any], *, where: str = "") -> Description:
    """Build a frozen dataclass, nested ones included, from parsed JSON; every problem names its place."""
    if not isinstance(values, Mapping):
        raise ValueError(f"`{where or kind.__name__}` must be an object with named fields, got {values!r}.")
    types_of = typing.get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    built = {}
    for name, value in values.items():
        if name not in known:
            raise ValueError(unknown_name(f"{where}{name}", [f"{where}{other}" for other in known]))
        built[name] = _convert(types_of[name], value, f"{where}{name}")
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and field.init and field.name not in built:
            raise ValueError(f"`{where}{field.name}` is missing.")
    return kind(**built)


def _convert(kind: Any, value: Any, where: str) -> Any:
    """Check a parsed JSON value against an annotation and convert what JSON cannot say (tuples, dataclasses)."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return description_from_json(kind, value, where=f"{where}.")  # type: ignore[arg-type]
    if origin is typing.Literal:
        require_one_of(where, value, arguments)
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        problems = []
        for option in arguments:
            if option is not type(None):
                try:
                    return _convert(option, value, where)
                except ValueError as error:
                    problems.append(str(error))
        raise ValueError(problems[0])
    if origin is tuple and isinstance(value, list | tuple):
        kinds = [arguments[0]] * len(value) if arguments[1:] == (...,) else list(arguments)
        if len(kinds) == len(value):
            return tuple(_convert(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {str(key): _convert(arguments[1], inner, f"{where}.{key}") for key, inner in value.items()}
    if kind is Any:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ValueError(f"`{where}` must be {getattr(kind, '__name__', kind)}, got {value!r}.")
