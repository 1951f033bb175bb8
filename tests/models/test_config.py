"""Model descriptions on disk: exact round trips, and refusals that help."""

import json
import os

import pytest

from ssno.base import description_from_json
from ssno.layers.memory import MemoryOptions
from ssno.models.operator import count_parameters
from ssno.models.registry import ALL_MODELS, MODELS, model_config
from ssno.models.ssno import SSNO, SSNOConfig


@pytest.mark.parametrize("name", list(MODELS))
def test_descriptions_survive_json(name) -> None:
    config = model_config(name)
    assert model_config(name).from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"d_stat": 4}, "Unknown name `d_stat`. Did you mean `d_state`?"),
        ({"modes": {"dampin": 1}}, r"Unknown name `modes.dampin`. Did you mean `modes.damping`?"),
        ({"modes": 3}, "`modes.` must be an object with named fields, got 3"),
        ({"d_state": "64"}, "`d_state` must be int, got '64'"),
        ({"d_state": True}, "`d_state` must be int, got True"),
        ({"coordinates": 1}, "`coordinates` must be bool, got 1"),
        ({"block": {"residual": "both"}}, "`block.residual` must be one of 'sum', 'path', 'none', got 'both'"),
        ({"reference_spacing": ["a"]}, r"`reference_spacing\[0\]` must be float, got 'a'"),
        ({"memory": {"window": 1.5}}, "`memory.window` must be int, got 1.5"),
        ({"memory_window": 4}, "`memory_window` is called `model.memory.window` now."),
        ({"memory_position": 1}, "`memory_position` was removed. Leave it out."),
        ({"model": "ffno"}, "The configuration is of a 'ffno' model, but SSNOConfig describes 'ssno'"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_values_are_refused(values, message) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        SSNOConfig.from_json(values)


def test_whole_numbers_may_stand_for_floats() -> None:
    assert SSNOConfig.from_json({"reference_spacing": [1]}).reference_spacing == (1.0,)


def test_unknown_models_are_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="Unknown name `ssn`. Did you mean `ssno`.* must be registered first"):
        model_config("ssn")


@pytest.mark.usefixtures("as_users_call_it")
def test_nested_descriptions_must_be_objects() -> None:
    with pytest.raises(ValueError, match="`SSNOConfig` must be an object"):
        description_from_json(SSNOConfig, 3)


@pytest.fixture
def folder(tmp_path):
    SSNO(SSNOConfig.tiny()).save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_without_a_model_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ValueError, match="is not a regular file"):
        SSNO.from_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no run or saved model in .*config.json does not exist"):
        SSNO.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "does not have the format .ssno-model."),
        ('{"format": "ssno-model", "version": 99}', "has format version 99; this ssno reads version 1"),
        ('{"format": "ssno-model", "version": 1}', "lacks the configuration of the model"),
    ],
)
def test_damaged_configurations_are_refused(folder, text, message) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        SSNO.from_pretrained(folder)


def test_damaged_weights_are_refused(folder) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        SSNO.from_pretrained(folder)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match="the model folder is incomplete"):
        SSNO.from_pretrained(folder)


def test_weights_of_another_model_are_refused(folder, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other")
    SSNO(SSNOConfig.tiny(memory=MemoryOptions(0, d_state=8), head_channels=8)).save_pretrained(other)
    (other / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(ValueError, match="does not fit the model of its config.json: lacks memory"):
        SSNO.from_pretrained(folder)


@pytest.mark.parametrize("name", list(ALL_MODELS))
def test_sizes_tell_roughly_how_many_parameters_there_are(name) -> None:
    config = model_config(name)
    if parameters := count_parameters(config.build()):
        assert 0.3 < config.approximate_size() / parameters < 10


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("ssno", {"n_layers": 10**6}, "`n_layers` must be at most 256, got 1,000,000"),
        ("ssno", {"d_state": 10**9}, "`d_state` must be at most 1,024"),
        ("ssno", {"memory": {"window": 10**9}}, "`memory.window` must be at most 4,096"),
        ("ssno", {"hidden_channels": 20000}, "would have about .* parameters; models of up to 268,435,456 are built"),
        ("ssno", {"in_channels": 10**9}, "would have about"),
        ("fno", {"n_modes": 2048, "n_dims": 2}, "would have about"),
        ("ffno", {"head_channels": 10**9}, "would have about"),
        ("unet", {"hidden_channels": 4000}, "would have about"),
        ("gkt", {"n_heads": 10**9, "hidden_channels": 10**9}, "would have about"),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_built(name, values, message) -> None:
    with pytest.raises(ValueError, match=message):
        model_config(name).from_json(values)
