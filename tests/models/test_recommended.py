"""Models with the settings recommended for their data: on a circle a shifted input gives the shifted forecast."""

import pytest
import torch

from ssno.layers.modes import ModeOptions
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.registry import model_config
from ssno.models.ssno import WALL_BOUNDARY, SSNOConfig


@pytest.mark.parametrize(
    "config", [SSNOConfig.tiny(), model_config("ssno-uni:tiny"), FFNOConfig.tiny()], ids=lambda c: c.name
)
def test_models_suited_to_a_circle_are_translation_equivariant(config) -> None:
    frames = torch.randn(2, 5, 1, 32, dtype=torch.float64)

    def asymmetry(recommended) -> float:
        torch.manual_seed(0)
        model = recommended.for_grid([32]).build().double().eval()
        with torch.no_grad():
            answer, shifted = model(frames), model(frames.roll(7, -1))
        return float((shifted - answer.roll(7, -1)).norm() / answer.norm())

    assert asymmetry(config.recommended(periodic=True)) < 1e-10
    assert asymmetry(config) > 1e-3


def test_an_open_axis_keeps_its_ends_and_coordinates() -> None:
    recommended = SSNOConfig().recommended(periodic=False)
    assert (recommended.boundary, recommended.coordinates) == (WALL_BOUNDARY, True)
    assert recommended.modes.initialisation == "grid"


@pytest.mark.parametrize("periodic", [[True, False], [False, False]])
def test_what_lies_beyond_walls_has_one_owner(monkeypatch, periodic) -> None:
    monkeypatch.setattr("ssno.models.ssno.WALL_BOUNDARY", "learned")
    assert SSNOConfig(n_dims=2).recommended(periodic=periodic).boundaries()[1] == "learned"
    selective = SSNOConfig(n_dims=2, modes=ModeOptions(selective=True)).recommended(periodic=periodic)
    assert selective.build().config.boundaries()[1] == "zero"


def test_undamped_modes_are_not_wrapped() -> None:
    recommended = SSNOConfig(modes=ModeOptions(damping="absent")).recommended(periodic=True)
    assert (recommended.boundary, recommended.modes.damping) == ("zero", "absent")


def test_a_model_without_wishes_stays_as_it_is() -> None:
    assert GKTConfig().recommended(periodic=True) == GKTConfig()
