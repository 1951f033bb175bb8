"""How commands read their options: types as people write them in `--help`, and `--device`, the same everywhere.

`--device` says what `auto` means while the command runs, in its own process and in those it starts: everything below
the command line asks `ssno.base.device.choose_device` for `auto`.
"""

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from ssno.base.device import SWITCH, choose_device, device_name
from ssno.cli.main import say
from ssno.data.grids import Periodic

METAVARS: dict[Any, str] = {Periodic: "all|none|AXIS ..."}
"""Types whose parts say less than these words."""
TYPES = ConstructorRegistry()
"""What `tyro.cli` knows of types: the same values as by default, shown as `INT`, not `{None}|INT`."""
_asked: list[Any] = []


@TYPES.primitive_rule
def readable(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """The default rule for a type, with a readable metavar."""
    if _asked[-1:] == [info.type]:  # the call below: leave it to the default rules
        return None
    _asked.append(info.type)
    try:
        spec = ConstructorRegistry.get_primitive_spec(info)
    finally:
        _asked.pop()
    if not isinstance(spec, PrimitiveConstructorSpec):
        return None
    return replace(spec, metavar=METAVARS.get(info.type) or without_none(spec.metavar))


def without_none(metavar: str) -> str:
    """`INT` for `{None}|INT`, `INT ...` for `{None}|{[INT [INT ...]]}`."""
    metavar = re.sub(r"^\{None\}\||(?<=\{)None,", "", metavar)
    metavar = re.sub(r"\[?([^\s\[\]|]+) \[(?:\1 )?\.\.\.\]\]?", r"\1 ...", metavar)
    metavar = re.sub(r"^(\S+)\|\{?\1 \.\.\.\}?$", r"\1 ...", metavar)  # one for all, or one each
    return re.sub(r"^\{([^{}\s]+ \.\.\.)\}$", r"\1", metavar)


def parse(function: Any, words: list[str], **options: Any) -> Any:
    """Call a function, or build a dataclass, with the options that the words name."""
    return tyro.cli(function, args=words, registry=TYPES, **options)


Device = Annotated[
    str, tyro.conf.arg(help="Where to compute: auto (CUDA, else MPS, else the CPU), cpu, cuda, cuda:N or mps.")
]


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Let `auto` mean this device, and say in a line on stderr which one it is."""
    chosen = choose_device(device)
    say(f"ssno: computing on {device_name(chosen)}")
    before = os.environ.get(SWITCH)
    if device != "auto":
        os.environ[SWITCH] = device
    try:
        yield
    finally:
        if device != "auto":
            os.environ.pop(SWITCH)
            os.environ.update({} if before is None else {SWITCH: before})


def with_device(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one more option, `--device`."""

    @functools.wraps(command)
    def placed(*arguments: Any, device: str = "auto", **options: Any) -> None:
        with computing_on(device):
            command(*arguments, **options)

    given = inspect.signature(command)
    option = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default="auto", annotation=Device)
    placed.__signature__ = given.replace(parameters=[*given.parameters.values(), option])  # type: ignore[attr-defined]
    placed.__annotations__ = {**command.__annotations__, "device": Device}
    del placed.__wrapped__  # tyro would read the options of the command itself, without this one's help
    return placed
