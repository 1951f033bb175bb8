"""Shared by all tests: fixed seeds, a quiet matplotlib, and run-time type checks that are made once per function."""

import functools
import inspect
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import jaxtyping
import matplotlib
import pytest
import torch

matplotlib.use("Agg")

# jaxtyping's import hook decorates functions inside functions, too, and so compiles two type checks for each of them in
# every call of the outer one: about 2 ms, which was a good part of all test time. Here the checks are compiled once.
FUNCTIONS = threading.local()
CHECKED: dict[CodeType, tuple[dict[str, Any], Callable[..., Any]]] = {}
decorate = jaxtyping.jaxtyped


def checked_once(fn: Any = None, *, typechecker: Any) -> Any:
    """`jaxtyping.jaxtyped`; functions made again from the same code with the same annotations share their checks."""
    if fn is None:
        return functools.partial(checked_once, typechecker=typechecker)
    if not isinstance(fn, FunctionType) or "<locals>" not in fn.__qualname__:
        return decorate(fn, typechecker=typechecker)
    annotations, check = CHECKED.get(fn.__code__, ({}, None))
    if check is None or annotations != fn.__annotations__:

        @functools.wraps(fn)
        def latest(*args: Any, **options: Any) -> Any:
            return FUNCTIONS.stack[-1](*args, **options)

        latest.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
        del latest.__wrapped__
        check = decorate(latest, typechecker=typechecker)
        CHECKED[fn.__code__] = (fn.__annotations__, check)

    @functools.wraps(fn)
    def call(*args: Any, **options: Any) -> Any:
        stack = FUNCTIONS.__dict__.setdefault("stack", [])
        stack.append(fn)
        try:
            return check(*args, **options)
        finally:
            stack.pop()

    return call


jaxtyping.jaxtyped = checked_once


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def as_users_call_it():
    """Switch the run-time type checks off: users do not have them, so our own errors must speak."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
