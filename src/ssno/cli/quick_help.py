"""Help at once: stand-ins take the place of large libraries while a command shows its options and exits.

Options are dataclasses that live beside the networks they describe, and the import of torch alone takes over a second.
To list options nothing of such a library is needed but names: classes to derive from, types in annotations, decorators.
A stand-in has every name, and each is an empty class.
"""

import abc
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

HELP = ("-h", "--help")
LARGE = ("torch", "scipy", "matplotlib")


class Names(abc.ABCMeta):
    """A class that has every attribute, each a class like it; called, it gives a decorator that changes nothing."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, empty_class(name))
        return cls.__dict__[name]

    def __getitem__(cls, _: Any) -> Any:
        return cls


def empty_class(name: str) -> type:
    """A class with every attribute."""
    return Names(name, (), {"__init__": lambda self, *_, **__: None, "__call__": lambda self, given=None, *_: given})


class StandIn(ModuleType):
    """A module with every name in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, empty_class(name))
        return self.__dict__[name]


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in wherever a large library or one of its modules is imported."""

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """A package, so that it has modules below it."""
        if name.partition(".")[0] not in LARGE:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def stand_in_for_help(words: Sequence[str]) -> None:
    """If these words ask for help, after which the process ends, import no large library in it."""
    if "torch" not in sys.modules and any(word in HELP for word in words):
        sys.meta_path.insert(0, StandInFinder())
