"""State Space Neural Operators: learn the solution operator of a time-dependent PDE from trajectories.

    from ssno import SSNO, load_dataset, rollout, train

Trajectories are (batch, time, channel, *grid) everywhere. Names are imported when first used, so that one layer
can be taken into another program without the rest of the library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ssno.base.provenance import package_version

if TYPE_CHECKING:
    from ssno.data.datasets import register_problem
    from ssno.data.load import load_dataset
    from ssno.data.trajectories import Trajectories
    from ssno.evaluation.evaluate import evaluate
    from ssno.forecasting.forecaster import Forecaster
    from ssno.forecasting.rollout import rollout
    from ssno.models.config import OperatorConfig
    from ssno.models.registry import register_model
    from ssno.models.ssno import SSNO, SSNOConfig
    from ssno.runs.load import load_forecaster
    from ssno.training.train import train

__version__ = package_version()
"""The version of this library."""
__all__ = [
    "SSNO",
    "Forecaster",
    "OperatorConfig",
    "SSNOConfig",
    "Trajectories",
    "__version__",
    "evaluate",
    "load_dataset",
    "load_forecaster",
    "register_model",
    "register_problem",
    "rollout",
    "train",
]

HOME = {
    "SSNO": "ssno.models.ssno",
    "SSNOConfig": "ssno.models.ssno",
    "Forecaster": "ssno.forecasting.forecaster",
    "OperatorConfig": "ssno.models.config",
    "Trajectories": "ssno.data.trajectories",
    "evaluate": "ssno.evaluation.evaluate",
    "load_dataset": "ssno.data.load",
    "load_forecaster": "ssno.runs.load",
    "register_model": "ssno.models.registry",
    "register_problem": "ssno.data.datasets",
    "rollout": "ssno.forecasting.rollout",
    "train": "ssno.training.train",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the module it lives in."""
    if name not in HOME:
        raise AttributeError(f"module 'ssno' has no attribute {name!r}; it offers {', '.join(__all__)}.")
    return getattr(import_module(HOME[name]), name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return list(__all__)
