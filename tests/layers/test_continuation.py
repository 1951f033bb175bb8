"""Learned kernels on another grid that becomes their reference."""

import pytest
import torch

from ssno.layers.continuation import continue_onto
from ssno.layers.memory import MemoryOptions, S4DBlock
from ssno.layers.modes import ModeOptions
from ssno.layers.selective import SelectiveBlock
from ssno.models.ssno import SSNO
from ssno.models.ssno_sphere import SphereSSNO

GRID_START = ModeOptions(initialisation="grid", dt_min=0.1, dt_max=1.0, kernel_init_norm=1.0)


@pytest.mark.parametrize("boundary", ["periodic", "periodic-truncated", "neumann", "dirichlet", "zero"])
@pytest.mark.parametrize(("before", "now"), [(16, 32), (16, 24), (32, 16), (15, 45)])
def test_resolved_waves_meet_the_same_numbers_on_the_new_reference_grid(boundary, before, now) -> None:
    torch.manual_seed(0)
    block = S4DBlock(8, d_state=32, boundary=boundary, options=GRID_START).double()
    weights = block.modes.output_weight.detach().clone()
    turns, padded = (2, 2) if boundary in ("neumann", "dirichlet") else (1, 2 if boundary == "zero" else 1)
    old = torch.fft.rfft(block.taps(turns * before), n=padded * before)
    continue_onto(block, now, before / now)
    new = torch.fft.rfft(block.taps(turns * now), n=padded * now)
    shared = padded * min(before, now) // 2
    lower = shared // 2
    assert (new[:, :shared] - old[:, :shared]).norm() < 0.08 * old[:, :shared].norm()
    assert (new[:, :lower] - old[:, :lower]).norm() < 0.03 * old[:, :lower].norm()
    assert block.modes.output_weight.norm() < 2 * weights.norm()  # no large weights that cancel each other


def test_points_between_those_of_the_old_grid_take_part_afterwards() -> None:
    torch.manual_seed(0)
    model = SSNO(
        n_dims=2, hidden_channels=8, d_state=16, boundary="periodic", modes=GRID_START, coordinates=False
    ).eval()
    frames = torch.randn(1, 2, 1, 16, 16)
    apart = model(frames, spacing=0.5)[..., ::2, ::2]
    assert model.copies((16, 16), spacing=0.5) == (2, 2)
    assert torch.equal(apart, model(frames[..., ::2, ::2]))  # each copy by itself
    model.refer_to((16, 16), spacing=(0.5, 0.5), step=(0.5, 0.5))
    assert model.config.reference_spacing == (0.5, 0.5)
    assert model.copies((16, 16), spacing=0.5) == (1, 1)
    moved = frames.clone()
    moved[..., 1, 1] += 1
    assert not torch.allclose(model(frames)[..., ::2, ::2], model(moved)[..., ::2, ::2])


def test_kernels_that_are_sampled_anew_stay_exactly_what_they_were() -> None:
    torch.manual_seed(0)
    block = S4DBlock(4, d_state=8, boundary="periodic", options=ModeOptions(resolution_transfer="resample")).double()
    before = block.kernel(24, spacing=0.5)
    continue_onto(block, 24, 0.5)
    torch.testing.assert_close(block.kernel(24), before)
    selective = SelectiveBlock(4, d_state=8)
    steps = selective.modes.log_step.exp()
    continue_onto(selective, 24, 0.5)
    torch.testing.assert_close(selective.modes.log_step.exp(), 0.5 * steps)


@pytest.mark.parametrize("scans", ["axes", "great-circles", "products"])
def test_models_of_the_sphere_get_a_new_reference_on_the_grid_of_their_scans(scans) -> None:
    torch.manual_seed(0)
    model = SphereSSNO(hidden_channels=8, n_layers=2, d_state=16, memory=MemoryOptions(d_state=4), scans=scans)
    steps = [block.modes.log_step.clone() for block in model.modules() if isinstance(block, S4DBlock)]
    model.refer_to((32, 64), spacing=(0.1, 0.1), step=(0.5, 0.5))
    after = [block.modes.log_step for block in model.modules() if isinstance(block, S4DBlock)]
    changed = [not torch.equal(one, two) for one, two in zip(steps, after, strict=True)]
    assert sum(changed) == len(changed) - 1  # memory looks at time and stays
