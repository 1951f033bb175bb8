"""SS-NO on the sphere: counts, scans over the poles, the learned map, what the model commutes with."""

import math

import pytest
import torch
from torch import Tensor

from ssno.layers.axial import BidirectionalScan
from ssno.layers.block import scan_weights
from ssno.layers.memory import MemoryOptions
from ssno.layers.modes import ModeOptions
from ssno.layers.sphere import GreatCircleProduct, GreatCircleScan, SphereMap, SphereScan, great_circles, responses
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO
from ssno.models.ssno_sphere import SphereSSNO, SphereSSNOConfig, low_passed
from ssno.transforms.sphere import MOST_MADE, SphereGrid, transform_of, transforms_made

FIELDS = {"in_channels": 3, "out_channels": 3, "n_dims": 2}


def smooth(nlat: int, *batch: int, degrees: int = 4, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random fields of a few degrees: the same at every resolution."""
    torch.manual_seed(1)
    modes = torch.complex(torch.randn(*batch, degrees, degrees), torch.randn(*batch, degrees, degrees)).tril()
    return transform_of(nlat, 2 * nlat, degrees, torch.float64).synthesise(modes.to(torch.complex128)).to(dtype)


def awake(config: SphereSSNOConfig) -> SphereSSNO:
    """A model whose last layer, zero at the start, answers something."""
    model = SphereSSNO(config)
    torch.nn.init.normal_(model.head.narrow.weight, std=0.1)
    return model


def test_a_fresh_model_answers_zero() -> None:
    assert not SphereSSNO(SphereSSNOConfig.tiny())(torch.randn(1, 4, 3, 12, 24)).any()


@pytest.mark.parametrize("scans", ["axes", "great-circles", "products"])
def test_scans_start_as_small_changes_of_what_they_are_given(scans) -> None:
    """Else eight of them one after the other do not learn."""
    torch.manual_seed(0)
    model = SphereSSNO(SphereSSNOConfig(hidden_channels=32, d_state=16, n_layers=1, scans=scans))
    field = torch.randn(32, 16, 32, 2)
    (block,) = (*model.blocks_before, *model.blocks_after)
    if scans != "axes":
        block.latitude = torch.nn.Identity()
    change = (block(field) - field)[:, 1:-1]  # a pole's row is averaged
    assert change.square().mean() < 0.01 * field.square().mean()


def test_parameters_of_all_readings() -> None:
    assert count_parameters(SSNO(**FIELDS)) == 370_307
    assert count_parameters(SSNO(**FIELDS, memory=MemoryOptions(0))) == 349_571
    assert count_parameters(SSNO(**FIELDS, coordinates=False)) == 370_179
    assert count_parameters(SphereSSNO()) == 370_307
    assert count_parameters(SphereSSNO(learned_map=True)) == 370_324
    assert count_parameters(SphereSSNO(scans="great-circles")) == 370_307 - 8 * 20_736 + 8 * 64 * 6
    assert (
        count_parameters(SphereSSNO(scans="products"))
        == 370_307 - 8 * 20_736 + 8 * 64 * 6 - 8 * (64 + 1) * 64 + 4 * 11 * 64 * 64 * 2
    )


def test_a_sweep_over_the_poles_is_a_wrapped_scan_of_the_double_cover() -> None:
    """Column lambda, then column lambda + pi backwards, scanned as one line for every lambda."""
    sweep = SphereScan(3, d_state=4).double()
    scan, rings = sweep.scans
    assert isinstance(scan, BidirectionalScan)
    field = smooth(8, 3)[..., None]
    found = sweep(field, spacing=(1.0, 1.0))
    opposite = field.roll(8, 2).flip(1)[:, 1:-1]
    cover = torch.cat([field, opposite], dim=1)[..., 0]  # h c lon
    lines = scan(cover.permute(2, 0, 1)).permute(1, 2, 0)[:, :8]
    poles = lines[:, [0, -1]].mean(2, keepdim=True).expand(-1, -1, 16)
    lines = torch.cat([poles[:, :1], lines[:, 1:-1], poles[:, 1:]], dim=1)
    expected = rings(lines.permute(1, 0, 2)).permute(1, 0, 2)[..., None]
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"learned_map": True},
        {"scans": "great-circles"},
        {"scans": "products"},
    ],
)
def test_turning_the_input_turns_the_forecast(fields) -> None:
    model = awake(SphereSSNOConfig.tiny(memory=MemoryOptions(0, d_state=8), **fields)).eval()
    if model.map is not None:
        with torch.no_grad():
            model.map.stretch.normal_(std=0.2)
            model.map.shift.normal_(std=0.2)
    frames = torch.randn(1, 1, 3, 12, 24)
    turn = 5 if model.config.scans == "axes" else 4  # a whole number of columns of the inner grid too
    torch.testing.assert_close(model(frames.roll(turn, -1)), model(frames).roll(turn, -1), rtol=1e-5, atol=1e-5)


def test_a_product_multiplies_two_maps_of_a_scan_by_degree() -> None:
    torch.manual_seed(0)
    block = GreatCircleProduct(3, d_state=4).double()
    block.latitude = torch.nn.Identity()
    grid = SphereGrid(12, 24, "gauss")
    transform = transform_of(12, 24, grid.largest(products=True), torch.float64, "gauss")
    field = transform.synthesise(torch.randn(3, transform.degrees, transform.degrees, dtype=torch.complex128))[
        ..., None
    ]
    scan = block.scans[0]
    (weights,) = scan_weights([(scan.blocks, 24, 1.0)])
    modes = transform.analyse(field[..., 0])  # h l m
    mixed = torch.einsum("lij,ilm->jlm", torch.view_as_complex(block.mixing)[: transform.degrees], modes)
    y = transform.synthesise(modes * responses(weights, transform.degrees).sum(0)[..., None] + mixed)
    left, right = (torch.einsum("ij,jab->iab", b.mix.weight, y) + b.mix.bias[:, None, None] for b in scan.blocks)
    expected = field + (left * torch.tanh(right))[..., None]
    torch.testing.assert_close(block(field), expected, rtol=1e-9, atol=1e-9)


def test_a_scan_of_great_circles_multiplies_a_harmonic_by_the_response_of_its_degree() -> None:
    """Along the equator Y_ll is the wave l: a wrapped scan of the equator alone must answer the same."""
    scan = GreatCircleScan(3, d_state=4).double().scans[0]
    assert isinstance(scan, BidirectionalScan)
    (weights,) = scan_weights([(scan.blocks, 12, 1.0)])
    response = responses(weights, 4)
    place = torch.arange(12, dtype=torch.float64) * (2 * torch.pi / 12)
    for degree in range(4):
        wave = torch.exp(1j * degree * place)
        parts = [weights.scan(part.expand(3, 1, 12)[..., None])[..., 0] for part in (wave.real, wave.imag)]
        answer = torch.complex(*parts)[:, :, 0]  # h d l
        expected = response[..., degree].t()[..., None] * wave
        torch.testing.assert_close(answer, expected, rtol=1e-10, atol=1e-10)


def test_great_circles_spread_alike_in_all_directions() -> None:
    """Two ways with equal kernels and no gate: a spot at a pole and one at the equator are answered alike."""
    grid = SphereGrid(8, 16, "gauss")
    transform = transform_of(8, 16, 6, torch.float64, "gauss")
    x, y, z = (0.6, 0.0, 0.8)
    theta, phi = torch.as_tensor(grid.colatitudes)[:, None], torch.as_tensor(grid.longitudes)
    spot = x * torch.sin(theta) * torch.cos(phi) + y * torch.sin(theta) * torch.sin(phi) + z * torch.cos(theta)
    pole = torch.cos(theta).expand(8, 16)
    scan = GreatCircleScan(1, d_state=4).double().scans[0]
    (weights,) = scan_weights([(scan.blocks, 16, 1.0)])  # type: ignore[union-attr]
    real = responses(weights, 6).real.sum(0)[0]
    answers = [transform.synthesise(transform.analyse(f**3) * real[:, None]) for f in (spot, pole)]
    # The same function of the cosine of the angle to each spot's centre: an odd polynomial of degree 3.
    fits = [torch.stack([f, f**3], -1).flatten(0, 1) for f in (spot, pole)]
    found = [torch.linalg.lstsq(fit, answer.reshape(-1, 1)).solution for fit, answer in zip(fits, answers, strict=True)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scans", ["axes", "great-circles", "products"])
def test_answers_stay_within_the_degrees_of_the_data(scans) -> None:
    frames = torch.randn(1, 1, 3, 12, 24)
    answer = awake(SphereSSNOConfig.tiny(memory=MemoryOptions(0, d_state=8), scans=scans))(frames)
    torch.testing.assert_close(low_passed(answer), answer, rtol=1e-4, atol=1e-5)
    assert answer[..., [0, -1], :].std(-1).max() < 1e-5


def test_a_model_can_learn_after_a_forecast_in_inference_mode() -> None:
    model = awake(SphereSSNOConfig.tiny(memory=MemoryOptions(0, d_state=8)))
    transforms_made.clear()
    frames = torch.randn(1, 1, 3, 12, 24)
    with torch.inference_mode():
        model(frames)
    model(frames).square().mean().backward()
    assert model.lift.weight.grad.isfinite().all()
    assert model.lift.weight.grad.abs().sum() > 0


def test_the_last_sixteen_transforms_are_kept() -> None:
    made = [transform_of(8, 16, 1 + index % 3, torch.float32) for index in range(6)]
    assert made[0] is made[3]
    for nlat in range(9, 9 + MOST_MADE):
        transform_of(nlat, 2 * nlat, 2, torch.float32)
    assert len(transforms_made) == MOST_MADE
    assert transform_of(8, 16, 1, torch.float32) is not made[0]


@pytest.mark.parametrize("fields", [{"learned_map": True}, {"scans": "great-circles"}, {"scans": "products"}])
def test_streaming_gives_what_the_whole_sequence_gives(fields) -> None:
    model = awake(SphereSSNOConfig.tiny(**fields)).eval()
    frames = torch.randn(2, 4, 3, 12, 24)
    found, _ = model.step(frames[:, -1], model.start(frames))
    torch.testing.assert_close(found, model(frames)[:, -1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, model.predict_next(frames), rtol=1e-4, atol=1e-5)


def test_a_finer_grid_of_the_same_state_gives_the_same_forecast() -> None:
    """Degrees do not depend on the grid: 12 x 24 is the learned one, 24 x 48 has longitudes half as far apart."""
    model = awake(SphereSSNOConfig.tiny(memory=MemoryOptions(0, d_state=8), scans="great-circles", n_layers=1)).eval()
    with torch.no_grad():
        model.head.widen.weight.mul_(0.01)  # almost linear: products of degrees differ, the grids carry 4 and 8 of them
    coarse, fine = (smooth(nlat, 1, 1, 3, degrees=2, dtype=torch.float32) for nlat in (12, 24))
    with torch.no_grad():
        small, large = model(coarse), model(fine, spacing=(11 / 23, 0.5))
    modes = [transform_of(nlat, 2 * nlat, 2, torch.float32).analyse(f) for nlat, f in ((12, small), (24, large))]
    torch.testing.assert_close(modes[1], modes[0], rtol=0.02, atol=0.02 * float(modes[0].abs().max()))


def test_the_map_starts_as_the_identity() -> None:
    torch.manual_seed(0)
    mapped = awake(SphereSSNOConfig.tiny(learned_map=True)).eval()
    plain = awake(SphereSSNOConfig.tiny()).eval()
    plain.load_state_dict({k: v for k, v in mapped.state_dict().items() if not k.startswith("map.")})
    frames = smooth(12, 1, 4, 3, dtype=torch.float32)
    torch.testing.assert_close(mapped(frames), plain(frames), rtol=1e-5, atol=1e-5)


def test_the_map_is_monotone_for_any_parameters() -> None:
    for seed in range(20):
        torch.manual_seed(seed)
        one = SphereMap()
        with torch.no_grad():
            one.stretch.normal_(std=1.0)
        _, xi, slope = one.table(32)
        assert (xi.diff() > 0).all()
        assert (slope > 0).all()
        assert xi[0] == 0
        assert xi[-1].item() == pytest.approx(math.pi, rel=1e-6)
        inverse = one.inverse(32)
        assert (inverse.diff() > 0).all()


def test_a_push_and_a_pull_lose_what_cubics_lose() -> None:
    one = SphereMap().double()
    with torch.no_grad():
        one.stretch.copy_(torch.linspace(0.3, -0.1, 8) / torch.arange(1, 9) ** 2)
        one.shift.copy_(torch.linspace(0.5, -0.3, 9) / torch.arange(1, 10) ** 2)
    errors = []
    for nlat in (24, 48, 96):
        field = smooth(nlat, 1, 1)
        errors.append(float((one.pull(one.push(field)) - field).abs().max().detach()))
    orders = [math.log2(coarse / fine) for coarse, fine in zip(errors, errors[1:], strict=False)]
    assert min(orders) > 3.5


def test_gradients_reach_the_map_and_every_other_parameter() -> None:
    model = awake(SphereSSNOConfig.tiny(learned_map=True))
    model(torch.randn(1, 4, 3, 12, 24)).square().mean().backward()
    assert model.map is not None
    assert model.map.stretch.grad is not None
    assert (model.map.stretch.grad != 0).all()
    assert (model.map.shift.grad[1:] != 0).all()  # a turn of everything by one angle changes nothing
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_commands_and_files_know_it() -> None:
    config = SphereSSNOConfig(learned_map=True)
    assert model_config("ssno-sphere").from_json(config.to_json()) == config
    assert config.recommended(periodic=False).modes.initialisation == "grid"


def test_what_makes_no_sense_is_refused(as_users_call_it) -> None:
    with pytest.raises(ValueError, match="`n_dims` on the sphere must be 2"):
        SphereSSNOConfig(n_dims=1)
    with pytest.raises(TypeError, match="boundary"):
        SphereSSNOConfig(boundary="zero")
    with pytest.raises(ValueError, match="`learned_map=True` needs scans='axes', got scans='great-circles'"):
        SphereSSNOConfig(scans="great-circles", learned_map=True)
    with pytest.raises(ValueError, match="`scans`"):
        SphereSSNOConfig(scans="circles")
    with pytest.raises(ValueError, match="`modes.selective` on the sphere must be False"):
        SphereSSNOConfig.tiny(modes=ModeOptions(selective=True))
    with pytest.raises(ValueError, match="even number of longitudes"):
        great_circles(torch.zeros(1, 4, 7, 1))
