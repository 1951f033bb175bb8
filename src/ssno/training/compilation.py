"""torch.compile as a switch of a run.

Every shape gets a graph of its own (`dynamic=False`): what is computed for a batch then depends on the batch alone and
not on the shapes that came before it, so a resumed run computes the same bits. Without a working compiler the run goes
on in eager mode and says so in one line.

    auto              on CUDA, where kernels are many and small, and nowhere else
    True, False       always, never
    reduce-overhead   always, and on CUDA steps are recorded once and replayed (CUDA graphs)
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch

from ssno.runs.options import Compile

MOST_SHAPES = 64
"""Graphs per function; beyond that torch would go on without compiling, which changes the last bits."""

log = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])


def compiles(choice: Compile, device: torch.device) -> bool:
    """Whether a run with this choice compiles on this device."""
    return device.type == "cuda" if choice == "auto" else bool(choice)


def compiled(function: Function, *, choice: Compile = True) -> Function:
    """The function through torch.compile, or as it is where that does not work."""
    problem = compiler_problem()
    if problem:
        log.warning("torch.compile does not work here (%s); training goes on without it.", problem)
        return function
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, MOST_SHAPES)
    mode = "reduce-overhead" if choice == "reduce-overhead" else None
    return torch.compile(function, dynamic=False, mode=mode)  # type: ignore[return-value]


@cache
def compiler_problem() -> str:
    """Why a small function cannot be compiled on this machine; empty if it can."""
    try:
        torch.compile(_probe, dynamic=False)(torch.zeros(8))
    except Exception as error:  # torch raises its own kinds here, and they differ between versions
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ""


def _probe(values: torch.Tensor) -> torch.Tensor:
    return torch.sin(values) + 1
