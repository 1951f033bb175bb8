"""Trainings on travelling waves."""

import pytest
from tests.waves import travelling_waves

from ssno.data.trajectories import Trajectories


@pytest.fixture(scope="session")
def waves() -> Trajectories:
    return travelling_waves(20, seed=0)


@pytest.fixture(scope="session")
def valid_waves() -> Trajectories:
    return travelling_waves(4, seed=1)


@pytest.fixture(scope="session")
def waves_with_context() -> Trajectories:
    return travelling_waves(8, seed=0, context=True)
