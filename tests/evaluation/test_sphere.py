"""Scores on the sphere and the forecasts that cost nothing: weights, closed values, what linear maps reach."""

import numpy as np
import pytest
import torch

from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.sphere_baselines import (
    coarse_solver,
    equivariant_linear,
    frame_scores,
    mean_rule,
    persistence_rule,
    score_on_sphere,
    score_rule,
    sphere_table,
    zonal_linear,
)
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import frame_errors
from ssno.forecasting.scores import EVERY, score
from ssno.models.baselines.sfno import SFNO, SFNOConfig
from ssno.models.baselines.trivial import Persistence
from ssno.pde.geometry import SPHERE
from ssno.pde.problems.shallow_water import ShallowWater


def trajectories(problem: ShallowWater, seeds: range) -> Trajectories:
    state = problem.solve([{"field_seed": np.array(seed)} for seed in seeds]).state
    return on_sphere(torch.from_numpy(state).float())


def on_sphere(state: torch.Tensor) -> Trajectories:
    data = Trajectories.from_array(state, fields=ShallowWater.fields)
    nlat = state.shape[-2]
    return data.__class__(**{**vars(data), "geometry": SPHERE, "axes": ShallowWater(nlat=nlat).axes})


@pytest.fixture(scope="module")
def public():
    """Normalised training frames of 64 trajectories, test data and their normalised frames."""
    train = trajectories(ShallowWater(nlat=32, frames=11), range(64))
    test = trajectories(ShallowWater(nlat=32), range(1000, 1008))
    units = fit(train.select(time_index=range(1)), "zscore").state.bind(None)  # as the measured values have it
    return units.encode(train.read(range(64)).state), test, units.encode(test.read(range(8)).state), units


def test_areas_sum_to_one_and_only_spheres_have_them(public) -> None:
    _, test, _, _ = public
    area = test.quadrature_weights
    assert area is not None
    assert float(area.sum()) * 64 == pytest.approx(1, abs=1e-12)
    assert Trajectories.from_array(torch.zeros(1, 2, 1, 4, 4)).quadrature_weights is None
    with pytest.raises(ValueError, match="area-weighted scores need a sphere"):
        score_rule(mean_rule, Trajectories.from_array(torch.zeros(1, 2, 1, 4, 4)), torch.zeros(1, 2, 1, 4, 4))


def test_the_mean_scores_one_and_squares_are_squares(public) -> None:
    _, test, truth, _ = public
    scores = score_rule(mean_rule, test, truth)
    assert set(np.round(scores.values["rel_l2_area"], 6)) == {1.0}
    assert scores.at("energy_ratio", 100) == 0
    found = frame_scores(truth[:, 0], truth[:, 5], area=test.quadrature_weights, fields=test.fields)
    torch.testing.assert_close(found["rel_l2_area_squared"], found["rel_l2_area"] ** 2)
    assert found["rel_l2_area/vorticity"].shape == (8,)


def test_persistence_fails_as_measured(public) -> None:
    _, test, truth, _ = public
    scores = score_rule(persistence_rule, test, truth)
    for step, expected in ((20, 1.46), (50, 1.54), (100, 1.85)):
        assert scores.at("rel_l2_area", step) == pytest.approx(expected, rel=0.12)


def test_linear_maps_by_order_reach_what_was_measured_and_blind_ones_do_not(public) -> None:
    train, test, truth, _ = public
    seeing = score_rule(zonal_linear(train, degrees=11), test, truth)
    for step, expected in ((1, 0.006), (10, 0.017), (20, 0.016), (50, 0.016), (100, 0.027)):
        assert seeing.at("rel_l2_area", step) == pytest.approx(expected, rel=0.25)
    blind = score_rule(equivariant_linear(train, degrees=11), test, truth)
    assert blind.at("rel_l2_area", 1) == pytest.approx(0.24, rel=0.2)
    assert blind.at("rel_l2_area", 20) > 0.8
    sheet = sphere_table("errors", {"zonal-linear": seeing, "equivariant-linear": blind})
    assert [row[0] for row in sheet.rows] == ["zonal-linear", "equivariant-linear"]


def test_the_solver_itself_makes_no_error_and_a_coarse_one_some(public) -> None:
    _, test, truth, units = public
    problem = ShallowWater(nlat=32)
    own = score_rule(coarse_solver(problem, nlat=32, units=units), test, truth[:, :6])
    assert max(own.values["rel_l2_area"]) < 2e-3  # what storing float32 costs, and stepping from it
    coarse = score_rule(coarse_solver(problem, nlat=24, units=units), test, truth[:, :6])
    assert 0.1 < coarse.at("rel_l2_area", 1) < 1


def test_a_forecaster_is_scored_from_its_given_frames(public) -> None:
    _, test, _, _ = public
    normalisers = fit(test, "zscore")
    forecaster = Forecaster(
        Persistence(in_channels=3, out_channels=3, n_dims=2), normalisers=normalisers, window=Window(size=1)
    )
    short = test.select(time_index=range(6))
    plain, projected = (score_on_sphere(forecaster, short, project=project) for project in (False, True))
    assert plain.at("rel_l2_area", 5) == pytest.approx(projected.at("rel_l2_area", 5), rel=1e-4)
    wild = Forecaster(SFNO(SFNOConfig(embed_dim=4)), normalisers=normalisers, window=Window(size=0))
    assert len(score_on_sphere(wild, short).values["rel_l2_area"]) == 5


def test_evaluations_have_the_weighed_errors_of_normalised_forecasts_only(public) -> None:
    _, test, _, _ = public
    short = test.select(time_index=range(4), indices=range(2))
    model = Persistence(in_channels=3, out_channels=3, n_dims=2)
    seen = {}
    for units in ("zscore", "none"):
        forecaster = Forecaster(model, normalisers=fit(test, units), window=Window(size=1))
        seen[units] = score(forecaster, short, metrics=EVERY).means
    steps = score_on_sphere(Forecaster(model, normalisers=fit(test, "zscore"), window=Window(size=1)), short)
    assert seen["zscore"]["rel_l2_area"] == pytest.approx(np.mean(steps.values["rel_l2_area"]), rel=1e-4)
    assert seen["zscore"]["energy_ratio"] == pytest.approx(np.mean(steps.values["energy_ratio"]), rel=1e-4)
    assert seen["zscore"]["rel_l2_area_squared"] > seen["zscore"]["rel_l2_area"] ** 2
    assert "rel_l2_area" not in seen["none"]


def test_weights_count_a_pole_less_than_the_equator() -> None:
    data = on_sphere(torch.randn(1, 2, 3, 8, 16))
    truth = torch.ones(1, 1, 3, 8, 16)
    polar, equatorial = truth.clone(), truth.clone()
    polar[..., 0, :] += 1
    equatorial[..., 4, :] += 1
    area = data.quadrature_weights
    assert frame_errors(polar, truth, area=area) < 0.3 * frame_errors(equatorial, truth, area=area)
    torch.testing.assert_close(frame_errors(polar, truth), frame_errors(equatorial, truth))
