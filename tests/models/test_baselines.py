"""The baselines: published counts, one calling convention, saving, gradients, refusals."""

import dataclasses

import pytest
import torch

from ssno.layers.memory import MemoryOptions
from ssno.models.baselines.cnext_unet import CNextUNetConfig
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig, FNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.operator import PrecomputedWeights, count_parameters
from ssno.models.registry import MODELS, model_config

BASELINES = ["ffno", "fno", "fno-r", "unet", "cnext-unet", "gkt", "factformer"]
REMEMBERING = [name for name in BASELINES if name != "gkt"]
MULTI_INPUT = {"memory": MemoryOptions(0), "frames_as_channels": 4}
MARKOVIAN = {"memory": MemoryOptions(0), "frames_as_channels": 0}


def count(config, **fields) -> int:
    with torch.device("meta"):  # counts need no memory
        return count_parameters(model_config(config, **fields).build())


@pytest.mark.parametrize(
    ("config", "fields", "parameters"),
    [
        ("ffno", {}, 2_192_897),
        ("ffno", MARKOVIAN, 2_172_161),
        ("ffno", MULTI_INPUT, 2_172_353),
        ("fno", {"in_channels": 5, "out_channels": 4}, 67_197_700),
        ("fno", {}, 67_196_673),
        ("fno", {"n_modes": 8}, 4_282_113),
        ("fno-r", {}, 1_115_841),
        ("fno-r", {"memory": MemoryOptions(4), "frames_as_channels": 0}, 1_136_385),
        ("unet", {}, 7_783_777),
        ("unet", MARKOVIAN, 7_763_041),
        ("factformer", {}, 1_006_433),
        ("gkt", {}, 8_418_049),
    ],
)
def test_parameters_in_2d_are_the_published_ones(config, fields, parameters) -> None:
    assert count(config, n_dims=2, **fields) == parameters


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        ("ffno", (2_192_897, 2_193_025, 2_193_540, 2_193_604)),
        ("fno", (67_196_673, 67_196_801, 67_197_700, 67_197_764)),
        ("unet", (7_783_777, 7_784_353, 7_785_028, 7_785_316)),
        ("factformer", (1_006_433, 1_006_561, 1_006_788, 1_006_852)),
        ("gkt", (8_418_049, 8_418_305, 8_418_948, 8_419_076)),
    ],
)
def test_parameters_for_every_dataset_follow_its_channels(config, parameters) -> None:
    channels = [(1, 1), (3, 1), (5, 4), (6, 4)]  # torus-li, torus-vis, ce-rm, gce-rt
    assert tuple(count(config, n_dims=2, in_channels=i, out_channels=o) for i, o in channels) == parameters


@pytest.mark.parametrize(
    ("config", "fields", "parameters"),
    [
        ("ffno", {"n_modes": 64}, 2_192_833),
        ("ffno", {"n_modes": 32}, 1_144_257),
        ("unet", {}, 2_728_641),
        ("factformer", {}, 677_345),
        ("factformer", {"coordinates": True}, 677_409),
        ("gkt", {"n_modes": 64}, 291_521),
        ("gkt", {"n_modes": 32}, 160_449),
    ],
)
def test_parameters_in_1d_are_the_published_ones(config, fields, parameters) -> None:
    assert count(config, **fields) == parameters


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        ("ffno", (619_969, 1_144_257, 2_192_833, 4_289_985, 8_484_289)),
        ("gkt", (94_913, 160_449, 291_521, 553_665, 1_077_953)),
    ],
)
def test_models_that_keep_all_modes_grow_with_the_grid(config, parameters) -> None:
    fitted = [model_config(config, n_modes=512).for_grid((points,)) for points in (32, 64, 128, 256, 512)]
    assert tuple(count(config, n_modes=each.n_modes) for each in fitted) == parameters


def test_fitting_never_adds_modes_and_leaves_other_models_alone() -> None:
    assert FFNOConfig(n_modes=32).for_grid((512, 512)) == FFNOConfig(n_modes=32)
    assert UNetConfig().for_grid((16,)) == UNetConfig()


@pytest.mark.parametrize(("n_dims", "learnable"), [(1, 677_217), (2, 1_006_177)])
def test_factformer_holds_frozen_frequencies(n_dims, learnable) -> None:
    model = FactformerConfig(n_dims=n_dims).build()
    assert count_parameters(model, learnable_only=True) == learnable
    assert count_parameters(model) - learnable == 4 * 32 * n_dims


def forms() -> list:
    """Every baseline with memory, Markovian and with frames as channels, as far as it has them."""
    cases = []
    for name in [*BASELINES, "ssno"]:
        cases.append(pytest.param(name, {}, id=f"{name}-default"))
        for label, fields in (("markovian", MARKOVIAN), ("multi-input", MULTI_INPUT)):
            known = {field.name for field in dataclasses.fields(model_config(name))}
            chosen = {key: value for key, value in fields.items() if key in known}
            cases.append(pytest.param(name, chosen, id=f"{name}-{label}"))
    return cases


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize(("config", "fields"), forms())
def test_streaming_equals_the_whole_trajectory(config, fields, n_dims) -> None:
    model = model_config(f"{config}:tiny", n_dims=n_dims, in_channels=2, **fields).build().eval()
    frames = torch.randn(2, 6, 2, *(16,) * n_dims)
    state, whole = model.start(frames[:, :4]), model(frames)
    for slot in (3, 4, 5):
        prediction, state = model.step(frames[:, slot], state)
        one_slot = model(frames[:, : slot + 1])[:, -1]
        torch.testing.assert_close(prediction, one_slot, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(prediction, whole[:, -1], atol=1e-5, rtol=1e-5)
    assert whole.shape[1] == (1 if model.frames_as_channels else 6)


@pytest.mark.parametrize("config", [*BASELINES, "ssno"])
def test_stacked_frames_matter_and_older_ones_do_not(config) -> None:
    fields = {} if config == "gkt" else MULTI_INPUT
    model = model_config(f"{config}:tiny", **fields).build().eval()
    frames = torch.randn(1, 6, 1, 16)
    older, stacked = frames.clone(), frames.clone()
    older[:, :2] += 1
    stacked[:, 2] += 1
    assert torch.equal(model(older), model(frames))
    assert not torch.allclose(model(stacked), model(frames), atol=1e-6)


@pytest.mark.parametrize("config", REMEMBERING)
def test_memory_sees_its_window_and_not_the_future(config) -> None:
    model = model_config(f"{config}:tiny", memory=MemoryOptions(2, d_state=8), frames_as_channels=0).build().eval()
    frames = torch.randn(1, 6, 1, 16)
    changed = frames.clone()
    changed[:, [0, 5]] += 1
    before, after = model(frames), model(changed)
    torch.testing.assert_close(after[:, 2:5], before[:, 2:5], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(after[:, 1], before[:, 1], atol=1e-5)


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("config", BASELINES)
def test_saved_models_come_back_bitwise(config, n_dims, tmp_path) -> None:
    model = model_config(f"{config}:tiny", n_dims=n_dims, in_channels=2, out_channels=2).build()
    frames = torch.randn(2, 4, 2, *(16,) * n_dims)
    model(frames)  # in training mode this moves the statistics of batch norm, which must be saved too
    model.eval().save_pretrained(tmp_path)
    back = type(model).from_pretrained(tmp_path)
    assert back.config == model.config
    assert torch.equal(back(frames), model(frames))


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("config", MODELS)
def test_gradients_reach_every_learnable_parameter_not_declared_idle(config, n_dims) -> None:
    model = model_config(f"{config}:tiny", n_dims=n_dims).build()
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if parameters:
        model(torch.randn(2, 5, 1, *(16,) * n_dims)).square().sum().backward()
    unreached = [name for name, p in parameters.items() if p.grad is None or not p.grad.abs().max() > 0]
    assert unreached == model.idle_parameters()


@pytest.mark.parametrize("config", ["ffno", "fno", "fno-r"])
def test_fourier_models_without_coordinates_commute_with_translation(config) -> None:
    model = model_config(f"{config}:tiny", n_dims=2, coordinates=False).build().double()
    frames = torch.randn(1, 4, 1, 16, 12, dtype=torch.float64)
    moved = model(frames.roll((2, 3), dims=(-2, -1)))
    torch.testing.assert_close(moved, model(frames).roll((2, 3), dims=(-2, -1)), atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("config", BASELINES)
def test_coordinates_can_be_switched(config) -> None:
    usual = model_config(f"{config}:tiny", n_dims=2)
    switched = model_config(f"{config}:tiny", n_dims=2, coordinates=not usual.coordinates)
    assert usual.lifted_channels() - switched.lifted_channels() == (2 if usual.coordinates else -2)
    assert switched.build()(torch.randn(1, 4, 1, 16, 16)).isfinite().all()


def test_ffno_projects_the_last_branch_without_activation() -> None:
    model = FFNOConfig.tiny().build().double()
    features = torch.randn(16, 16, 3, dtype=torch.float64)
    branch = model.layers_after[-1](features).flatten(1)
    head = model.head.narrow.weight @ (model.head.widen.weight @ branch + model.head.widen.bias[:, None])
    expected = (head + model.head.narrow.bias[:, None]).unflatten(1, (16, 3)).movedim(-1, 0)
    torch.testing.assert_close(model.after(features, None, PrecomputedWeights(None)), expected)


def test_fno_r_is_fno_with_diagonal_matrices() -> None:
    reduced = model_config("fno-r:tiny", n_dims=2).build().double()
    full = FNOConfig.tiny(n_dims=2, **MULTI_INPUT).build().double()
    weights = reduced.state_dict()
    for name in [name for name in weights if name.endswith("convolution.weight")]:
        weights[name] = torch.diag_embed(weights[name].movedim(-1, 0)).movedim(0, -1)
    full.load_state_dict(weights)
    frames = torch.randn(2, 4, 1, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(full(frames), reduced(frames), atol=1e-10, rtol=1e-8)


def test_gkt_drops_in_training_only() -> None:
    model = GKTConfig.tiny().build()
    frames = torch.randn(1, 4, 1, 16)
    assert not torch.equal(model(frames), model(frames))
    assert torch.equal(model.eval()(frames), model(frames))


def test_galerkin_attention_is_the_plain_product_over_points() -> None:
    layer = GKTConfig.tiny(n_heads=2).build().layers[0].double().eval()
    u = torch.randn(2, 7, 16, dtype=torch.float64)
    key, value = (
        torch.nn.functional.layer_norm(linear(u).unflatten(-1, (2, 8)), (8,), eps=1e-7)
        for linear in (layer.key, layer.value)
    )
    query = layer.query(u).unflatten(-1, (2, 8))
    expected = torch.einsum("npsd,nqsd,nqse->npse", query, key, value).flatten(2) / 7
    torch.testing.assert_close(layer.attention(u), expected, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize(
    ("config", "fields", "message"),
    [
        (FFNOConfig, {"n_modes": 0}, "`n_modes` must be at least 1, got 0"),
        (
            FFNOConfig,
            {"frames_as_channels": 4},
            "a memory of `memory.window=4` has nothing to see.*Set one of the two",
        ),
        (FFNOConfig, {"frames_as_channels": -1}, r"`frames_as_channels` must be 0 \(frame by frame\) or .* got -1"),
        (FNOConfig, {"head_channels": 0}, "`head_channels` must be at least 1, got 0"),
        (UNetConfig, {"hidden_channels": 0}, "`hidden_channels` must be at least 1, got 0"),
        (CNextUNetConfig, {"blocks_per_level": 0}, "`blocks_per_level` must be at least 1, got 0"),
        (CNextUNetConfig, {"memory": MemoryOptions(4)}, "`frames_as_channels=4` leaves one time step"),
        (GKTConfig, {"n_heads": 5}, "`n_heads` must divide `hidden_channels`, got 5 for 32 channels"),
        (FactformerConfig, {"hidden_channels": 12}, "`hidden_channels` must be a multiple of 8, got 12"),
        (FactformerConfig, {"head_channels": 5}, "`head_channels` are rotated in pairs and must be even, got 5"),
    ],
)
def test_wrong_options_are_refused(config, fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        config(**fields)


@pytest.mark.parametrize(
    ("config", "grid", "message"),
    [
        (
            "unet",
            (40,),
            "grid of 40 points, .* by 16. Read .* on 32 .*--data.resolution 32 --data.reduction spectral",
        ),
        ("cnext-unet", (16, 40), "grid of 16 x 40 points, but the CNextU-Net halves it 4 times: .* divisible by 16"),
        ("unet", (72, 36), r"on 64 x 32 points \(ssno train ... --data.resolution 64 --data.reduction spectral\)"),
        ("unet", (160, 80, 24), "divisible by 16. Use another model: --model ssno takes any grid"),
        ("unet", (16, 7), "grid of 16 x 7 points, .* divisible by 16. Use another model: --model ssno"),
        ("ffno", (8,), "grid of 8 points, but this model keeps n_modes = 6 .* at least 12 points.*`n_modes=4`"),
        ("fno", (16, 8), "grid of 16 x 8 points, but this model keeps n_modes = 6"),
        ("gkt", (8, 16), "grid of 8 x 16 points, but this model keeps n_modes = 6"),
    ],
)
def test_grids_that_do_not_fit_are_refused(config, grid, message) -> None:
    model = model_config(f"{config}:tiny", n_dims=len(grid)).build()
    with pytest.raises(ValueError, match=message):
        model(torch.randn(1, 4, 1, *grid))


@pytest.mark.parametrize("call", ["forward", "start"])
def test_too_few_frames_for_channels_are_refused(call) -> None:
    model = GKTConfig.tiny().build()
    with pytest.raises(ValueError, match="`frames` has 3 time steps, .* last 4 frames as channels. Give it at least 4"):
        getattr(model, call)(torch.randn(1, 3, 1, 16))


def test_the_unet_does_not_train_on_one_number_per_channel() -> None:
    model = UNetConfig.tiny(**MARKOVIAN).build()
    with pytest.raises(ValueError, match="one input on a grid of 16, .*Give it a larger batch or grid"):
        model(torch.randn(1, 1, 1, 16))
    assert model.eval()(torch.randn(1, 1, 1, 16)).isfinite().all()
