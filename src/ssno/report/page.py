"""The page about runs: from evaluations, examples and inspections to the values of templates/runs.html.

    html = build_page([gather(run, data, evaluation, log=lines)])

The page forbids itself every connection (Content-Security-Policy), so it shows nothing that is not inside it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base import to_text
from ssno.base.formatting import number
from ssno.data.trajectories import Trajectories
from ssno.data.units import NO_UNITS, PhysicalUnits, labelled, measured, merged
from ssno.evaluation.evaluate import metric_table, rows_of
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.inspection import LENGTHS, RunInspection, inspect_run
from ssno.evaluation.record import Evaluation
from ssno.evaluation.seeds import check_comparable, group_by_seed
from ssno.evaluation.statistics import rank
from ssno.evaluation.trivial import best_trivial
from ssno.forecasting.divergence import divergence_sentence
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import CORRELATED, VALID, energy_spectrum
from ssno.forecasting.scores import Scores
from ssno.plots.curves import Band, calibration_plot, ensemble_bands, error_bands, loss_curves, spectra
from ssno.plots.fields import DrawnField, as_drawn, still_picture
from ssno.plots.geometries import flow_pictures
from ssno.plots.modes import inspection_figures
from ssno.report.player import player_data
from ssno.report.provenance import repeat_commands, settings
from ssno.report.template import Picture, data_uri, picture, render
from ssno.runs.open import RunFolder

HEADINGS = {
    "errors": "Errors",
    "forecasts": "Forecasts",
    "inspection": "Learned kernels and memory",
    "settings": "Settings and environment",
    "reproduce": "Reproduce this run",
}
COLUMNS = ("rel_l2", "rel_l2_onestep", "vrmse", "valid_time")
BAND_CAPTION = "Relative error of each predicted frame: mean over trajectories and interquartile range."
SPECTRUM_TRAJECTORIES = 16
MEANINGS = {
    "parameters": "trainable parameters, as real numbers",
    "rel_l2": "rollout error: |forecast - truth| / |truth| over all predicted frames",
    "skill": "1 - rel_l2 / rel_l2 of the best forecast that learns no dynamics; 0 is no better",
    "rel_l2_anomaly": "error of what deviates from the climatology, the mean of the training data frame by frame",
    "rel_l2_normalised": "rel_l2 in normalised units",
    "rel_l2_onestep": "error of single steps from true frames",
    "nrmse": "root mean square error / root mean square of the truth",
    "vrmse": "root mean square error / standard deviation of the truth",
    "spectral_error/low": "error in the lowest third of wavenumbers",
    "spectral_error/mid": "error in the middle third",
    "spectral_error/high": "error in the highest third",
    "correlation_time": f"time until the correlation with the truth falls below {CORRELATED}",
    "valid_time": f"time until the error exceeds {100 * VALID:.0f} %",
    "mean_drift": "drift of the spatial mean",
    "energy_drift": "drift of the energy",
    "seconds": "seconds per forecast",
    "break_even": "forecasts after which training, data and model have cost less than the solver of equal error",
}
TIMES = ("correlation_time", "valid_time")


@dataclass(frozen=True)
class RunReport:
    """Everything about one run that goes onto the page.

    `log` holds the lines of its metrics.jsonl, `data_options` the command-line options that name other data than its
    own.
    """

    run: RunFolder
    data: Trajectories
    evaluation: Evaluation
    examples: Examples
    """The median, best and worst trajectory."""
    labels: Mapping[int, str]
    spectrum_examples: Examples
    inspection: RunInspection
    log: Sequence[Mapping[str, Any]]
    data_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnsembleReport:
    """The evaluation of an ensemble, its members, and the trajectories it was scored on."""

    evaluation: Evaluation
    members: Sequence[Forecaster]
    data: Trajectories


def gather(
    run: RunFolder,
    data: Trajectories,
    evaluation: Evaluation,
    *,
    log: Sequence[Mapping[str, Any]] = (),
    data_options: tuple[str, ...] = (),
) -> RunReport:
    """Forecast the examples, all at once, and inspect the model; `data` are the trajectories `evaluation` scored."""
    labels = typical(evaluation.scores.trajectory_errors)
    first = range(min(SPECTRUM_TRAJECTORIES, len(data)))
    examples = make_examples(run.forecaster, data, list(dict.fromkeys([*labels, *first])))
    return RunReport(
        run=run,
        data=data,
        evaluation=evaluation,
        examples=examples.of(list(labels)),
        labels=labels,
        spectrum_examples=examples.of(first),
        inspection=inspect_run(run),
        log=log,
        data_options=data_options,
    )


def typical(errors: Sequence[float]) -> dict[int, str]:
    """The median, the best and the worst trajectory, in this order, with a label."""
    if not errors:
        raise ValueError("`errors` is empty: no trajectory was scored.")
    order = sorted(range(len(errors)), key=errors.__getitem__)
    chosen: dict[int, str] = {}
    for which, what in ((order[len(order) // 2], "median"), (order[0], "best"), (order[-1], "worst")):
        chosen.setdefault(which, what)
    return {which: f"{what}: trajectory {which}, error {errors[which]:.3g}" for which, what in chosen.items()}


def build_page(reports: Sequence[RunReport], *, ensemble: EnsembleReport | None = None) -> str:
    """One page about one or several runs, and about their ensemble if there is one."""
    if not reports:
        raise ValueError("`reports` is empty: a page needs at least one run.")
    evaluations, several = [report.evaluation for report in reports], len(reports) > 1
    links = [("overview", "Overview")] * several + [("ensemble", "Ensemble")] * (ensemble is not None)
    if several:
        links += [(f"run-{place}", evaluation.name) for place, evaluation in enumerate(evaluations)]
    else:
        links += [("run-0", "Result"), *((f"run-0-{key}", label) for key, label in HEADINGS.items())]
    first = evaluations[0]
    names = ", ".join(evaluation.name for evaluation in evaluations)
    models = ", ".join(dict.fromkeys(evaluation.model for evaluation in evaluations))
    return render(
        "runs.html",
        command="ssno report",
        heading=f"{names}: {models} on {first.dataset}, {' x '.join(map(str, first.points))} points",
        lead=f"{len(reports)} runs on {first.dataset}." if several else summary(first),
        links=links,
        headings=HEADINGS,
        overview=overview(evaluations, merged([report.data.units for report in reports])[0]) if several else None,
        ensemble=None if ensemble is None else ensemble_values(ensemble),
        runs=[
            {"id": f"run-{place}", "title": report.evaluation.name if several else "Result", **run_values(report)}
            for place, report in enumerate(reports)
        ],
    )


def overview(evaluations: Sequence[Evaluation], units: PhysicalUnits = NO_UNITS) -> dict[str, Any]:
    """Runs side by side, with a picture if they can be compared, else with the reason why not."""
    rows = [
        (e.name, e.model, f"{e.parameters:,}", *(number(e.scores.means.get(metric)) for metric in COLUMNS))
        for e in evaluations
    ]
    caption = "lower is better, except for valid_time"
    columns = [labelled(name, units.time) if name in TIMES else name for name in COLUMNS]
    shown = {"headings": ("run", "model", "parameters", *columns), "rows": rows, "caption": caption}
    try:
        check_comparable(evaluations)
    except ValueError as error:
        return {**shown, "sentence": str(error), "picture": None}
    bands = {evaluation.name: band(evaluation.scores) for evaluation in evaluations}
    first = evaluations[0]
    drawn = picture(
        lambda: error_bands(first.times, bands, given_until=first.given_until, time_label=units.time_label),
        "Relative error over time of every run",
        caption=BAND_CAPTION,
    )
    return {**shown, "sentence": best_model(evaluations), "picture": drawn}


def best_model(evaluations: Sequence[Evaluation]) -> str:
    """Which model is best, by a test over seeds; or why that is open."""
    try:
        groups = group_by_seed(evaluations, ["rel_l2"])
    except ValueError as error:
        return str(error)
    if len(groups) < 2:
        return f"{len(evaluations)} seeds of one model."
    return rank({group.name: group.summaries["rel_l2"] for group in groups}).sentence


def ensemble_values(report: EnsembleReport) -> dict[str, Any]:
    """Score, calibration and, in one dimension, the mean with its bands on the median trajectory."""
    evaluation, pictures, units = report.evaluation, [], report.data.units
    if (calibration := evaluation.calibration) is not None:
        times = evaluation.times if len(evaluation.times) == len(calibration.spread) else None
        pictures.append(
            picture(
                lambda: calibration_plot(calibration, times=times, time_label=units.time_label),
                "Coverage of the ensemble's intervals, and its spread against its error",
                caption="Calibration of the ensemble: coverage of its intervals, and spread against error.",
            )
        )
    if len(report.data.axes) == 1:
        pictures.append(_bands_picture(report))
    return {
        "sentence": summary(evaluation),
        "cards": cards(evaluation, units.time),
        "pictures": pictures,
        "metrics": metrics(evaluation, units.time),
    }


def _bands_picture(report: EnsembleReport) -> Picture:
    """Mean and standard deviations at a few times, on the median trajectory."""
    median = next(iter(typical(report.evaluation.scores.trajectory_errors)))
    seen = [make_examples(member, report.data, [median]) for member in report.members]
    members = torch.stack([examples.forecast[0, :, 0] for examples in seen]).numpy()
    truth, axis = seen[0].predicted_truth[0, :, 0].numpy(), report.data.axes[0]
    units, times = report.data.units, seen[0].predicted_times
    labels = {"field": units.field_label(report.data.fields[0]), "axis": units.axis_label(axis.name)}
    return picture(
        lambda: ensemble_bands(axis.coordinates(), members, truth, times=times, time_unit=units.time, **labels),
        "Mean of the ensemble with one and two standard deviations",
        caption=f"Trajectory {median}, the median: mean, one and two standard deviations; truth dashed.",
    )


def run_values(report: RunReport) -> dict[str, Any]:
    """What the template says about one run."""
    run, evaluation, unit = report.run, report.evaluation, report.data.units.time
    found = report.inspection
    described = None if run.data is None else to_text(run.config["run"], indent=2).encode()
    return {
        "sentence": summary(evaluation),
        "cards": cards(evaluation, unit),
        "metrics": metrics(evaluation, unit),
        "errors": error_pictures(report),
        "no_spectrum": no_spectrum(report.data),
        **forecasts(report),
        "inspection": {
            "notes": found.notes,
            "pictures": [picture(draw, words) for words, draw in inspection_figures(found).values()],
            "table": found.table(),
            "caption": LENGTHS,
        },
        "settings": settings(run, evaluation),
        "description": described and data_uri(described, "application/json"),
        "commands": repeat_commands(run, evaluation, report.data_options),
    }


def summary(evaluation: Evaluation) -> str:
    """The result in a sentence or two."""
    means, errors = evaluation.scores.means, sorted(evaluation.scores.trajectory_errors)
    error = means["rel_l2"]
    what = f"{evaluation.trajectories} {evaluation.split} trajectories of {evaluation.dataset}"
    over = f"Over {len(evaluation.times)} predicted frames of {what}"
    if not math.isfinite(error):
        return f"{over}, at least one forecast of {evaluation.name} did not stay finite."
    low, high = errors[len(errors) // 4], errors[(3 * len(errors)) // 4]
    sentence = (
        f"{over}, {evaluation.name} has a mean relative error of {100 * error:.3g} % "
        f"(interquartile range {100 * low:.3g} to {100 * high:.3g} %)."
    )
    if (best := best_trivial(evaluation.baselines)) is not None:
        sentence += f" The best trivial forecast ({best[0]}) has {100 * best[1]:.3g} %."
    if diverged := divergence_sentence(evaluation.scores.divergences):
        sentence += f" {diverged}"
    return sentence + "".join(f" First warning: {one.words()}." for one in evaluation.scores.departures[:1])


def cards(evaluation: Evaluation, time_unit: str = "") -> list[tuple[str, str, str]]:
    """The main numbers: what, how much, remark."""
    means = evaluation.scores.means
    shown = [
        ("rollout error", number(means["rel_l2"]), f"relative l2, {len(evaluation.times)} frames"),
        ("one-step error", number(means.get("rel_l2_onestep")), "from true frames"),
    ]
    if (best := best_trivial(evaluation.baselines)) is not None:
        shown.append((f"error of {best[0]}", number(best[1]), "the best forecast that learns no dynamics"))
    if "skill" in means:
        shown.append(("skill", number(means["skill"]), "1 is perfect, 0 no better than that"))
    if "valid_time" in means:
        horizon = evaluation.times[-1] - evaluation.given_until
        remark = f"of {number(horizon)} {time_unit or 'time units'}: error below {100 * VALID:.0f} %"
        shown.append(("valid time", measured(number(means["valid_time"]), time_unit), remark))
    shown.append(("parameters", f"{evaluation.parameters:,}", evaluation.model))
    if evaluation.seconds is not None:
        shown.append(("time per forecast", f"{1000 * evaluation.seconds:.3g} ms", "measured, per trajectory"))
    if evaluation.break_even is not None:
        shown.append(("break-even", evaluation.break_even.result(), "with training and data, against the solver"))
    return shown


def metrics(evaluation: Evaluation, time_unit: str = "") -> dict[str, Any]:
    """Every metric, of the run and of its baselines: the arguments of the template's table."""
    table = metric_table(rows_of(evaluation), title="")
    grid = " x ".join(map(str, evaluation.points))
    return {
        "headings": table.headings,
        "rows": table.rows,
        "caption": f"{evaluation.trajectories} {evaluation.split} trajectories of {evaluation.dataset}, {grid} points"
        + (f"; no climatology: {evaluation.no_climatology}" if evaluation.no_climatology else ""),
        "notes": {key: labelled(what, time_unit) if key in TIMES else what for key, what in MEANINGS.items()},
    }


def band(scores: Scores) -> Band:
    """Error over time with its quartiles over trajectories."""
    lower, upper = scores.step_quartiles
    return Band(scores.step_errors, lower or scores.step_errors, upper or scores.step_errors)


def error_pictures(report: RunReport) -> list[Picture]:
    """Error over time, training curves, spectra."""
    evaluation = report.evaluation
    bands = {evaluation.name: band(evaluation.scores)}
    bands |= {name: band(scores) for name, scores in evaluation.baselines.items()}
    settings: dict[str, Any] = {"given_until": evaluation.given_until, "time_label": report.data.units.time_label}
    pictures = [
        picture(
            lambda: error_bands(evaluation.times, bands, **settings),
            "Relative error over time, with quartiles over trajectories",
            caption=BAND_CAPTION,
        )
    ]
    lines = [line for line in report.log if line.get("kind") == "epoch"]
    if lines:
        pictures.append(
            picture(
                lambda: loss_curves({evaluation.name: lines}),
                "Training loss and validation error over epochs",
                caption=f"Training loss, and rollout error on the validation data.{reading(lines)}",
            )
        )
    return pictures if no_spectrum(report.data) else [*pictures, spectrum(report)]


def reading(lines: Sequence[Mapping[str, Any]]) -> str:
    """How fast loader processes delivered frames and how long the training waited; nothing if all was in memory."""
    if not (read := [line for line in lines if "waited" in line]):
        return ""
    rate, waited = (statistics.median(line[name] for line in read) for name in ("read_mb_per_s", "waited"))
    return f" Frames were read at {rate:.4g} MB/s, and the training waited {waited:.0%} of the time (median epoch)."


def no_spectrum(data: Trajectories) -> str:
    """Why there is no picture of the energy by wavenumber; empty if there is one."""
    if data.mask is not None:
        return "No energy spectra: the domain has masked points."
    return data.geometry.no_spectrum([axis.periodic for axis in data.axes])


def spectrum(report: RunReport) -> Picture:
    """Energy of truth and forecast over wavenumber, at a few times, along the periodic axes."""
    seen, data = report.spectrum_examples, report.data
    periodic = [axis for axis in data.axes if axis.periodic]
    wavenumbers, true = mean_spectrum(seen.predicted_truth, data)
    _, predicted = mean_spectrum(seen.forecast.nan_to_num(0.0, 0.0, 0.0), data)
    energies = {"truth": true.numpy(), report.evaluation.name: predicted.numpy()}
    field, units = data.fields[0], data.units
    lengths = {units.axes.get(axis.name, "") for axis in periodic}
    walls = len(periodic) < len(data.axes)
    along = f" along {' and '.join(axis.name for axis in periodic)}, averaged over the other axes" if walls else ""
    words = {"time_unit": units.time, "length_unit": lengths.pop() if len(lengths) == 1 else ""}
    return picture(
        lambda: spectra(wavenumbers.numpy(), energies, times=seen.predicted_times, field=field, **words),
        "Energy spectra of truth and forecast",
        caption=f"Energy of {field} by wavenumber{along}, mean over {len(seen.indices)} trajectories.",
    )


def mean_spectrum(
    fields: Float[Tensor, "n s c *grid"], data: Trajectories
) -> tuple[Float[Tensor, " k"], Float[Tensor, "s k"]]:
    """Wavenumbers along the periodic axes, and the energy of the first field, mean over trajectories and other axes."""
    circles = [place for place, axis in enumerate(data.axes) if axis.periodic]
    walls = [place for place in range(len(data.axes)) if place not in circles]
    lines = fields.permute(0, *(3 + place for place in walls), 1, 2, *(3 + place for place in circles))
    found, energy = energy_spectrum(lines.flatten(0, len(walls)), spacing=[data.spacing[place] for place in circles])
    return found, energy[:, :, 0].mean(0)


def forecasts(report: RunReport) -> dict[str, Any]:
    """The player's numbers, and still images of the median trajectory; of a point cloud, images of the pressure."""
    seen, data = report.examples, report.data
    label = report.labels[seen.indices[0]]
    if data.geometry.has_wall:
        found = flow_pictures(data, seen.indices[0], seen.forecast[0, -1])
        return {"player": None, "stills": [picture(draw, f"{name}, {label}") for name, draw in found.items()]}

    def still(one: DrawnField) -> Picture:
        labels = one.labels.titled(f"{report.run.name}: {one.name}, {label}")
        draw = partial(still_picture, data, *one.values, times=seen.times, labels=labels)
        return picture(draw, labels.title, format="png")

    drawn = as_drawn(data, seen.truth[0].numpy(), seen.forecast[0].numpy())
    stills = [still(drawn[0]), *map(still, drawn[len(data.fields) :])]  # the first field, and of a box the vorticity
    return {"player": player_data(seen, data, report.labels), "stills": stills}
