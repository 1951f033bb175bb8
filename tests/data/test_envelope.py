"""What training data look like: values, means and energies of bands, on every kind of grid."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from ssno.base import description_from_json
from ssno.data.envelope import BANDS, HIGH, LOW, MEAN, Envelope, Gauge, Surveyor
from ssno.data.normalise import AffineMap, summarise
from ssno.data.trajectories import Trajectories
from ssno.pde.geometry import CARTESIAN, POINT_CLOUD, SPHERE, Axis
from ssno.transforms.sphere import SphereGrid

BOXES = {
    "line": (Axis("x", 2.0, 33),),
    "wall": (Axis("x", 2.0, 32, periodic=False),),
    "square": (Axis("x", 1.0, 16), Axis("y", 1.0, 16)),
    "channel": (Axis("x", 2.0, 17), Axis("y", 1.0, 12, periodic=False)),
    "channel, wall first": (Axis("x", 2.0, 17, periodic=False), Axis("y", 1.0, 12)),
    "cube": (Axis("x", 1.0, 8), Axis("y", 1.0, 6, periodic=False), Axis("z", 2.0, 8)),
}


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("axes", BOXES.values(), ids=list(BOXES))
def test_bands_add_up_to_the_variance(axes) -> None:
    frames = 3 + noise(2, 3, 2, *(axis.points for axis in axes))
    measured = Gauge(axes, CARTESIAN)(frames)
    lines = frames.double().flatten(3)
    torch.testing.assert_close(measured[..., BANDS:].sum(-1), lines.var(-1, unbiased=False), rtol=1e-5, atol=0)
    torch.testing.assert_close(measured[..., MEAN], lines.mean(-1), rtol=1e-5, atol=0)
    torch.testing.assert_close(measured[..., LOW], lines.amin(-1))
    torch.testing.assert_close(measured[..., HIGH], lines.amax(-1))


def test_a_sphere_is_weighed_by_area_and_a_cloud_has_one_band() -> None:
    frames = 3 + noise(2, 3, 1, 16, 32)
    axes = (Axis("colatitude", np.pi * 16 / 15, 16, periodic=False), Axis("longitude", 2 * np.pi, 32))
    measured, area = Gauge(axes, SPHERE)(frames), torch.from_numpy(SphereGrid(16, 32).area)[:, None]
    mean = (frames * area).sum((-1, -2))
    torch.testing.assert_close(measured[..., MEAN], mean, rtol=1e-5, atol=0)
    variance = ((frames - mean[..., None, None]).square() * area).sum((-1, -2))
    torch.testing.assert_close(measured[..., BANDS:].sum(-1), variance, rtol=1e-5, atol=0)
    cloud = Gauge((Axis("point", 32.0, 32),), POINT_CLOUD)
    measured = cloud(frames[..., 0, :])
    assert measured.shape[-1] == BANDS + 1
    variance = frames[..., 0, :].double().var(-1, unbiased=False)
    torch.testing.assert_close(measured[..., BANDS], variance, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("wave", "band"), [(1, 0), (2, 1), (3, 1), (4, 2), (15, 3), (16, 4), (31, 4), (32, 4)])
def test_waves_fall_into_octaves_whatever_the_grid(wave, band) -> None:
    for points in (64, 128):
        x = np.arange(points) / points
        frames = torch.from_numpy(np.cos(2 * np.pi * wave * x))[None, None, None]
        energy = Gauge((Axis("x", 3.0, points),), CARTESIAN, bands=5)(frames)[0, 0, 0, BANDS:]
        assert energy.argmax() == band
        assert energy[band] == pytest.approx(1.0 if 2 * wave == points else 0.5, rel=1e-5)


def test_walls_are_seen_by_half_waves_so_that_a_slope_has_no_small_scales() -> None:
    x = (np.arange(64) + 0.5) / 64
    energy = Gauge((Axis("x", 1.0, 64, periodic=False),), CARTESIAN)(torch.from_numpy(x)[None, None, None])
    assert energy[0, 0, 0, BANDS] > 0.99 * energy[0, 0, 0, BANDS:].sum()


def test_points_without_data_count_in_nothing() -> None:
    frames, outside = 3 + noise(1, 1, 1, 8, 8), torch.zeros(1, 1, 1, 8, 8, dtype=torch.bool)
    outside[..., 2:4, 3:5] = True
    frames[outside] = 1e6
    measured, inside = Gauge(BOXES["square"], CARTESIAN), frames[~outside].double()
    measured = Gauge((Axis("x", 1.0, 8), Axis("y", 1.0, 8)), CARTESIAN)(frames, outside)[0, 0, 0]
    torch.testing.assert_close(measured[:BANDS], torch.stack([inside.amin(), inside.amax(), inside.mean()]))
    variance = (inside - inside.mean()).square().sum() / 64
    torch.testing.assert_close(measured[BANDS:].sum(), variance, rtol=1e-5, atol=0)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_values_of_any_size_are_measured_and_constant_fields_have_no_energy(size) -> None:
    frames = size * noise(1, 1, 1, 16)
    energy = Gauge((Axis("x", 1.0, 16),), CARTESIAN)(frames)[..., BANDS:].sum()
    assert energy == pytest.approx(float(frames.double().var(unbiased=False)), rel=1e-5)
    constant = Gauge((Axis("x", 1.0, 16),), CARTESIAN)(torch.full((1, 1, 1, 16), 0.1 * size))
    assert constant[..., BANDS:].max() <= 1e-12 * size**2


def trajectories(values: torch.Tensor) -> Trajectories:
    return Trajectories.from_array(values.numpy())


def test_the_envelope_is_collected_while_the_units_are_fitted_and_chunks_do_not_matter() -> None:
    data = trajectories(noise(6, 5, 2, 16))
    whole, pieces = Surveyor(data), Surveyor(data)
    whole.look_at(data.read(slice(None)))
    summarise(data, size=1, look=pieces.look_at)
    assert whole.envelope == pieces.envelope
    assert whole.envelope is not None
    assert (whole.envelope.frames, whole.envelope.bands) == (5, 3)
    values = data.read(slice(None)).state
    means = values.double().mean(-1)
    np.testing.assert_allclose(whole.envelope.low, values.amin((0, 1, 3)))
    np.testing.assert_allclose(whole.envelope.mean_high, means.amax((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(whole.envelope.drift, (means.amax(1) - means.amin(1)).amax(0), rtol=1e-5)
    assert description_from_json(Envelope, asdict(whole.envelope)) == whole.envelope


def test_unseen_data_of_the_same_kind_are_within_limits_and_others_are_not() -> None:
    axes = (Axis("x", 1.0, 16),)
    gauge, values = Gauge(axes, CARTESIAN), noise(40, 5, 1, 16)
    known = Envelope.of(gauge(values[:20]), length=1.0)
    unseen = gauge(values[20:])
    low, high = known.limits(unseen[:, 0], gauge)
    assert ((unseen >= low[:, None]) & (unseen <= high[:, None])).all()
    larger = gauge(3 * values[20:, :1])
    assert (larger > high[:, None])[..., BANDS:].any()
    assert (larger > high[:, None])[..., HIGH].any()
    weaker = gauge(0.01 * values[20:, :1])
    assert (weaker < low[:, None])[..., BANDS].any() or known.energy_low[0][0] < 0.01


def test_a_conserved_mean_is_held_to_that_of_the_given_frame() -> None:
    gauge = Gauge((Axis("x", 1.0, 16),), CARTESIAN)
    waves = noise(20, 5, 1, 16)
    waves = waves - waves.mean(-1, keepdim=True) + torch.arange(20.0)[:, None, None, None]  # each keeps its own mean
    known = Envelope.of(gauge(waves), length=1.0)
    assert known.conserved == (True,)
    measured = gauge(waves[:3])
    low, high = known.limits(measured[:, -1], gauge)
    torch.testing.assert_close((low + high)[:, 0, MEAN] / 2, torch.arange(3.0).double(), atol=1e-4, rtol=0)
    assert (high - low)[0, 0, MEAN] < 0.2
    drifting = replace(known, drift=(5.0,))
    assert drifting.conserved == (False,)
    assert drifting.limits(measured[:, -1], gauge)[1][0, 0, MEAN] > 19


def test_without_a_record_given_frames_and_units_stand_in() -> None:
    gauge = Gauge((Axis("x", 1.0, 16),), CARTESIAN)
    given = gauge(noise(2, 1, 1, 16))
    units = AffineMap(torch.tensor([[5.0]]), torch.tensor([[2.0]]))
    guessed = Envelope.guessed(given, units, length=1.0)
    assert guessed.high == (11.0,)
    assert guessed.low[0] == pytest.approx(min(-1.0, float(given[..., LOW].min())))
    expected = given.amax((0, 1))[0, BANDS:] + 4 * torch.tensor([1.0, 0.5, 0.25])
    assert guessed.energy_high[0] == pytest.approx(expected.tolist())
    assert guessed.conserved == (False,)
    assert Envelope.guessed(given, None, length=1.0).high[0] < 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": (0.0, 1.0)}, "An envelope needs one number per field, and per field equally many bands"),
        ({"energy_low": ((),), "energy_high": ((),)}, "An envelope needs one number per field"),
        ({"high": (float("inf"),)}, "An envelope must be finite"),
        ({"frames": 0}, "`frames` and `length` must be positive, got 0 and 1"),
    ],
)
def test_a_damaged_envelope_is_refused(change, message) -> None:
    gauge = Gauge((Axis("x", 1.0, 16),), CARTESIAN)
    with pytest.raises(ValueError, match=message):
        replace(Envelope.of(gauge(noise(2, 3, 1, 16)), length=1.0), **change)
