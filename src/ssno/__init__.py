"""State Space Neural Operators: learn the solution operator of a time-dependent PDE from trajectories.

    from ssno import SSNO, load_dataset, rollout, train

Trajectories are (batch, time, channel, *grid) everywhere.
"""

from importlib.metadata import version

from ssno.data.load import load_dataset
from ssno.data.trajectories import Trajectories
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.forecasting.saved import load_forecaster
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.training.train import train

__version__ = version("ssno")
__all__ = [
    "SSNO",
    "Forecaster",
    "SSNOConfig",
    "Trajectories",
    "__version__",
    "load_dataset",
    "load_forecaster",
    "rollout",
    "train",
]
