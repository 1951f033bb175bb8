"""`--device`, the same option of every command that computes.

It says what `auto` means while the command runs, in its own process and in those it starts: everything below the
command line asks `ssno.base.device.choose_device` for `auto`.
"""

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import tyro

from ssno.base.device import SWITCH, choose_device, device_name
from ssno.cli.main import say

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
