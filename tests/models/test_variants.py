"""SS-NO's variants: published counts, streaming, files, gradients, and what tells them apart."""

import json
from dataclasses import replace

import pytest
import torch
from tests.losses import losses

from ssno.layers.axial import BlockOptions
from ssno.layers.memory import MemoryOptions
from ssno.layers.modes import ModeOptions
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig

VARIANTS = ["ssno-uni", "ssno-vm", "ssno-ff", "ssno-product", "ssno-warp"]


def tiny(name: str, **fields) -> SSNO:
    return SSNO(model_config(f"{name}:tiny", **fields))


@pytest.mark.parametrize("name", ["ssno", *SSNOConfig.variants])
def test_a_variant_keeps_its_name_whatever_else_changes(name) -> None:
    config = model_config(name, n_dims=2, n_layers=3, d_state=4)
    assert config.name == config.to_json()["model"] == name
    assert SSNOConfig.from_json({"model": name}) == model_config(name)
    assert model_config(f"{name}:tiny").name == config.recommended(periodic=True).name == name


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "spiral"}, "`block.kind` must be one of 'axial', .*, 'product', got 'spiral'"),
        ({"residual": "both"}, "`block.residual` must be one of 'sum', 'path', 'none', got 'both'"),
        ({"kind": "raster", "residual": "path"}, "`block.residual='path'` needs block.kind='axial', got 'raster'"),
        ({"idle_forecast": False}, "`block.idle_forecast=False` needs block.kind='parallel', got 'axial'"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_blocks_are_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        BlockOptions(**fields)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (model_config("ssno-uni"), 203_713),
        (model_config("ssno-uni", n_dims=2), 369_665),
        (model_config("ssno-vm", n_dims=2), 402_945),
        (model_config("ssno-ff", n_dims=2), 503_297),
        (model_config("ssno-selective"), 273_345),
        (model_config("ssno-product"), 170_433),
        (model_config("ssno-product", n_dims=2), 269_825),
        (model_config("ssno-warp"), 204_497),
        (model_config("ssno-warp", n_dims=2), 304_929),
        (model_config("ssno-ff", n_dims=2, block=BlockOptions("parallel", idle_forecast=False)), 436_481),
    ],
)
def test_parameters_are_the_stated_ones(model, parameters) -> None:
    assert count_parameters(model.build()) == parameters


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("name", VARIANTS)
def test_streaming_equals_the_whole_trajectory(name, n_dims) -> None:
    model = tiny(name, n_dims=n_dims, in_channels=2, memory=MemoryOptions(3, d_state=8))
    frames = torch.randn(2, 5, 2, *(4, 5, 3)[:n_dims])
    whole = model(frames)
    state = model.start(frames[:, :2])
    for slot in range(1, 5):
        prediction, state = model.step(frames[:, slot], state)
        torch.testing.assert_close(prediction, whole[:, slot], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("memory_kernel", ["s4d", "s4"])
@pytest.mark.parametrize("name", ["ssno", *VARIANTS])
def test_saving_and_loading_keeps_every_bit(name, memory_kernel, tmp_path) -> None:
    config = model_config(f"{name}:tiny", n_dims=2, memory=MemoryOptions(d_state=8, kernel=memory_kernel))
    model = config.build()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert loaded.config == config
    assert json.loads((tmp_path / "config.json").read_text())["config"]["memory"]["kernel"] == memory_kernel
    frames = torch.randn(1, 5, 1, 6, 5)
    torch.testing.assert_close(loaded(frames), model(frames), atol=0, rtol=0)


@pytest.mark.parametrize("name", ["ssno", *VARIANTS])
def test_gradients_reach_every_parameter_that_is_not_idle(name) -> None:
    model = model_config(f"{name}:tiny", n_dims=2, memory=MemoryOptions(d_state=8, kernel="s4")).build()
    model(torch.randn(2, 4, 1, 6, 5)).square().sum().backward()
    unreached = [label for label, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unreached == model.idle_parameters()
    assert bool(unreached) == (name == "ssno-ff")


def test_idle_layers_change_no_output() -> None:
    model = tiny("ssno-ff", n_dims=2)
    lean = tiny("ssno-ff", n_dims=2, block=BlockOptions("parallel", idle_forecast=False))
    idle = set(model.idle_parameters())
    lean.load_state_dict({name: value for name, value in model.state_dict().items() if name not in idle})
    frames = torch.randn(1, 3, 1, 6, 5)
    torch.testing.assert_close(lean(frames), model(frames), atol=0, rtol=0)
    assert lean.idle_parameters() == []


def test_only_the_one_way_variant_cannot_see_what_lies_ahead() -> None:
    for name in ("ssno", *VARIANTS):
        model = model_config(f"{name}:tiny").build().double()
        frames = torch.randn(1, 1, 1, 12, dtype=torch.float64)
        changed = frames.clone()
        changed[..., 8:] += 1
        behind = (model(changed) - model(frames))[..., :8].abs().max()
        assert behind < 1e-12 if name == "ssno-uni" else behind > 1e-5


@pytest.mark.parametrize("name", ["ssno", *VARIANTS])
def test_periodic_variants_commute_with_translation_along_every_axis_they_scan_separately(name) -> None:
    model = model_config(f"{name}:tiny", n_dims=2, boundary="periodic", coordinates=False).build().double()
    frames = torch.randn(1, 2, 1, 6, 5, dtype=torch.float64)
    moved, expected = model(frames.roll(2, dims=-2)), model(frames).roll(2, dims=-2)
    flattened = name == "ssno-vm"  # one long line is periodic as a whole, not along each axis
    assert (moved - expected).abs().max() > 1e-6 if flattened else (moved - expected).abs().max() < 1e-10


@pytest.mark.parametrize("name", VARIANTS)
def test_ten_steps_lower_the_loss(name) -> None:
    model = tiny(name, memory=MemoryOptions(d_state=8, kernel="s4"))
    position = 2 * torch.pi * torch.arange(8) / 8
    trajectories = torch.sin(position - (torch.rand(4, 1) + 0.3 * torch.arange(6))[..., None])[:, :, None]
    found = losses(model, trajectories[:, :-1], trajectories[:, 1:])
    assert found[-1] < 0.9 * found[0]


def test_s4_memory_has_its_low_rank_part_more() -> None:
    assert count_parameters(SSNO(memory=MemoryOptions(kernel="s4"))) - count_parameters(SSNO()) == 64 * 32 * 2


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_memory_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match="`memory.kernel` must be one of 's4d', 's4', got 'gru'"):
        SSNOConfig(memory=MemoryOptions(kernel="gru"))


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
@pytest.mark.parametrize("kind", ["ssno", "ssno-uni"])
def test_a_selective_model_is_the_linear_one_when_nothing_is_selected(kind, boundary) -> None:
    config = model_config(f"{kind}:tiny", n_dims=2, memory=MemoryOptions(2, d_state=8), boundary=boundary)
    selective = replace(config, modes=ModeOptions(selective=True)).build().double()
    for name, weight in selective.named_parameters():
        if "select" in name or "spread" in name:
            torch.nn.init.zeros_(weight)
    plain = config.build().double()
    own = selective.state_dict()
    plain.load_state_dict({name: own[name] for name in plain.state_dict()})
    frames = torch.randn(1, 3, 1, 6, 5, dtype=torch.float64)
    torch.testing.assert_close(selective(frames), plain(frames), rtol=0, atol=1e-12)


def test_selective_ssno_streams_saves_and_loads(tmp_path) -> None:
    model = SSNO(model_config("ssno-selective:tiny", memory=MemoryOptions(2, d_state=8)))
    frames = torch.randn(2, 3, 1, 8)
    whole, state = model(frames), model.start(frames[:, :2])
    prediction, state = model.step(frames[:, 1], state)
    torch.testing.assert_close(prediction, whole[:, 1], atol=1e-5, rtol=1e-5)
    model.save_pretrained(tmp_path)
    assert torch.equal(SSNO.from_pretrained(tmp_path)(frames), whole)
    assert model.config.recommended(periodic=True).modes.selective


def test_selective_ssno_starts_bounded_in_single_precision() -> None:
    torch.manual_seed(0)
    config = model_config("ssno-selective", hidden_channels=32, head_channels=128, d_state=16).recommended(
        periodic=True
    )
    model = config.build()
    answer = model(torch.randn(2, 5, 1, 64))
    answer.square().mean().backward()
    assert answer.abs().max() < 100
    norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    assert torch.stack(norms).norm() < 1000
