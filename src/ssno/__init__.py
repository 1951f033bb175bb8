"""State Space Neural Operators: learn the solution operator of a time-dependent PDE from trajectories."""

from importlib.metadata import version

__version__ = version("ssno")
__all__ = ["__version__"]
