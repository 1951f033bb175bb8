"""Several seeds as one forecast: its score, its uncertainty, and whether the uncertainty is honest."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ssno.data.trajectories import Trajectories
from ssno.evaluation.examples import make_examples
from ssno.evaluation.record import Evaluation
from ssno.forecasting.forecaster import Forecaster
from ssno.plots.bands import ensemble_bands
from ssno.plots.calibration import calibration_plot
from ssno.report.markup import text
from ssno.report.pictures import picture
from ssno.report.sections import metrics, numbers, verdict


@dataclass(frozen=True)
class EnsembleReport:
    """The evaluation of an ensemble, its members, and the trajectories it was scored on."""

    evaluation: Evaluation
    members: Sequence[Forecaster]
    data: Trajectories


def ensemble_section(report: EnsembleReport) -> str:
    """Numbers, calibration and, in one dimension, the mean with its bands on the median trajectory."""
    evaluation = report.evaluation
    drawn = []
    if evaluation.calibration is not None:
        calibration = evaluation.calibration
        times = evaluation.times if len(evaluation.times) == len(calibration.spread) else None
        drawn.append(
            picture(
                lambda: calibration_plot(calibration, times=times),
                "Coverage of the ensemble's intervals, and its spread against its error",
                caption="Is the ensemble as uncertain as it says?",
            )
        )
    if len(report.data.axes) == 1:
        drawn.append(bands_picture(report))
    body = f"<p>{text(verdict(evaluation))}</p>{numbers(evaluation)}"
    return f'{body}<div class="pictures">{"".join(drawn)}</div><p></p>{metrics(evaluation)}'


def bands_picture(report: EnsembleReport) -> str:
    """Mean and deviations at a few times, on the median trajectory."""
    errors = report.evaluation.scores.trajectory_errors
    median = sorted(range(len(errors)), key=errors.__getitem__)[len(errors) // 2]
    seen = [make_examples(member, report.data, [median]) for member in report.members]
    members = torch.stack([examples.forecast[0, :, 0] for examples in seen]).numpy()
    truth, axis = seen[0].predicted_truth[0, :, 0].numpy(), report.data.axes[0]
    times, field = seen[0].predicted_times, report.data.fields[0]
    return picture(
        lambda: ensemble_bands(axis.coordinates(), members, truth, times=times, field=field),
        "Mean of the ensemble with one and two standard deviations",
        caption=f"Trajectory {median}, the median: mean, one and two standard deviations, truth dashed.",
    )
