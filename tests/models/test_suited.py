"""Models suited to their data: on a circle a shifted input gives the shifted forecast."""

import pytest
import torch

from ssno.layers.modes import ModeOptions
from ssno.models.baselines.ffno import FFNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.ssno import SSNOConfig
from ssno.models.variants import SSNOUniConfig


@pytest.mark.parametrize("config", [SSNOConfig.tiny(), SSNOUniConfig.tiny(), FFNOConfig.tiny()], ids=lambda c: c.name)
def test_models_suited_to_a_circle_are_translation_equivariant(config) -> None:
    frames = torch.randn(2, 5, 1, 32, dtype=torch.float64)

    def asymmetry(suited) -> float:
        torch.manual_seed(0)
        model = suited.fitted([32]).build().double().eval()
        with torch.no_grad():
            answer, shifted = model(frames), model(frames.roll(7, -1))
        return float((shifted - answer.roll(7, -1)).norm() / answer.norm())

    assert asymmetry(config.suited(periodic=True)) < 1e-10
    assert asymmetry(config) > 1e-3


def test_an_open_axis_keeps_its_ends_and_coordinates() -> None:
    suited = SSNOConfig().suited(periodic=False)
    assert (suited.boundary, suited.coordinates) == ("zero", True)
    assert suited.modes.initialisation == "grid"


def test_undamped_modes_are_not_wrapped() -> None:
    suited = SSNOConfig(modes=ModeOptions(damping="absent")).suited(periodic=True)
    assert (suited.boundary, suited.modes.damping) == ("zero", "absent")


def test_a_model_without_wishes_stays_as_it_is() -> None:
    assert GKTConfig().suited(periodic=True) == GKTConfig()
