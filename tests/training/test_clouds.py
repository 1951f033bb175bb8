"""Training on clouds of points: draws, loss, metrics, exact resume."""

from typing import Any

import numpy as np
import pytest
import torch

from ssno.data.normalise import fit, summarise
from ssno.data.point_clouds import at_points, drawn_points, wall_mask
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.cloud_scores import CloudScores, volume_and_surface, with_known_walls
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import EVERY, score
from ssno.models.baselines.trivial import PersistenceConfig
from ssno.models.registry import model_config
from ssno.models.slices import SliceConfig, SSNOSlicesConfig, TransolverConfig
from ssno.pde.geometry import POINT_CLOUD
from ssno.pde.problems.kt_foil import KTFoil
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import Silent
from ssno.runs.options import Stage, TrainOptions, recipe
from ssno.training.batches import prepare
from ssno.training.objective import Objective
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train

PROBLEM = KTFoil(points=160, wall_points=32, units="stream")
MIXINGS: dict[str, SliceConfig] = {
    "attention": TransolverConfig.tiny(),
    "none": TransolverConfig.tiny(mixing="none"),
    "scan": SSNOSlicesConfig.tiny(d_state=8),
    "selective": SSNOSlicesConfig.tiny(d_state=8, scan="selective"),
}


def cases(count: int = 6, problem: KTFoil = PROBLEM) -> Trajectories:
    drawn = [problem.draw(np.random.default_rng(seed)) for seed in range(count)]
    solution = problem.solve(drawn)
    assert solution.context is not None
    both = np.concatenate([solution.state, np.repeat(solution.context, 2, axis=1)], axis=2).astype(np.float32)
    names = (*problem.fields, *problem.context_fields)
    grid = Trajectories.from_array(
        both, axes="batch time channel point", fields=names, context_fields=problem.context_fields
    )
    parameters = {"lift_coefficient": np.array([one["lift_coefficient"] for one in drawn])}
    return Trajectories.from_parts(
        grid.parts,
        name="kt-foil",
        fields=problem.fields,
        context_fields=problem.context_fields,
        times=grid.times,
        axes=problem.axes,
        parameters=parameters,
        geometry=POINT_CLOUD,
    )


def forecaster_of(data: Trajectories, config: SliceConfig | None = None) -> Forecaster:
    model = (config or TransolverConfig.tiny()).build()
    return Forecaster(model, normalisers=fit(data, "zscore"), window=Window(size=1))


def test_walls_are_where_normals_are() -> None:
    data = cases(2)
    mask = wall_mask(data.read(slice(None)).context, data.context_fields)
    assert torch.equal(mask, (torch.arange(160) < 32).expand(2, 160))
    with pytest.raises(ValueError, match=r"Walls are found by the context field 'normal_x', which these data lack"):
        wall_mask(torch.zeros(1, 1, 2, 5), ("x", "y"))


def test_units_are_those_of_the_flow_not_of_the_stream_before_it() -> None:
    data = cases()
    flow = data.read(slice(None)).state[:, 1].double()
    np.testing.assert_allclose(summarise(data).state.std, flow.std(dim=(0, 2), correction=0), rtol=1e-6)
    np.testing.assert_allclose(summarise(data).state.mean, flow.mean(dim=(0, 2)), rtol=1e-5)


def test_points_are_drawn_by_seed_epoch_and_step_alone() -> None:
    first = drawn_points(160, 40, 0, 1, 2)
    assert torch.equal(first, drawn_points(160, 40, 0, 1, 2))
    assert not torch.equal(first, drawn_points(160, 40, 0, 1, 3))
    assert len(set(first.tolist())) == 40
    data = cases(4)
    forecaster = forecaster_of(data)
    # Two processes that share a batch draw the same points of their cases.
    whole, half = (
        prepare(forecaster, data.read(chosen), chosen, stage=Stage(), key=(0, 1, 2), points=40, walls=True)
        for chosen in ([0, 1, 2, 3], [1, 3])
    )
    assert whole.inputs.shape == (4, 1, 3, 40)
    assert torch.equal(whole.targets[[1, 3]], half.targets)
    assert whole.wall is not None
    assert half.wall is not None
    assert torch.equal(whole.wall[[1, 3]], half.wall)
    expected = at_points(data.read([1]), first).state
    torch.testing.assert_close(forecaster.normalisers.state.decode(half.targets[:1]), expected[:, 1:])


def test_the_loss_weighs_volume_and_wall_apart() -> None:
    data = cases(3)
    forecaster = forecaster_of(data)
    prepared = prepare(forecaster, data.read(slice(None)), (0, 1, 2), stage=Stage(), walls=True)
    losses, _ = Objective(forecaster, surface_weight=2.0)(prepared)
    answers = forecaster(prepared.inputs, prepared.context)
    squares = (answers - prepared.targets).square()[:, 0].mean(1)
    torch.testing.assert_close(losses, squares[:, 32:].mean(1) + 2 * squares[:, :32].mean(1))


def test_a_draw_without_wall_points_has_no_wall_error() -> None:
    prediction, truth = torch.randn(2, 1, 3, 10), torch.zeros(2, 1, 3, 10)
    volume, surface = volume_and_surface(prediction, truth, torch.zeros(2, 10, dtype=torch.bool))
    torch.testing.assert_close(volume, prediction.square().mean(-1))
    assert surface.count_nonzero() == 0


def test_scores_have_volume_wall_and_lift() -> None:
    data = cases()
    means = score(forecaster_of(data), data, metrics=EVERY, batch_size=4).means
    for name in ("volume_mse", "surface_mse"):
        parts = [means[f"{name}/{field}"] for field in ("v_x", "v_y", "p")]
        assert means[name] == pytest.approx(np.mean(parts), rel=1e-6)
    assert {"lift_rel", "lift_rel_median", "lift_abs", "lift_bias", "lift_rank"} <= means.keys()
    assert not any(name.startswith(("spectral", "correlation", "valid", "energy")) for name in means)


def test_the_true_lift_is_close_to_the_closed_form_and_a_true_forecast_has_no_error() -> None:
    data = cases()
    scores = CloudScores(data.fields, data.context_fields)
    frames = data.read(slice(None))
    truth = frames.state[:, 1:]
    errors = scores.add(truth, truth, frames, fit(data, "zscore").state.bind())
    np.testing.assert_allclose(scores.true_lifts, data.parameters["lift_coefficient"], atol=2e-2)
    assert all(values.count_nonzero() == 0 for values in errors.values())
    assert scores.lift() == {
        "lift_rel": 0,
        "lift_rel_median": 0,
        "lift_abs": 0,
        "lift_bias": 0,
        "lift_rank": pytest.approx(1),
    }


def test_a_forecaster_without_units_is_scored_by_its_lift_alone() -> None:
    data = cases()
    still = PersistenceConfig(in_channels=8, out_channels=3).build()
    means = score(Forecaster(still, normalisers=fit(data, "none"), window=Window(size=1)), data, metrics=EVERY).means
    assert "volume_mse" not in means
    assert means["lift_rel"] == pytest.approx(1)  # no disturbance, no lift


def test_what_sticks_to_the_wall_is_known_there() -> None:
    data = cases(2, KTFoil(points=160, wall_points=32))
    truth = data.read(slice(None)).state[:, 1:]
    truth[..., :2, :32] = 0
    wall = (torch.arange(160) < 32).expand(2, 160)
    shown = with_known_walls(truth + 1, truth, wall)
    assert shown[..., :2, :32].count_nonzero() == 0
    assert torch.equal(shown[..., 2, :], truth[..., 2, :] + 1)
    assert torch.equal(shown[..., 32:], truth[..., 32:] + 1)


@pytest.mark.parametrize("name", MIXINGS)
def test_every_mixing_trains_and_resumes_bitwise(name: str, tmp_path) -> None:
    data = cases()
    settings: dict[str, Any] = {
        "valid": data.select(indices=range(4, 6)),
        "epochs": 3,
        "batch_size": 2,
        "points_per_step": 48,
    }

    def run(folder: str, **more: Any) -> Forecaster:
        torch.manual_seed(0)
        model = MIXINGS[name].build()
        return train(
            model, data.select(indices=range(4)), folder=tmp_path / folder, reporter=Silent(), **settings, **more
        )

    run("whole")
    with pytest.raises(TrainingInterrupted):
        run("cut", stop_after=3)
    run("cut", resume=True)
    whole, cut = (load_checkpoint(tmp_path / folder / "last")[0] for folder in ("whole", "cut"))
    assert all(torch.equal(whole[key], cut[key]) for key in whole)


def test_recipes_of_clouds() -> None:
    fast, paper = recipe("fast", dataset="kt-foil"), recipe("paper", dataset="airfrans")
    assert (fast.loss, fast.noise_std, fast.points_per_step, fast.predict_increment) == (
        "volume_surface",
        0.0,
        256,
        False,
    )
    assert (paper.epochs, paper.batch_size, paper.points_per_step, paper.weight_decay) == (398, 1, 32_000, 0.0)


@pytest.mark.usefixtures("as_users_call_it")
def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="`loss` must be one of 'rel_l2', 'volume_surface', got 'mse'"):
        TrainOptions(loss="mse")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`points_per_step` must not be negative"):
        TrainOptions(points_per_step=-1)
    model = model_config("ssno:tiny", in_channels=8, out_channels=3).build()
    with pytest.raises(
        ValueError, match="Model 'ssno' takes data of the geometry 'cartesian' or 'sphere', but these have"
    ):
        train(model, cases(), epochs=1, reporter=Silent())
