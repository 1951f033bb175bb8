"""The S4D block: golden values, mathematics, refusals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.layers.public_s4 import s4d_from_public

from ssno.layers.memory import S4DBlock
from ssno.layers.modes import ModeOptions, Modes
from ssno.ssm.recurrence import linear_recurrence

GOLDEN = Path(__file__).parents[1] / "golden" / "s4d_lin.npz"


def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN, allow_pickle=False) as file:
        return dict(file)


def test_public_arrays_reproduce_the_public_kernel_and_output() -> None:
    arrays = golden()
    block = s4d_from_public(arrays)
    length = arrays["x"].shape[-1]
    np.testing.assert_allclose(block.kernel(length).detach(), arrays["kernel"][0], atol=1e-5)
    np.testing.assert_allclose(block(torch.from_numpy(arrays["x"])).detach(), arrays["y"], atol=1e-5)


def test_public_arrays_may_share_rows_and_lack_leading_axes() -> None:
    arrays = golden()
    for name in ("A_real", "A_imag"):
        arrays[f"layer__kernel__{name}"] = arrays[f"layer__kernel__{name}"][:1]
    arrays["layer__kernel__B"] = arrays["layer__kernel__B"][0, :1]
    arrays["layer.D"] = arrays.pop("layer__D")[0]
    block = s4d_from_public(arrays)
    torch.testing.assert_close(block.modes.frequency[0], block.modes.frequency[7])


def test_public_arrays_that_do_not_fit_are_refused() -> None:
    arrays = golden()
    with pytest.raises(ValueError, match=r"`arrays` lacks layer__D; it has .*Pass the state dict"):
        s4d_from_public({name: value for name, value in arrays.items() if name != "layer__D"})
    arrays["layer__kernel__inv_dt"] = np.zeros(5, np.float32)
    with pytest.raises(ValueError, match=r"inv_dt'\]` has shape \(5,\), which does not fit 8 channels with 8 modes"):
        s4d_from_public(arrays)


@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_block_is_recurrence_then_gate(boundary, direction) -> None:
    block = S4DBlock(4, d_state=6, direction=direction, boundary=boundary).double()
    x = torch.randn(3, 4, 10, dtype=torch.float64)
    columns = x.permute(1, 2, 0)
    modes = block.modes.discretised()
    scanned = linear_recurrence(modes, block.modes.weight(), columns, direction=direction, boundary=boundary)
    scanned = scanned + block.skip[:, None, None] * columns
    mixed = block.mix(torch.nn.functional.gelu(scanned.permute(2, 1, 0)))
    expected = torch.nn.functional.glu(mixed, dim=-1).transpose(1, 2)
    torch.testing.assert_close(block(x), expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("method", ["fft", "toeplitz", "chunked"])
def test_methods_agree_inside_the_block(method) -> None:
    block = S4DBlock(4, d_state=6).double()
    x = torch.randn(3, 4, 17, dtype=torch.float64)
    expected = block(x)
    block.method = method
    torch.testing.assert_close(block(x), expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("damping", "frequency", "learnable"),
    [("learnable", "learnable", 2), ("learnable", "fixed", 1), ("absent", "learnable", 1), ("fixed", "fixed", 0)],
)
def test_the_four_ablation_settings_are_values(damping, frequency, learnable) -> None:
    modes = Modes(3, d_state=8, options=ModeOptions(damping=damping, frequency=frequency))
    names = {name for name, _ in modes.named_parameters()}
    assert len(names & {"log_damping", "frequency"}) == learnable
    assert modes.damping().eq(0 if damping == "absent" else 0.5).all()
    assert set(modes.state_dict()) == {"log_damping", "frequency", "log_step", "input_weight", "output_weight"}
    assert not any(value.is_complex() for value in modes.state_dict().values())
    modes.kernel(16).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in modes.parameters())


@pytest.mark.parametrize("initialisation", ["lin", "inv", "legs"])
@pytest.mark.parametrize("discretisation", ["zoh", "bilinear"])
def test_undamped_modes_give_finite_values_and_gradients(initialisation, discretisation) -> None:
    options = ModeOptions(damping="absent", initialisation=initialisation, discretisation=discretisation)
    block = S4DBlock(4, d_state=8, boundary="periodic-truncated", options=options)
    y = block(torch.randn(2, 4, 12))
    y.square().sum().backward()
    assert y.isfinite().all()
    assert all(p.grad.isfinite().all() for p in block.parameters())


def test_state_space_parameters_are_the_dynamics() -> None:
    modes = Modes(3, d_state=8)
    dynamics = {id(p) for p in modes.state_space_parameters()}
    assert dynamics == {id(modes.log_damping), id(modes.frequency), id(modes.log_step), id(modes.input_weight)}


def test_layer_outputs_converge_as_the_grid_is_refined() -> None:
    block = S4DBlock(4, d_state=8, boundary="periodic", options=ModeOptions(resolution_transfer="resample")).double()

    def output(points: int) -> torch.Tensor:
        position = torch.arange(points, dtype=torch.float64) / points
        wave = torch.stack([torch.sin(2 * torch.pi * (k + 1) * position + k) for k in range(4)])[None]
        return block(wave, spacing=64 / points)[..., :: points // 64]

    finest = output(4096)
    errors = [(output(points) - finest).norm() for points in (64, 128, 256, 512)]
    assert all(coarse / fine > 1.7 for coarse, fine in zip(errors, errors[1:], strict=False))


def test_impulse_response_is_what_the_kernel_samples() -> None:
    modes = Modes(2, d_state=8).double()
    positions = torch.arange(5, dtype=torch.float64)
    fine = modes.kernel(5 * 4096, spacing=1 / 4096)[:, ::4096]
    step = modes.log_step.exp()[:, None] / 4096  # zero-order hold integrates the response over one small cell
    torch.testing.assert_close(fine / step, modes.impulse_response(positions), rtol=0.02, atol=0.05)


@pytest.mark.parametrize("d_state", [0, 7, -2])
def test_odd_d_state_is_refused(d_state) -> None:
    with pytest.raises(ValueError, match=rf"`d_state` .* even and positive, got {d_state}. Use "):
        S4DBlock(4, d_state=d_state)


def test_wrapped_without_damping_is_refused() -> None:
    with pytest.raises(ValueError, match="needs damping > 0, but damping='absent'"):
        S4DBlock(4, d_state=4, boundary="periodic", options=ModeOptions(damping="absent"))


@pytest.mark.parametrize("name", ["damping", "frequency", "initialisation", "discretisation"])
@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_mode_options_are_refused(name) -> None:
    with pytest.raises(ValueError, match=rf"`{name}` must be one of .*, got 'nonsense'"):
        ModeOptions(**{name: "nonsense"})


def test_steps_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="0 < dt_min <= dt_max, got 0.1 and 0.01"):
        ModeOptions(dt_min=0.1, dt_max=0.01)


@pytest.mark.parametrize(("discretisation", "boundary"), [("zoh", "zero"), ("bilinear", "zero"), ("exact", "periodic")])
def test_kernels_start_with_the_norm_that_is_asked_for(discretisation, boundary) -> None:
    torch.manual_seed(0)
    options = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0, discretisation=discretisation)
    drawn = S4DBlock(8, d_state=16, boundary=boundary, options=options)
    torch.manual_seed(0)
    block = S4DBlock(8, d_state=16, boundary=boundary, options=replace(options, kernel_init_norm=0.5))
    torch.testing.assert_close(block.kernel(256).norm(dim=1), torch.full((8,), 0.5), rtol=1e-2, atol=0)
    shape = drawn.kernel(256) / drawn.kernel(256).norm(dim=1, keepdim=True)
    torch.testing.assert_close(block.kernel(256), 0.5 * shape, rtol=1e-2, atol=1e-3)
    assert torch.equal(block.mix.weight, drawn.mix.weight)


@pytest.mark.parametrize("norm", [0.0, -1.0, float("inf")])
def test_a_starting_norm_that_is_none_is_refused(norm) -> None:
    with pytest.raises(ValueError, match="`kernel_init_norm` must be a positive number or None"):
        ModeOptions(kernel_init_norm=norm)
