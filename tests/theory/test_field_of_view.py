"""Who sees what: kernels and Jacobians agree, and the sharp depth is sharp."""

import math

import pytest
import torch
from torch import nn

from ssno.layers.axial import ParallelAxialScan, UnidirectionalScan
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.memory import MemoryOptions
from ssno.layers.spectral import SpectralConvolution
from ssno.models.registry import model_config
from ssno.theory.field_of_view import FieldOfView, depth_for_full_view, field_of_view, seen_in_jacobian, support, then
from ssno.theory.figures import plot_field_of_view


def model_of(name: str, n_dims: int, **fields) -> nn.Module:
    fields = {"n_modes": 2, **fields} if "fno" in name else fields
    return model_config(f"{name}:tiny", n_dims=n_dims, **fields).build()


def short_kernels(depth: int, *, reach: int, padding_mode: str = "zeros") -> nn.Sequential:
    layers = [nn.Conv1d(3, 3, 2 * reach + 1, padding=reach, padding_mode=padding_mode) for _ in range(depth)]
    return nn.Sequential(*(part for layer in layers for part in (layer, nn.GELU())))


@pytest.mark.parametrize("grid", [(9,), (5, 4)])
@pytest.mark.parametrize("name", ["ssno", "ssno-vm", "ssno-ff", "ssno-product", "fno", "fno-r", "ffno"])
def test_full_view_by_kernels_and_by_jacobian(name, grid) -> None:
    model = model_of(name, len(grid))
    view = field_of_view(model, grid)
    assert view.full
    assert view.fraction == 1
    assert seen_in_jacobian(model, grid).full


@pytest.mark.parametrize("n_layers", [1, 8])
@pytest.mark.parametrize("grid", [(9,), (5, 4)])
def test_the_one_way_model_never_sees_ahead_however_deep(grid, n_layers) -> None:
    model = model_of("ssno-uni", len(grid), n_layers=n_layers)
    view = field_of_view(model, grid)
    assert view.fraction == pytest.approx(math.prod((n + 1) / (2 * n) for n in grid))
    assert torch.equal(seen_in_jacobian(model, grid).reached, view.reached)


@pytest.mark.parametrize("boundary", ["periodic", "periodic-truncated"])
def test_on_a_circle_one_way_is_enough(boundary) -> None:
    model = model_of("ssno-uni", 1, boundary=boundary)
    assert field_of_view(model, (9,)).full
    assert seen_in_jacobian(model, (9,)).full


def test_parallel_axes_see_a_cross_and_two_of_them_everything() -> None:
    one, two = (model_of("ssno-ff", 2, n_layers=depth, memory=MemoryOptions(0, d_state=8)) for depth in (1, 2))
    cross = field_of_view(one, (5, 4)).inputs_of(2, 1)
    expected = torch.zeros(5, 4, dtype=torch.bool)
    expected[2], expected[:, 1] = True, True
    assert torch.equal(cross, expected)
    assert torch.equal(seen_in_jacobian(one, (5, 4)).inputs_of(2, 1), expected)
    assert field_of_view(two, (5, 4)).full
    assert depth_for_full_view(one.blocks_after[0], (5, 4)) == 2


@pytest.mark.parametrize("points", [7, 12])
@pytest.mark.parametrize("reach", [1, 2, 4])
@pytest.mark.parametrize("padding_mode", ["zeros", "circular"])
def test_short_kernels_see_everything_from_the_sharp_depth_on(points, reach, padding_mode) -> None:
    farthest = points - 1 if padding_mode == "zeros" else points // 2
    sharp = math.ceil(farthest / reach)
    layer = short_kernels(1, reach=reach, padding_mode=padding_mode)
    assert depth_for_full_view(layer, (points,)) == sharp
    example = torch.randn(1, 3, points)
    for depth in {max(1, sharp - 1), sharp}:
        model = short_kernels(depth, reach=reach, padding_mode=padding_mode)
        view = field_of_view(model, (points,))
        assert view.full == (depth == sharp)
        assert torch.equal(seen_in_jacobian(model, (points,), example=example).reached, view.reached)


def test_no_depth_helps_where_a_layer_looks_one_way() -> None:
    assert depth_for_full_view(UnidirectionalScan(2, axes=2, d_state=4), (4, 4)) is None
    assert depth_for_full_view(nn.GELU(), (3,)) is None
    assert depth_for_full_view(nn.GELU(), (1,)) == 1


def test_zeroed_taps_are_not_seen() -> None:
    layer = nn.Conv1d(1, 1, 3, padding=1)
    layer.weight.data[0, 0, 2] = 0  # nothing from the point after
    assert torch.equal(field_of_view(layer, (5,)).reached, torch.ones(5, 5).tril().triu(-1).bool())


@pytest.mark.parametrize(("points", "wave", "seen"), [(16, 2, 12), (24, 2, 20), (24, 3, 18), (15, 3, 15)])
def test_zeros_of_a_kernel_at_grid_points_are_in_its_support_but_not_in_the_jacobian(points, wave, seen) -> None:
    layer = SpectralConvolution(1, n_modes=4, axes=1, initialise=nn.init.zeros_)
    layer.weight.data[0, wave, 0, 0, 0] = 1  # y = cosine * x

    class Lines(nn.Module):
        def forward(self, lines):
            return layer.double()(lines.movedim(0, -1)).movedim(-1, 0)

    kernel = torch.cos(2 * torch.pi * wave * torch.arange(points).double() / points)
    assert int((kernel.abs() > 1e-12).sum()) == seen
    assert field_of_view(layer, (points,)).full
    view = seen_in_jacobian(Lines(), (points,), example=torch.randn(1, 1, points))
    assert view.fraction == pytest.approx(seen / points)


def test_linear_layers_and_spectral_layers_have_rules() -> None:
    layer = LinearSSM(2, 3, modes=2, boundary="zero", direction="backward")
    assert torch.equal(field_of_view(layer, (4,)).reached, torch.ones(4, 4).triu().bool())
    sweep = LinearSweep([LinearSSM(2, 2, modes=2) for _ in range(2)])
    assert depth_for_full_view(sweep, (4, 3)) == 2


def test_sequence_and_parallel_follow_matrix_rules() -> None:
    sweep = ParallelAxialScan(2, axes=2, d_state=4)
    single = support(sweep, (3, 3))
    assert torch.equal(then(single, single), (single.float() @ single.float()) > 0)
    assert single.diagonal().all()


def test_a_view_is_drawn_with_its_share() -> None:
    views = {
        "all": FieldOfView((4,), torch.ones(4, 4, dtype=torch.bool)),
        "some": FieldOfView((4,), torch.eye(4, dtype=torch.bool)),
    }
    panels = plot_field_of_view(views).axes
    assert [panel.get_title() for panel in panels] == ["all\n100 % of pairs", "some\n25 % of pairs"]
    assert panels[1].images[0].get_array().sum() == 4


def test_a_share_that_only_rounds_to_everything_is_not_called_everything() -> None:
    nearly = torch.ones(100, 100, dtype=torch.bool)
    nearly[0, 99] = False
    (panel,) = plot_field_of_view({"nearly": FieldOfView((10, 10), nearly)}).axes
    assert panel.get_title() == "nearly\n99.9 % of pairs"
    assert panel.images[0].get_array().shape == (10, 10)


@pytest.mark.usefixtures("as_users_call_it")
def test_what_makes_no_sense_is_refused() -> None:
    one, two = FieldOfView((4,), torch.eye(4).bool()), FieldOfView((2, 2), torch.eye(4).bool())
    with pytest.raises(ValueError, match=r"`point` must index the grid \(2, 2\), got \(2, 0\)"):
        two.inputs_of(2, 0)
    with pytest.raises(ValueError, match=r"`grid` must hold the number of points of each axis, got \(\)"):
        field_of_view(nn.GELU(), ())
    with pytest.raises(TypeError, match="no rule for the kernels of a LSTM. Use `seen_in_jacobian`"):
        field_of_view(nn.LSTM(2, 2), (4,))
    with pytest.raises(ValueError, match="`example` is needed for a Conv1d, whose input this function cannot guess"):
        seen_in_jacobian(nn.Conv1d(1, 1, 1), (4,))
    with pytest.raises(ValueError, match=r"`example` must end in the axes \(4,\) of the grid, got shape \(1, 1, 5\)"):
        seen_in_jacobian(nn.Conv1d(1, 1, 1), (4,), example=torch.randn(1, 1, 5))
    with pytest.raises(ValueError, match="`views` is empty"):
        plot_field_of_view({})
    with pytest.raises(ValueError, match=r"all have one grid axis, or all two, got grids \(4,\), \(2, 2\)"):
        plot_field_of_view({"one": one, "two": two})


def test_dilated_taps_are_far_apart() -> None:
    layer = nn.Conv1d(1, 1, 3, padding=2, dilation=2)
    assert field_of_view(layer, (6,)).inputs_of(3).tolist() == [False, True, False, True, False, True]
    assert depth_for_full_view(layer, (6,)) is None  # odd and even points never meet
    example = torch.randn(1, 1, 6)
    assert torch.equal(seen_in_jacobian(layer, (6,), example=example).reached, field_of_view(layer, (6,)).reached)


class Wielandt(nn.Module):
    """A cycle with one short cut: the matrix of n points whose powers take longest to fill, (n - 1)^2 + 1."""


@support.register
def _(layer: Wielandt, grid: tuple[int, ...]) -> torch.Tensor:
    cycle = torch.eye(*grid).roll(1, dims=1).bool()
    cycle[-1, 1] = True
    return cycle


@pytest.mark.parametrize("points", [2, 3, 6, 9])
def test_the_slowest_layer_there_is_gets_there(points) -> None:
    single = support(Wielandt(), (points,))
    reached, depth = single, 1
    while not reached.all():
        reached, depth = then(reached, single), depth + 1
    assert depth_for_full_view(Wielandt(), (points,)) == depth == (points - 1) ** 2 + 1


def test_strong_damping_hides_nothing() -> None:
    model = model_of("ssno", 1)
    for name, parameter in model.named_parameters():
        if name.endswith("log_damping"):
            parameter.data.fill_(math.log(6.0))
        elif name.endswith("log_step"):
            parameter.data.zero_()  # exp(-6) per point: gone after 18 points in float32, 124 in float64
    assert field_of_view(model, (200,)).full
    assert seen_in_jacobian(model, (200,)).full


def test_waves_reach_beyond_their_nodes_and_silent_ones_nowhere() -> None:
    layer = LinearSSM(1, 1, modes=2, damping="absent")
    layer.input_weight.data[:] = torch.tensor([1.0, 0.0])
    layer.output_weight.data[:] = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])  # cos(2 pi x), zero at a quarter
    assert field_of_view(layer, (8,)).full
    layer.output_weight.data[0, 1] = 0  # the mean's sine is left, which is none
    assert field_of_view(layer, (8,)).fraction == 0
    spectral = SpectralConvolution(1, n_modes=2, axes=2)
    assert field_of_view(spectral, (4, 5)).full
    spectral.weight.data.zero_()
    spectral.weight.data[0, 0, 0, ..., 1] = 1  # the mean of a real field has no imaginary part
    assert field_of_view(spectral, (4, 5)).fraction == 0


def test_without_waves_the_skip_reaches_the_point_itself() -> None:
    sweep = UnidirectionalScan(2, axes=1, d_state=4)
    sweep.scans[0].modes.output_weight.data.zero_()
    assert torch.equal(support(sweep.scans[0], (4,)), torch.eye(4).bool())
    sweep.scans[0].skip.data.zero_()
    assert not support(sweep.scans[0], (4,)).any()


@pytest.mark.usefixtures("as_users_call_it")
def test_a_convolution_that_changes_the_grid_is_refused() -> None:
    for layer, shape in ((nn.Conv1d(1, 1, 3), r"\(4,\)"), (nn.Conv1d(1, 1, 3, padding=1, stride=2), r"\(3,\)")):
        with pytest.raises(ValueError, match=rf"`layer` takes a grid of \(6,\) points to {shape}; .*stride 1"):
            field_of_view(layer, (6,))
