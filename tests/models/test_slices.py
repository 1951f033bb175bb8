"""Models of point clouds: exact counts, equal to attention written out, blind to the order of points."""

import math
from typing import Any

import pytest
import torch
from tests.losses import losses
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.modes import ModeOptions
from ssno.models.config import OperatorConfig
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.models.slices import (
    SliceConfig,
    SliceOperator,
    SSNOSlices,
    SSNOSlicesConfig,
    Transolver,
    TransolverConfig,
    distances,
)

GRID_MODES = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)
AIRFRANS = {"in_channels": 7, "out_channels": 4}
TINY: dict[str, SliceConfig] = {
    "attention": TransolverConfig.tiny(),
    "none": TransolverConfig.tiny(mixing="none"),
    "scan": SSNOSlicesConfig.tiny(d_state=8, modes=GRID_MODES),
    "selective": SSNOSlicesConfig.tiny(d_state=8, modes=GRID_MODES, scan="selective"),
}


def tiny(name: str, **fields: Any) -> SliceOperator:
    torch.manual_seed(1)
    config: OperatorConfig = TINY[name]
    model = type(config).from_json({**config.to_json(), **fields}).build().double()
    assert isinstance(model, SliceOperator)
    return model


def clouds(points: int = 40) -> Tensor:
    return torch.randn(2, 1, 8, points, dtype=torch.float64)


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (TransolverConfig(**AIRFRANS), 3_893_572),
        (TransolverConfig(**AIRFRANS, mixing="none"), 3_868_996),
        (SSNOSlicesConfig(**AIRFRANS), 4_002_116),
        (SSNOSlicesConfig(**AIRFRANS, directions="forward"), 3_935_556),
        (SSNOSlicesConfig(**AIRFRANS, d_state=16), 3_928_388),
        (SSNOSlicesConfig(**AIRFRANS, d_state=32), 3_952_964),
        (SSNOSlicesConfig(**AIRFRANS, sharing="none"), 6_768_964),
        (SSNOSlicesConfig(**AIRFRANS, sharing="none", directions="forward"), 5_318_980),
        (SSNOSlicesConfig(**AIRFRANS, scan="selective"), 4_069_700),
        (TransolverConfig(), 3_893_572 + 512 - 257),
    ],
)
def test_counts_are_exact_and_nothing_is_idle(config: SliceConfig, count: int) -> None:
    model = config.build()
    assert count_parameters(model) == count
    assert model.idle_parameters() == []  # type: ignore[operator]


@pytest.mark.parametrize("name", TINY)
def test_a_gradient_reaches_every_parameter(name: str) -> None:
    model = tiny(name)
    model(clouds()).square().sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def published(model: Transolver, fields: Tensor) -> Tensor:
    """Transolver of one cloud (p, c), head by head and point by point, from the model's weights."""
    config, u = model.config, None
    place = fields[:, config.out_channels : config.out_channels + 2]
    reference = (place[:, None] - model.lattice[None]).square().sum(-1).sqrt()
    first, _, second = model.lift
    u = functional.linear(torch.cat([fields, reference], -1), first.weight, first.bias)
    u = functional.linear(functional.gelu(u), second.weight, second.bias) + model.placeholder
    for block, mixing in zip(model.blocks, model.mixings, strict=True):
        v = functional.layer_norm(u, u.shape[-1:], block.before_exchange.weight, block.before_exchange.bias)
        exchange, width = block.exchange, u.shape[-1] // config.n_heads
        values, keys = exchange.values(v), exchange.keys(v)
        heard = []
        for head in range(config.n_heads):
            part = slice(head * width, (head + 1) * width)
            logits = keys[:, part] @ exchange.membership.weight.T + exchange.membership.bias
            weight = torch.softmax(logits / exchange.temperature[head], dim=-1)
            tokens = torch.einsum("pg,pc->gc", weight, values[:, part]) / (weight.sum(0)[:, None] + 1e-5)
            query, key, value = mixing.query(tokens), mixing.key(tokens), mixing.value(tokens)
            tokens = torch.softmax(query @ key.T / math.sqrt(width), dim=-1) @ value
            heard.append(weight @ tokens)
        u = u + exchange.spread(torch.cat(heard, -1))
        u = u + block.map(functional.layer_norm(u, u.shape[-1:], block.before_map.weight, block.before_map.bias))
    return model.head(u)


def test_transolver_is_the_published_one_written_out() -> None:
    model = tiny("attention")
    frames = clouds(25)
    assert isinstance(model, Transolver)
    expected = published(model, frames[0, 0].T).T
    torch.testing.assert_close(model(frames)[0, 0], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", TINY)
def test_permuting_points_permutes_answers(name: str) -> None:
    model, frames, order = tiny(name), clouds(), torch.randperm(40)
    torch.testing.assert_close(model(frames[..., order]), model(frames)[..., order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", TINY)
def test_every_point_twice_is_every_point_once(name: str) -> None:
    model, frames = tiny(name), clouds()
    once, twice = model(frames), model(torch.cat([frames, frames], dim=-1))[..., :40]
    assert (once - twice).abs().max() < 1e-5 * once.abs().max()


def test_points_outside_the_mask_do_not_exist() -> None:
    model = tiny("attention")
    exchange, mixing = model.blocks[0].exchange, model.mixings[0]  # type: ignore[union-attr]
    u, x = torch.randn(2, 40, 16, dtype=torch.float64), torch.randn(2, 40, dtype=torch.float64)
    mask = torch.arange(40).expand(2, 40) < 30
    masked = exchange(u, mixing, x=x, mask=mask)[:, :30]  # type: ignore[operator]
    torch.testing.assert_close(masked, exchange(u[:, :30], mixing, x=x[:, :30]), rtol=0, atol=1e-13)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "fields", "same"),
    [
        ("attention", {}, True),
        ("none", {}, True),
        ("scan", {}, False),
        ("selective", {}, False),
        ("scan", {"order": "position"}, True),
        ("selective", {"order": "position"}, True),
    ],
)
def test_numbering_slices_otherwise_changes_only_scans(name: str, fields: dict[str, str], same: bool) -> None:
    model, frames, order = tiny(name, **fields), clouds(), torch.randperm(8)
    before = model(frames)
    with torch.no_grad():
        for block in model.blocks:
            membership = block.exchange.membership  # type: ignore[union-attr]
            membership.weight.copy_(membership.weight[order])  # type: ignore[union-attr, operator]
            membership.bias.copy_(membership.bias[order])  # type: ignore[union-attr, operator]
    change = (model(frames) - before).abs().max() / before.abs().max()
    assert change < 1e-12 if same else change > 1e-4


def test_one_way_scans_do_not_reach_earlier_slices() -> None:
    mixing = tiny("scan", directions="forward").mixings[0]
    tokens = torch.randn(1, 2, 8, 8, dtype=torch.float64)
    changed = tokens.clone()
    changed[:, :, 5:] += 1
    torch.testing.assert_close(mixing(tokens)[:, :, :5], mixing(changed)[:, :, :5], rtol=0, atol=1e-12)


def test_heads_side_by_side_hear_each_other_and_shared_ones_do_not() -> None:
    tokens = torch.randn(1, 2, 8, 8, dtype=torch.float64)
    changed = tokens.clone()
    changed[:, 1] += 1
    for sharing, alike in (("heads", True), ("none", False)):
        mixing = tiny("scan", sharing=sharing).mixings[0]
        assert torch.equal(mixing(tokens)[:, 0], mixing(changed)[:, 0]) is alike


def test_without_residual_the_tokens_themselves_are_missing() -> None:
    tokens = torch.randn(1, 2, 8, 8, dtype=torch.float64)
    with_tokens, without = (tiny("scan", residual=residual).mixings[0](tokens) for residual in ("sum", "none"))
    torch.testing.assert_close(with_tokens - without, tokens, rtol=0, atol=1e-13)


def test_models_of_one_seed_differ_in_their_mixing_alone() -> None:
    weights = [dict(tiny(name).named_parameters()) for name in TINY]
    shared = [{n: p for n, p in one.items() if not n.startswith("mixings")} for one in weights]
    for other in shared[1:]:
        assert other.keys() == shared[0].keys()
        assert all(torch.equal(other[n], shared[0][n]) for n in other)


def test_the_published_start_leaves_state_space_parameters_alone() -> None:
    model = SSNOSlices(hidden_channels=32, n_heads=2, n_layers=1)
    (mixing,) = model.mixings
    assert mixing.blocks[0].mix.weight.std() > 0.1  # type: ignore[union-attr, index, operator]
    assert model.blocks[0].exchange.membership.weight.std() < 0.03  # type: ignore[union-attr, operator]
    attention = Transolver(hidden_channels=32, n_heads=2, n_layers=1).mixings[0]
    assert attention.query.weight.std() < 0.03  # type: ignore[union-attr, operator]


@pytest.mark.parametrize("name", TINY)
def test_ten_steps_lower_the_loss(name: str) -> None:
    frames = clouds()
    found = losses(tiny(name), frames, frames[:, :, :3].roll(1, dims=2), steps=11, rate=3e-3)
    assert found[-1] < 0.9 * found[0]


def test_streaming_is_the_forward_pass() -> None:
    model, frames = tiny("scan"), clouds()
    answer, _ = model.step(frames[:, 0], model.start(frames))
    assert torch.equal(answer, model(frames)[:, 0])


def test_distances_are_exact_where_points_coincide() -> None:
    place = torch.randn(1, 30, 2)
    assert torch.equal(distances(place, place[0]).diagonal(dim1=1, dim2=2), torch.zeros(1, 30))


def test_models_refuse_grids_they_cannot_take() -> None:
    with pytest.raises(
        ValueError, match="Model 'ssno' takes data of the geometry 'cartesian' or 'sphere', but these have 'points'"
    ):
        model_config("ssno").check_grid_type("points")
    with pytest.raises(ValueError, match="Model 'ssno-slices' takes data of the geometry 'points'"):
        SSNOSlicesConfig().check_grid_type("cartesian")
    for grid in ("cartesian", "sphere", "points"):
        model_config("persistence").check_grid_type(grid)


@pytest.mark.usefixtures("as_users_call_it")
def test_sizes_that_do_not_fit_are_refused() -> None:
    for fields, message in (
        ({"n_dims": 2}, "`n_dims` must be 1, the axis of points, got 2"),
        ({"n_heads": 7}, "`n_heads` must divide `hidden_channels`, got 7 and 256"),
        ({"in_channels": 4}, "`in_channels` must count the context fields x and y"),
        ({"mixing": "mean"}, "`mixing` must be one of 'attention', 'none', got 'mean'"),
    ):
        with pytest.raises(ValueError, match=message):
            TransolverConfig(**fields)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`order` must be one of 'index', 'position', got 'x'"):
        SSNOSlicesConfig(order="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`residual` must be one of 'sum', 'none', got 'path'"):
        SSNOSlicesConfig(residual="path")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`modes.selective` is for models of grids; use `scan='selective'`"):
        SSNOSlicesConfig(modes=ModeOptions(selective=True))
    assert isinstance(model_config("ssno-slices:tiny").build(), nn.Module)
