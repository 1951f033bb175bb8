"""Scans of axes that end at walls."""

import pytest
import torch

from ssno.layers.axial import AxialScan
from ssno.layers.block import scan_weights
from ssno.layers.memory import S4DBlock
from ssno.layers.modes import ModeOptions
from ssno.models.frozen import freeze
from ssno.models.ssno import SSNO, WALL_BOUNDARY, SSNOConfig
from ssno.native.engine import use

MODES = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)


@pytest.mark.parametrize(("boundary", "sign"), [("neumann", 1), ("dirichlet", -1)])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_wall_is_a_circle_of_the_line_and_its_mirror_image(boundary, sign, direction) -> None:
    torch.manual_seed(0)
    block = S4DBlock(3, d_state=6, direction=direction, boundary=boundary, options=MODES).double()
    circle = S4DBlock(3, d_state=6, direction=direction, boundary="periodic", options=MODES).double()
    circle.load_state_dict(block.state_dict())
    x = torch.randn(3, 1, 11, 2, dtype=torch.float64)
    (walls,), (round_,) = scan_weights([((block,), 11, 1.0)]), scan_weights([((circle,), 22, 1.0)])
    expected = round_.scan(torch.cat([x, sign * x.flip(2)], dim=2))[:, :, :, :11]
    torch.testing.assert_close(walls.scan(x), expected)


def test_a_two_way_scan_with_tied_directions_keeps_the_symmetry_of_a_wall() -> None:
    torch.manual_seed(0)
    sweep = AxialScan(3, axes=1, d_state=6, boundary="neumann", options=MODES).double()
    scan = sweep.scans[0]
    scan.back.load_state_dict(scan.ahead.state_dict())
    field = torch.randn(3, 10, 2, dtype=torch.float64)
    torch.testing.assert_close(sweep(field.flip(1)), sweep(field).flip(1))


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_each_axis_has_its_own_boundary(engine) -> None:
    torch.manual_seed(0)
    model = SSNOConfig.tiny(n_dims=2, boundary=("periodic", "neumann"), coordinates=False).build()
    frames = torch.randn(1, 4, 1, 12, 9)
    with torch.no_grad(), use(engine):
        shifted = model(frames.roll(5, dims=3))
        torch.testing.assert_close(shifted, model(frames).roll(5, dims=3), rtol=1e-4, atol=1e-5)
        apart = model(frames.roll(4, dims=4)) - model(frames).roll(4, dims=4)
    assert apart.abs().max() > 1e-3


def test_periodic_axes_are_circles_and_the_others_get_coordinates() -> None:
    config = SSNOConfig(n_dims=2).recommended(periodic=[True, False])
    assert config.boundaries() == ("periodic", WALL_BOUNDARY)
    assert config.coordinate_axes() == (1,)
    assert SSNOConfig.from_json(config.to_json()) == config
    assert config.build().lift.weight.shape[1] == config.in_channels + 1


def learned(block: S4DBlock) -> S4DBlock:
    """The block with values beyond its ends that are not zero any more."""
    torch.nn.init.normal_(block.beyond)
    return block


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("method", "spacing"), [(way, 1.0) for way in ("auto", "fft", "toeplitz", "chunked")] + [("auto", 0.5)]
)
def test_a_learned_value_lies_beyond_the_end_as_far_as_the_kernel_hears(direction, method, spacing) -> None:
    torch.manual_seed(0)
    block = learned(S4DBlock(3, d_state=6, direction=direction, boundary="learned", options=MODES).double())
    plain = S4DBlock(3, d_state=6, direction=direction, options=MODES).double()
    plain.load_state_dict(block.state_dict(), strict=False)
    x, length, far = torch.randn(3, 1, 12, 2, dtype=torch.float64), 12, 800
    wall = block.beyond[:, None, None, None].expand(3, 1, far, 2)
    padded = torch.cat([wall, x] if direction == "forward" else [x, wall], dim=2)
    block.method = method
    (weights,), (whole,) = (
        scan_weights([((block,), length, spacing)]),
        scan_weights([((plain,), length + far, spacing)]),
    )
    inside = slice(far, None) if direction == "forward" else slice(None, length)
    torch.testing.assert_close(weights.scan(x), whole.scan(padded)[:, :, :, inside])


def test_a_learned_value_that_is_zero_is_a_zero_boundary() -> None:
    torch.manual_seed(0)
    sweep = AxialScan(3, axes=2, d_state=6, boundary="learned", options=MODES)
    plain = AxialScan(3, axes=2, d_state=6, options=MODES)
    plain.load_state_dict(sweep.state_dict(), strict=False)
    field = torch.randn(3, 10, 9, 2)
    torch.testing.assert_close(sweep(field), plain(field))


def learned_model(**fields) -> SSNO:
    """A model whose walls have values."""
    torch.manual_seed(0)
    model = SSNOConfig.tiny(n_dims=2, boundary=("periodic", "learned"), **fields).build()
    for block in model.modules():
        if hasattr(block, "beyond"):
            learned(block)
    return model


def test_learned_values_agree_in_every_engine_with_their_gradients() -> None:
    model, frames, found = learned_model(), torch.randn(2, 4, 1, 12, 9), {}
    for engine in ("auto", "torch", "plain"):
        with use(engine):
            model.zero_grad()
            answer = model(frames)
            answer.square().mean().backward()
        found[engine] = [answer.detach(), *(p.grad for p in model.parameters())]
    assert sum(name.endswith("beyond") for name, _ in model.named_parameters()) == 4
    assert all(p.grad.abs().max() > 0 for name, p in model.named_parameters() if name.endswith("beyond"))
    for engine in ("torch", "plain"):
        for here, there in zip(found["auto"], found[engine], strict=True):
            torch.testing.assert_close(here, there, rtol=1e-3, atol=1e-5)


def test_learned_values_stream_and_freeze_and_export() -> None:
    model, frames = learned_model().eval(), torch.randn(1, 5, 1, 12, 9)
    with torch.no_grad():
        whole = model(frames)
        frozen = freeze(model, grid=(12, 9))
        buffer = frozen.buffer(frames)
        step, _ = frozen(frames[:, -1], buffer)
        torch.testing.assert_close(step, whole[:, -1], rtol=1e-4, atol=1e-5)
        exported = torch.export.export(frozen, (frames[:, -1], buffer)).module()
        torch.testing.assert_close(exported(frames[:, -1], buffer)[0], step, rtol=1e-4, atol=1e-5)
        streamed, _ = model.step(frames[:, -1], model.start(frames))
        torch.testing.assert_close(streamed, whole[:, -1], rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("as_users_call_it")
def test_boundaries_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="`boundary` must be one for all axes, or one per axis \\(2\\)"):
        SSNOConfig(n_dims=2, boundary=("zero",))
    with pytest.raises(ValueError, match="`boundary='neumann'` sums infinitely many images, which needs damping > 0"):
        SSNOConfig(boundary="neumann", modes=ModeOptions(damping="absent"))
    with pytest.raises(ValueError, match="`boundary='learned'` sums infinitely many points, which needs damping > 0"):
        SSNOConfig(boundary="learned", modes=ModeOptions(damping="absent"))
    with pytest.raises(ValueError, match="`boundary` must be"):
        SSNOConfig(boundary="learned", modes=ModeOptions(selective=True)).build()
    with pytest.raises(ValueError, match=r"`coordinates` must be True, False or axes in 0 ... 0, got \(1,\)"):
        SSNOConfig(coordinates=(1,))
