"""Shared by all tests: fixed seeds, a quiet matplotlib, and run-time type checks that cost little."""

import dataclasses
import functools
import gc
import inspect
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, get_type_hints

import jaxtyping
import matplotlib
import pytest
import torch
from beartype import BeartypeConf, beartype

matplotlib.use("Agg")

# What jaxtyping's import hook decorates our functions with, `jaxtyping.jaxtyped`, binds all arguments to the signature
# in every call, for its messages, and compiles the checks of a function inside a function anew in every call of the
# outer one (2 ms). Both were a third of the time of tests. Here beartype checks alone, in jaxtyping's scope for the
# names of axes, and checks are compiled once.
SCOPE = jaxtyping.jaxtyped("context")
CONF = BeartypeConf(violation_type=jaxtyping.TypeCheckError)
INNER: dict[CodeType, tuple[dict[str, Any], Callable[..., Any]]] = {}
CALLED = threading.local()
by_jaxtyping = jaxtyping.jaxtyped


def checked(fn: Any = None, *, typechecker: Any) -> Any:
    """In place of `jaxtyping.jaxtyped(typechecker=...)`: a function, or a dataclass, with its types checked."""
    if fn is None:
        return functools.partial(checked, typechecker=typechecker)
    if inspect.isclass(fn):
        made = fn.__dict__.get("__init__")
        if dataclasses.is_dataclass(fn) and isinstance(made, FunctionType) and not hasattr(made, "__wrapped__"):
            fn.__init__ = checked(made, typechecker=typechecker)
        return fn
    if not isinstance(fn, FunctionType) or inspect.isgeneratorfunction(fn):
        return by_jaxtyping(fn, typechecker=typechecker)
    if "<locals>" in fn.__qualname__:
        return checked_inner(fn, typechecker)
    check = beartype(with_known_types(fn), conf=CONF)

    @functools.wraps(fn)
    def call(*args: Any, **options: Any) -> Any:
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **options)
        with SCOPE:
            return check(*args, **options)

    return call


def with_known_types(fn: FunctionType) -> FunctionType:
    """A copy of a function, annotated with types in place of their names; with Any for one that is made later."""
    copy = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__kwdefaults__, copy.__module__, copy.__qualname__ = fn.__kwdefaults__, fn.__module__, fn.__qualname__
    known = {}
    for name, hint in fn.__annotations__.items():
        copy.__annotations__ = {name: hint}
        try:
            known |= get_type_hints(copy, include_extras=True)
        except Exception:
            known[name] = Any
    copy.__annotations__ = known
    return copy


def checked_inner(fn: FunctionType, typechecker: Any) -> Callable[..., Any]:
    """A function inside a function: the checks are those made for the first one with this code and these types."""
    annotations, check = INNER.get(fn.__code__, ({}, None))
    if check is None or annotations != fn.__annotations__:

        @functools.wraps(fn)
        def latest(*args: Any, **options: Any) -> Any:
            return CALLED.stack[-1](*args, **options)

        latest.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
        del latest.__wrapped__
        check = by_jaxtyping(latest, typechecker=typechecker)
        INNER[fn.__code__] = (fn.__annotations__, check)

    @functools.wraps(fn)
    def call(*args: Any, **options: Any) -> Any:
        stack = CALLED.__dict__.setdefault("stack", [])
        stack.append(fn)
        try:
            return check(*args, **options)
        finally:
            stack.pop()

    return call


jaxtyping.jaxtyped = checked


def pytest_collection_finish() -> None:
    """What is there before the first test stays: garbage is not looked for in it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def as_users_call_it():
    """Switch the run-time type checks off: users do not have them, so our own errors must speak."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
