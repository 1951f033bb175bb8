"""What is said of data on another grid than that of training."""

from unittest.mock import MagicMock

import pytest

from ssno.cli.options import warn_of_other_grid
from ssno.runs.open import RunFolder


@pytest.mark.parametrize(("points", "advised"), [((64, 48), True), ((16, 48), False), ((16, 16), False)])
def test_the_grid_of_training_is_advised_only_to_data_that_have_it(capsys, points, advised) -> None:
    run = MagicMock(spec=RunFolder, grid=(24, 24))
    run.name, run.forecaster = "mine", MagicMock(spacing=None)
    warn_of_other_grid(run, points)
    said = " ".join("".join(capsys.readouterr()).split())
    assert "mine was trained on 24 x 24" in said
    assert ("--resolution 24 24 asks for the grid of training" in said) == advised
