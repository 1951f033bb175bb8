"""Products of scans: the fast form against the formula, derivatives, symmetry, boundaries, memory that adds."""

import pytest
import torch

from ssno.layers.axial import ProductAxialScan, ProductScan, two_sided
from ssno.layers.block import scan_weights
from ssno.layers.memory import TemporalMemory
from ssno.layers.modes import ModeOptions
from ssno.native.engine import use

LOCAL = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)


def formula(scan: ProductScan, x: torch.Tensor, *, circle: bool) -> torch.Tensor:
    """The block on (b, h, l), point by point: every tap of both kernels, then both maps."""
    length = x.shape[-1]
    ahead, back = (block.taps(length) for block in scan.blocks)
    y = torch.zeros_like(x)
    for here in range(length):
        for there in range(length):
            if circle or there <= here:
                y[..., here] += ahead[:, (here - there) % length] * x[..., there]
            if circle or there >= here:
                y[..., here] += back[:, (there - here) % length] * x[..., there]
    left, right = (block.mix(y.transpose(1, 2)).transpose(1, 2) for block in scan.blocks)
    return x + left * torch.tanh(right)


@pytest.mark.parametrize("engine", ["torch", "plain", "auto"])
@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
def test_it_is_the_formula(boundary, engine) -> None:
    scan = ProductScan(3, d_state=4, boundary=boundary, options=LOCAL)
    x = torch.randn(2, 3, 7)
    with use(engine):
        torch.testing.assert_close(scan(x), formula(scan, x, circle=boundary != "zero"), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("boundary", ["periodic", "neumann", "dirichlet"])
def test_one_kernel_on_a_circle_is_both_scans_added(boundary) -> None:
    scan = ProductScan(3, d_state=4, boundary=boundary, options=LOCAL)
    (weights,) = scan_weights([(scan.blocks, 6, 1.0)])
    x = torch.randn(3, 2, 6, 4)
    assert two_sided(weights).scan(x).shape[1] == 1
    torch.testing.assert_close(two_sided(weights).scan(x)[:, 0], weights.scan(x).sum(dim=1), atol=1e-5, rtol=1e-5)


def test_derivatives() -> None:
    scan = ProductScan(2, d_state=2, boundary="periodic", options=LOCAL).double()
    x = torch.randn(1, 2, 5, dtype=torch.float64, requires_grad=True)
    weights = tuple(scan.parameters())
    assert torch.autograd.gradcheck(lambda *_: scan(x), (x, *weights))
    assert torch.autograd.gradgradcheck(scan, (x,))


def test_a_shifted_field_gives_the_shifted_answer() -> None:
    sweep = ProductAxialScan(3, axes=2, d_state=4, boundary="periodic", options=LOCAL)
    field = torch.randn(3, 6, 5, 2)
    torch.testing.assert_close(
        sweep(field).roll((2, 1), (1, 2)), sweep(field.roll((2, 1), (1, 2))), atol=1e-5, rtol=1e-5
    )


def test_all_axes_are_scanned_before_the_product() -> None:
    sweep = ProductAxialScan(3, axes=2, d_state=4, boundary="periodic", options=LOCAL)
    field, scanned = torch.randn(3, 4, 5, 2), None
    for axis, scan in enumerate(sweep.scans):
        length = field.shape[1 + axis]
        ahead, back = (torch.fft.fft(block.taps(length)) for block in scan.blocks)
        shape = [3, 1, 1, 1]
        shape[1 + axis] = length
        spectrum = torch.fft.fft(field if scanned is None else scanned, dim=1 + axis)
        scanned = torch.fft.ifft(spectrum * (ahead + back.conj()).view(shape), dim=1 + axis).real
    left, right = (block.mix(scanned.movedim(0, -1)).movedim(-1, 0) for block in sweep.scans[0].blocks)
    torch.testing.assert_close(sweep(field), field + left * torch.tanh(right), atol=1e-5, rtol=1e-5)
    assert all(block.mix is None for block in sweep.scans[1].blocks)


def test_large_values_grow_no_faster_than_linearly() -> None:
    scan = ProductScan(4, d_state=4, boundary="periodic", options=LOCAL)
    x = torch.randn(1, 4, 8)
    big, bigger = scan(1e6 * x).norm(), scan(1e7 * x).norm()
    assert bigger < 10.1 * big


def test_residual_memory_adds_to_its_input() -> None:
    memory, plain = (TemporalMemory(3, window=2, d_state=4, residual=residual) for residual in (True, False))
    plain.load_state_dict(memory.state_dict())
    features = torch.randn(3, 5, 4)
    replaced = plain.columns(features)
    torch.testing.assert_close(memory.columns(features), features + replaced)
    newest = memory.newest(features[..., -2:].movedim(-1, 0))
    torch.testing.assert_close(newest, memory.columns(features)[..., -1], atol=1e-5, rtol=1e-5)
