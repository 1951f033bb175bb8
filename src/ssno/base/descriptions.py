"""Frozen dataclasses from parsed JSON: every field checked against its annotation, every problem named with its place.

The inverse is `dataclasses.asdict`. Nothing that a file says is imported or run.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from ssno.base.suggestions import unknown_name

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
        if value not in arguments:
            raise ValueError(f"`{where}` must be one of {', '.join(map(repr, arguments))}, got {value!r}.")
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
