"""Descriptions of models as version 0.1 wrote them: each is read as the model it described, or refused."""

import json
from pathlib import Path

import pytest
import torch

from ssno.base.renamed import with_new_names
from ssno.layers.axial import BlockOptions
from ssno.models.operator import OperatorState
from ssno.models.pretrained import FORMAT, bundled_folders, read_model_document
from ssno.models.registry import ALL_MODELS, config_type, model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.models.wrapped import WrappedConfig

OLD = json.loads((Path(__file__).parents[1] / "fixtures" / "old-models.json").read_text())
"""By name, in the usual and in the smallest size."""


def read(values: dict) -> object:
    return config_type(values["model"]).from_json(with_new_names(values, "model."))


def test_the_fixture_has_every_model() -> None:
    newer = {"cnext-unet", "ssno-sphere-product", "ssno-warp"}  # than 0.1
    assert {name.partition(":")[0] for name in OLD} == set(ALL_MODELS) - newer


@pytest.mark.parametrize("name", list(OLD))
def test_an_old_description_is_the_model_of_that_name(name: str) -> None:
    config = read(OLD[name])
    assert config == model_config(name)
    assert config.name == OLD[name]["model"]


@pytest.mark.parametrize("name", ["ssno-uni", "ssno-ff", "fno-r", "ssno-sphere", "ssno-slices"])
def test_a_model_folder_of_before_opens(name: str, tmp_path: Path) -> None:
    model = model_config(f"{name}:tiny").build()
    model.save_pretrained(tmp_path)
    document = {"format": FORMAT, "version": 1, "config": OLD[f"{name}:tiny"]}
    (tmp_path / "config.json").write_text(json.dumps(document))
    back = type(model).from_pretrained(tmp_path)
    assert back.config == model.config
    grid = {"ssno-sphere": (12, 24)}.get(name, (16,))
    frames = torch.randn(1, 4, model.config.in_channels, *grid)
    assert torch.equal(back(frames), model.eval()(frames))
    assert isinstance(back.start(frames), OperatorState)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ({"residual": "path"}, {"block": BlockOptions(residual="path")}),
        ({"n_dims": 2, "coordinate_axes": [1]}, {"n_dims": 2, "coordinates": (1,)}),
        ({"n_dims": 2, "coordinates": False, "coordinate_axes": [1]}, {"n_dims": 2, "coordinates": False}),
        ({"coordinate_axes": None}, {}),
    ],
)
def test_options_that_were_apart_are_put_together(old: dict, expected: dict) -> None:
    assert read({"model": "ssno", **old}) == SSNOConfig(**expected)


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ({"model": "ssno", "memory_position": 1}, "`model.memory_position` is 1, but this option was removed"),
        ({"model": "ssno", "smallest_steps": [0.1]}, r"`model.smallest_steps` is \[0.1\], but this option was removed"),
        ({"model": "gkt", "dropout": 0.5}, "`model.dropout` is 0.5, .* is always 0.05 now. Use ssno 0.1"),
        ({"model": "ssno-sphere", "boundary": "zero"}, "`model.boundary` is 'zero', .* always 'periodic' now"),
        ({"model": "ssno-sphere", "band_limited": False}, "`model.band_limited` is False, .* always True now"),
        ({"model": "ffno", "expansion": 4}, "`model.expansion` is 4, .* always 2 now"),
        ({"model": "ssno-sphere", "residual": "path"}, "`model.residual` is 'path', .* always 'sum' now"),
    ],
)
def test_removed_options_with_other_values_are_refused(old: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(old)


@pytest.mark.parametrize("name", sorted(set(bundled_folders()) - {"ks-attractor-64", "box-32"}))  # of 0.2.0
def test_bundled_checkpoints_stay_as_they_are_on_disk(name: str) -> None:
    folder = bundled_folders()[name]
    assert json.loads((folder / "config.json").read_text())["version"] == 1
    described = read_model_document(folder)["config"]
    assert config_type(described["model"]).from_json(described).name == described["model"]


def test_a_network_from_elsewhere_has_another_name_now() -> None:
    assert with_new_names({"model": {"model": "foreign"}}) == {"model": {"model": WrappedConfig.model_name}}


def test_a_variant_in_a_file_may_say_only_what_differs() -> None:
    config = SSNOConfig.from_json({"model": "ssno-ff", "block": {"idle_forecast": False}, "n_dims": 2})
    assert config.block == BlockOptions("parallel", idle_forecast=False)
    assert isinstance(config.build(), SSNO)
