"""SFNO: the public sizes, what it commutes with, memory, saving, learning, refusals."""

import pytest
import torch
from tests.losses import losses

from ssno.layers.memory import MemoryOptions
from ssno.models.baselines.sfno import SFNO, SFNOConfig, SphereBlock, real_harmonics
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.transforms import SphereGrid, SphereTransform

REGISTRY = {"scale_factor": 2, "embed_dim": 32, "norm": "instance", "position": "none"}
NOTEBOOK = {"scale_factor": 3, "embed_dim": 16, "norm": "none", "position": "harmonics"}
SCRIPT = {"scale_factor": 3, "embed_dim": 256, "norm": "none", "position": "none"}


@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        (REGISTRY, (148_160, 279_232, 541_376, 1_065_664)),
        (NOTEBOOK, (24_800, 47_328, 90_336, 178_400)),
        (SCRIPT, (6_295_040, 12_062_208, 23_072_256, 45_616_640)),
    ],
    ids=["registry", "notebook", "script"],
)
def test_parameters_are_those_of_the_public_classes(fields, parameters) -> None:
    for nlat, expected in zip((32, 64, 128, 256), parameters, strict=True):
        config = SFNOConfig(grid=(nlat, 2 * nlat), **fields)
        width, inputs = config.embed_dim, 6 * config.embed_dim
        per_block = 4 * width**2 + 2 * width + (2 * width if config.norm == "instance" else 0)
        assert 8 * width**2 * config.degrees + 4 * per_block + inputs == expected
        if nlat <= 64 and width <= 32:
            assert count_parameters(SFNO(config)) == expected


def test_the_default_has_a_position_and_148928_parameters() -> None:
    assert count_parameters(SFNO()) == 148_928
    assert count_parameters(SFNO(position="none")) == 147_904


@pytest.mark.parametrize("position", ["none", "latitude"])
def test_turning_the_input_by_a_step_of_the_inner_grid_turns_the_forecast(position) -> None:
    model = SFNO(SFNOConfig.tiny(position=position))
    frames = torch.randn(2, 1, 3, 16, 32)
    torch.testing.assert_close(model(frames.roll(6, -1)), model(frames).roll(6, -1), rtol=1e-5, atol=2e-5)


def test_a_blind_network_with_real_filters_and_no_nonlinearity_commutes_with_every_rotation() -> None:
    """A quarter turn about a horizontal axis is checked on degree one, whose harmonics are x, y and z."""
    model = SFNO(SFNOConfig.tiny(position="none"))
    block = model.blocks_before[0]
    with torch.no_grad():
        block.filter[..., 1] = 0
    grid = block.source.grid
    z = torch.from_numpy(grid.rule[0]).float().expand(grid.nlon, -1)
    x = torch.from_numpy(grid.longitudes).cos().float()[:, None] * (1 - z**2).sqrt()
    fields = torch.stack([x, z])[..., None, None].expand(2, *x.shape, 1, 8)
    modes = [block.source.analyse_leading(field) for field in fields]
    filtered = [block.source.synthesise_leading(mode @ torch.view_as_complex(block.filter)[1]) for mode in modes]
    response = [(found * field).mean() / (field**2).mean() for found, field in zip(filtered, fields, strict=True)]
    torch.testing.assert_close(response[0], response[1], rtol=1e-4, atol=1e-5)


def test_a_position_tells_north_from_south_and_none_does_not() -> None:
    frames = torch.randn(1, 1, 3, 16, 32)
    for position, blind in (("none", True), ("latitude", False), ("harmonics", False)):
        model = SFNO(SFNOConfig.tiny(position=position))
        mirrored = model(frames.flip(-2)).flip(-2)
        assert torch.allclose(mirrored, model(frames), atol=1e-5) == blind


def test_harmonics_are_fixed_and_largest_one() -> None:
    fields = real_harmonics(SphereGrid(16, 32), 8)
    assert fields.shape == (32, 16, 1, 8)
    torch.testing.assert_close(fields.abs().amax((0, 1, 2)), torch.ones(8))
    torch.testing.assert_close(fields[..., 0], torch.ones(32, 16, 1))


@pytest.mark.parametrize("fields", [{}, {"memory": MemoryOptions(3)}, {"frames_as_channels": 2}, {"norm": "instance"}])
def test_streaming_gives_what_the_whole_sequence_gives(fields) -> None:
    model = SFNO(SFNOConfig.tiny(in_channels=4, **fields))
    frames = torch.randn(2, 3, 4, 16, 32)
    expected = model(frames)[:, -1]
    found, _ = model.step(frames[:, -1], model.start(frames))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_ten_steps_lower_the_loss_and_every_parameter_learns(tmp_path) -> None:
    model = SFNO(SFNOConfig.tiny(norm="instance"))
    frames = torch.randn(2, 2, 3, 16, 32)
    found = losses(model, frames[:, :1], frames[:, 1:])
    assert found[-1] < 0.8 * found[0]
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.save_pretrained(tmp_path)
    torch.testing.assert_close(SFNO.from_pretrained(tmp_path)(frames), model.eval()(frames))


def test_commands_and_files_know_it() -> None:
    config = SFNOConfig(grid=(64, 128))
    assert model_config("sfno").from_json(config.to_json()) == config
    assert SFNOConfig().for_grid([64, 128]) == config


def test_what_makes_no_sense_is_refused(as_users_call_it) -> None:
    with pytest.raises(ValueError, match="must be 2 .colatitude, longitude."):
        SFNOConfig(n_dims=1)
    with pytest.raises(ValueError, match="more would alias silently"):
        SFNOConfig(scale_factor=1)
    with pytest.raises(ValueError, match="`position`"):
        SFNOConfig(position="zip code")
    with pytest.raises(ValueError, match="this model was built for"):
        SFNO(SFNOConfig.tiny())(torch.zeros(1, 1, 3, 16, 16))


def test_an_exported_block_keeps_its_residual() -> None:
    transform = SphereTransform(SphereGrid(8, 16), degrees=4)
    block = SphereBlock(4, transform, transform, norm="instance").eval()
    field = torch.randn(16, 8, 2, 4)
    torch.testing.assert_close(torch.export.export(block, (field,)).module()(field), block(field))
