"""The whole SS-NO: counts of the paper, streaming, learning, refusals."""

import pytest
import torch
from tests.losses import losses

from ssno.layers.memory import MemoryOptions
from ssno.layers.modes import ModeOptions
from ssno.models.operator import count_parameters
from ssno.models.ssno import SSNO, SSNOConfig

SETTINGS = {
    "all": ModeOptions(),
    "damping only": ModeOptions(frequency="fixed"),
    "frequency only": ModeOptions(damping="absent"),
    "fixed": ModeOptions(damping="fixed", frequency="fixed"),
}


@pytest.mark.parametrize(
    ("d_state", "setting", "parameters"),
    [
        (64, "all", 203_713),
        (32, "all", 154_561),
        (16, "all", 129_985),
        (64, "damping only", 187_329),
        (32, "damping only", 146_369),
        (16, "damping only", 125_889),
        (64, "frequency only", 187_329),
        (32, "frequency only", 146_369),
        (16, "frequency only", 125_889),
        (64, "fixed", 170_945),
        (32, "fixed", 138_177),
        (16, "fixed", 121_793),
    ],
)
def test_parameters_in_1d_are_the_published_ones(d_state, setting, parameters) -> None:
    assert count_parameters(SSNO(d_state=d_state, modes=SETTINGS[setting])) == parameters


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "parameters"), [(1, 1, 369_665), (3, 1, 369_793), (5, 4, 370_692), (6, 4, 370_756)]
)
def test_parameters_in_2d_are_the_published_ones(in_channels, out_channels, parameters) -> None:
    assert count_parameters(SSNO(n_dims=2, in_channels=in_channels, out_channels=out_channels)) == parameters


def test_no_memory_leaves_out_one_block() -> None:
    assert count_parameters(SSNO()) - count_parameters(SSNO(memory=MemoryOptions(0))) == 20_736


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("memory_window", [0, 1, 4])
def test_streaming_equals_the_whole_trajectory(n_dims, memory_window) -> None:
    model = SSNO(
        SSNOConfig.tiny(n_dims=n_dims, in_channels=2, out_channels=1, memory=MemoryOptions(memory_window, d_state=8))
    )
    frames = torch.randn(3, 6, 2, *(4, 5, 6)[:n_dims])
    whole = model(frames)
    for given in (1, 2, 5):
        state, frame = model.start(frames[:, :given]), frames[:, given - 1]
        for slot in range(given - 1, 6):
            prediction, state = model.step(frame, state)
            torch.testing.assert_close(prediction, whole[:, slot], atol=1e-5, rtol=1e-5)
            frame = frames[:, slot + 1] if slot < 5 else frame


def test_slots_ignore_the_future_and_frames_beyond_the_window() -> None:
    model = SSNO(SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)))
    frames = torch.randn(1, 6, 1, 8)
    changed = frames.clone()
    changed[:, [0, 5]] += 1
    torch.testing.assert_close(model(changed)[:, 2:5], model(frames)[:, 2:5], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("boundary", ["periodic", "periodic-truncated"])
def test_periodic_model_without_coordinates_commutes_with_translation(boundary) -> None:
    model = SSNO(SSNOConfig.tiny(n_dims=2, boundary=boundary, coordinates=False))
    frames = torch.randn(1, 3, 1, 8, 7)
    moved = model(frames.roll((2, 3), dims=(-2, -1)))
    torch.testing.assert_close(moved, model(frames).roll((2, 3), dims=(-2, -1)), atol=1e-5, rtol=1e-5)


def test_trajectories_of_a_batch_do_not_mix() -> None:
    model = SSNO(SSNOConfig.tiny())
    frames = torch.randn(4, 5, 1, 8)
    torch.testing.assert_close(model(frames)[2:3], model(frames[2:3]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_ten_steps_lower_the_loss(n_dims) -> None:
    model = SSNO(SSNOConfig.tiny(n_dims=n_dims))
    phase = sum(torch.meshgrid(*[2 * torch.pi * torch.arange(8) / 8] * n_dims, indexing="ij"))
    shifts = torch.rand(4, 1) + 0.3 * torch.arange(6)
    trajectories = torch.sin(phase - shifts[..., None, *(None,) * n_dims])
    found = losses(model, trajectories[:, :-1], trajectories[:, 1:])
    assert found[-1] < 0.9 * found[0]
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_spacing_makes_the_model_agree_across_resolutions() -> None:
    model = SSNO(SSNOConfig.tiny(boundary="periodic", reference_spacing=(0.5,))).double()

    def output(points: int, spacing: float | None) -> torch.Tensor:
        position = torch.arange(points, dtype=torch.float64) / points
        frames = torch.stack([torch.sin(2 * torch.pi * (position - 0.1 * t)) for t in range(4)])[None, :, None]
        return model(frames, spacing=spacing)[..., :: points // 32]

    assert torch.equal(output(32, 0.5), output(32, None))
    finest = output(1024, 0.5 / 32)
    with_spacing = (output(128, 0.125) - finest).norm() / finest.norm()
    without_spacing = (output(128, None) - finest).norm() / finest.norm()
    assert with_spacing < 0.2 * without_spacing


def test_saved_models_come_back_bitwise(tmp_path) -> None:
    config = SSNOConfig.tiny(n_dims=2, in_channels=3, modes=ModeOptions(damping="absent"), reference_spacing=(0.1, 0.2))
    model = SSNO(config)
    model.save_pretrained(tmp_path / "model")
    back = SSNO.from_pretrained(tmp_path / "model")
    frames = torch.randn(1, 2, 3, 4, 5)
    assert back.config == config
    assert torch.equal(back(frames), model(frames))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]


def test_double_precision_survives_saving(tmp_path) -> None:
    model = SSNO(SSNOConfig.tiny()).double()
    model.save_pretrained(tmp_path)
    assert SSNO.from_pretrained(tmp_path).head.narrow.weight.dtype == torch.float64


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d_state": 7}, "`d_state` .* even and positive, got 7. Use 8."),
        ({"n_dims": 4}, "`n_dims` must be 1, 2 or 3, got 4"),
        ({"in_channels": 0}, "`in_channels` must be at least 1, got 0"),
        ({"hidden_channels": -1}, "`hidden_channels` must be at least 1, got -1"),
        ({"boundary": "open"}, "`boundary` must be one of 'zero', 'periodic', .*, 'learned', got 'open'"),
        (
            {"boundary": "periodic", "modes": ModeOptions(damping="absent")},
            "needs damping > 0.*Use boundary='periodic-truncated'",
        ),
        ({"reference_spacing": (-1.0,)}, r"`reference_spacing` must be one positive distance.*got \(-1.0,\)"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_options_are_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        SSNOConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d_state": 0}, "`memory.d_state` .* even and positive, got 0. Use 2."),
        ({"d_state": 2000}, "`memory.d_state` must be at most 1,024, got 2,000"),
        ({"window": -1}, r"`memory.window` must be 0 \(no memory\) or more, got -1"),
    ],
)
def test_wrong_memories_are_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        MemoryOptions(**fields)


def test_steps_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="`dt_min` and `dt_max` must satisfy"):
        ModeOptions(dt_max=1e-4)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (torch.randn(8, 1, 64), r"`frames` must be \(batch, time, channel, x\), got shape \(8, 1, 64\): 0 grid axes"),
        (torch.randn(2, 3, 1, 8, 8), "2 grid axes where this model has 1. Build it with `n_dims=2`"),
        (torch.randn(2, 3, 64, 1), "`frames` has 64 channels, .* takes 1 .*Build it with `in_channels=64`"),
        (torch.zeros(2, 3, 1, 8, dtype=torch.long), "must be a floating-point tensor, got torch.int64"),
        ([[1.0]], "must be a floating-point tensor, got list"),
        (torch.randn(0, 3, 1, 8), "`frames` is empty"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_frames_are_refused(frames, message) -> None:
    with pytest.raises(ValueError, match=message):
        SSNO(SSNOConfig.tiny())(frames)


@pytest.mark.parametrize("spacing", [-1.0, 0.0, (1.0, 1.0)])
def test_wrong_spacing_is_refused(spacing) -> None:
    with pytest.raises(ValueError, match="`spacing` must be one positive distance, or 1 of them"):
        SSNO(SSNOConfig.tiny())(torch.randn(1, 2, 1, 8), spacing=spacing)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="d_states"):
        SSNO(d_states=16)
