"""Kernels by native code are those that PyTorch computes in float64, gradients too; and bad calls are refused."""

import pytest
import torch

from ssno.base.device import threads
from ssno.layers.modes import ModeOptions, Modes
from ssno.native import operations
from ssno.native.engine import use
from ssno.native.operations import Systems
from ssno.ssm.kernel import (
    SampledKernels,
    UndampedError,
    kernel_gradients,
    plain_kernels,
    sampled_kernels,
)

needs_library = pytest.mark.skipif(not operations.available(), reason="no compiler")
pytestmark = needs_library
GRID_MODES = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)


def parameters(channels: int = 5, *, d_state: int = 14, options: ModeOptions | None = None) -> Systems:
    """The parameters of some systems, moved a little from where they start."""
    torch.manual_seed(0)
    modes = Modes(channels, d_state=d_state, options=options)
    names = ("log_damping", "frequency", "log_step", "input_weight", "output_weight")
    found = [getattr(modes, name).detach() for name in names]
    return Systems(*((tensor + 0.1 * torch.randn_like(tensor)).requires_grad_() for tensor in found))


@pytest.mark.parametrize("options", [ModeOptions(), GRID_MODES], ids=["legs", "grid"])
@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated", "dirichlet"])
@pytest.mark.parametrize("length", [2, 15, 16, 17, 257])
def test_native_kernels_and_gradients_are_exact(length, boundary, options) -> None:
    given = parameters(options=options)
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    choice = {"length": length, "spacing": 0.7, "boundary": boundary}
    with use("fused"):
        mine = sampled_kernels(given, **choice)
        with torch.no_grad():
            assert torch.equal(mine, sampled_kernels(given, **choice))
    theirs = plain_kernels(*exact, **choice)
    grad = torch.randn_like(mine)
    pairs = zip(torch.autograd.grad(mine, given, grad), torch.autograd.grad(theirs, exact, grad.double()), strict=True)
    for one, other in [(mine, theirs), *pairs]:
        assert one.dtype == torch.float32
        assert (one - other).norm() <= 1e-6 * other.norm()


def test_one_point_and_one_mode() -> None:
    given = parameters(1, d_state=2)
    with use("fused"):
        kernel = sampled_kernels(given, length=1)
    exact = plain_kernels(*(t.detach().double() for t in given), length=1, spacing=1.0, boundary="zero")
    torch.testing.assert_close(kernel.double(), exact, rtol=1e-6, atol=0)


def test_a_mode_at_rest_has_finite_gradients() -> None:
    """Neither damping nor frequency: the quotient of the gain is 0 / 0."""
    given = parameters(2, d_state=4)
    with torch.no_grad():
        given[0].fill_(-torch.inf)
        given[1].zero_()
    with use("fused"):
        kernel = sampled_kernels(given, length=20)
    found = torch.autograd.grad(kernel.square().sum(), given)
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    wanted = torch.autograd.grad(plain_kernels(*exact, length=20, spacing=1.0, boundary="zero").square().sum(), exact)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-8)


def test_images_of_an_undamped_mode_are_refused() -> None:
    given = parameters(2, d_state=4)
    with torch.no_grad():
        given[0][1, 1] = -torch.inf
    with use("fused"), pytest.raises(UndampedError, match="periodic-truncated"):
        sampled_kernels(given, length=20, boundary="periodic")


def test_derivatives_of_derivatives() -> None:
    given = parameters(2, d_state=4, options=GRID_MODES)
    with use("fused"):
        slopes = torch.autograd.grad(sampled_kernels(given, length=9).square().sum(), given, create_graph=True)
        found = torch.autograd.grad(sum(slope.sum() for slope in slopes), given)
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    kernel = plain_kernels(*exact, length=9, spacing=1.0, boundary="zero")
    slopes = torch.autograd.grad(kernel.square().sum(), exact, create_graph=True)
    for mine, theirs in zip(found, torch.autograd.grad(sum(s.sum() for s in slopes), exact), strict=True):
        assert (mine - theirs).norm() <= 1e-4 * theirs.norm()


def test_equal_bits_on_any_number_of_threads() -> None:
    given = parameters(64, d_state=64)
    found = []
    for count in (1, 2, 3):
        with threads(count), use("fused"):
            kernel = sampled_kernels(given, length=33, boundary="periodic")
            found.append([kernel, *torch.autograd.grad(kernel.sin().sum(), given)])
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_parameters_may_lie_in_memory_as_they_like() -> None:
    given = parameters(6, d_state=8)
    scattered = [torch.randn(*t.shape, 3)[..., 1].copy_(t.detach()) for t in given]
    assert not any(tensor.is_contiguous() for tensor in scattered)
    with use("fused"), torch.no_grad():
        assert torch.equal(sampled_kernels(Systems(*scattered), length=7), sampled_kernels(given, length=7))


@pytest.mark.usefixtures("as_users_call_it")
def test_what_does_not_fit_is_refused() -> None:
    given = Systems(*(tensor.detach() for tensor in parameters(3, d_state=4)))
    double, short = (
        given._replace(frequency=given.frequency.double()),
        given._replace(output_weight=given.output_weight[:, :1]),
    )
    with pytest.raises(ValueError, match="`frequency` must be a dense float32 tensor"):
        operations.sample_forward(double, length=4, spacing=1.0, circle=False)
    with pytest.raises(ValueError, match=r"`output_weight`.*\(3, 2, 2\)"):
        operations.sample_forward(short, length=4, spacing=1.0, circle=False)
    with pytest.raises(ValueError, match="`length` must be from 1"):
        operations.sample_forward(given, length=0, spacing=1.0, circle=False)
    with pytest.raises(ValueError, match="`grad`"):
        operations.sample_backward(given, torch.zeros(2, 4), spacing=1.0, circle=False)


@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
@pytest.mark.parametrize("length", [2, 17, 64])
def test_gradients_in_closed_form_are_those_of_autograd(boundary, length) -> None:
    given = parameters(4, d_state=10)
    with torch.no_grad():
        given.frequency[0] = 0.0  # beside the series and the quotient
    given = Systems(*(tensor.detach().double().requires_grad_() for tensor in given))
    kernels = plain_kernels(*given, length=length, spacing=0.7, boundary=boundary)
    grad = torch.randn_like(kernels)
    found = kernel_gradients(Systems(*(t.detach() for t in given)), grad, spacing=0.7, boundary=boundary)
    for mine, theirs in zip(found, torch.autograd.grad(kernels, given, grad), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_other_kinds_of_numbers_and_engines_are_written_out() -> None:
    given = parameters(2, d_state=4)
    assert isinstance(sampled_kernels(given, length=4).grad_fn, SampledKernels._backward_cls)
    double = [tensor.detach().double().requires_grad_() for tensor in given]
    assert sampled_kernels(Systems(*double), length=4).dtype == torch.float64
    with use("plain"):
        assert not isinstance(sampled_kernels(given, length=4).grad_fn, SampledKernels._backward_cls)
