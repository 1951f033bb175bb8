"""torch.compile as a switch of a run.

Every shape gets a graph of its own (`dynamic=False`): what is computed for a batch then depends on the batch alone and
not on the shapes that came before it, so a resumed run computes the same bits. Without a working compiler the run goes
on in eager mode and says so in one line.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch

MOST_SHAPES = 64
"""Graphs per function; beyond that torch would go on without compiling, which changes the last bits."""

log = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function through torch.compile, or as it is where that does not work."""
    problem = compiler_problem()
    if problem:
        log.warning("torch.compile does not work here (%s); training goes on without it.", problem)
        return function
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, MOST_SHAPES)
    return torch.compile(function, dynamic=False)  # type: ignore[return-value]


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
