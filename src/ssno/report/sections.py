"""The sections of a page, one function each: from numbers to HTML."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor

from ssno.base.formatting import number
from ssno.data.trajectories import Trajectories
from ssno.data.units import labelled, measured
from ssno.evaluation.evaluate import metric_sheet, rows_of
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.inspection import RunInspection, inspect_run
from ssno.evaluation.record import Evaluation
from ssno.forecasting.divergence import divergence_sentence
from ssno.forecasting.metrics import CORRELATED, VALID, energy_spectrum
from ssno.forecasting.scores import Scores
from ssno.plots.curves import Band, error_bands, loss_curves, spectra
from ssno.plots.foils import flow_pictures
from ssno.plots.forecasts import still_picture
from ssno.plots.modes import kernel_panels, memory_weights, mode_ridges
from ssno.plots.style import labels_of
from ssno.report.markup import cards, folded, picture, section, table, text
from ssno.report.player import player
from ssno.runs.open import RunFolder

# What a report is about: a run, how good it is, a few of its forecasts, and its inside.
#
# The trajectories to look at are not favourites: the best, the median and the worst of those that were scored.

SPECTRUM_TRAJECTORIES = 16


@dataclass(frozen=True)
class RunReport:
    """Everything about one run that goes onto the page.

    `record` are the lines of its metrics.jsonl, `elsewhere` the words of a command that name other data than its own.
    """

    run: RunFolder
    data: Trajectories
    evaluation: Evaluation
    examples: Examples
    labels: Mapping[int, str]
    many: Examples
    findings: RunInspection
    record: Sequence[Mapping[str, Any]]
    elsewhere: tuple[str, ...] = ()


def gather(
    run: RunFolder,
    data: Trajectories,
    evaluation: Evaluation,
    *,
    record: Sequence[Mapping[str, Any]] = (),
    elsewhere: tuple[str, ...] = (),
) -> RunReport:
    """Collect the contents; `data` are the trajectories that `evaluation` scored."""
    labels = typical(evaluation.scores.trajectory_errors)
    return RunReport(
        run=run,
        data=data,
        evaluation=evaluation,
        examples=make_examples(run.forecaster, data, list(labels)),
        labels=labels,
        many=make_examples(run.forecaster, data, range(min(SPECTRUM_TRAJECTORIES, len(data)))),
        findings=inspect_run(run),
        record=record,
        elsewhere=elsewhere,
    )


def typical(errors: Sequence[float]) -> dict[int, str]:
    """The median, the best and the worst trajectory, in this order, with what they are."""
    if not errors:
        raise ValueError("`errors` is empty: no trajectory was scored.")
    order = sorted(range(len(errors)), key=errors.__getitem__)
    chosen: dict[int, str] = {}
    for which, what in ((order[len(order) // 2], "median"), (order[0], "best"), (order[-1], "worst")):
        chosen.setdefault(which, what)
    return {which: f"{what}: number {which}, error {errors[which]:.3g}" for which, what in chosen.items()}


# The sections of a page, one function each: from numbers to HTML.

MEANINGS = {
    "parameters": "real numbers that were learned",
    "rel_l2": "error of the forecast: |difference| / |truth| over all predicted frames",
    "rel_l2_normalised": "the same in normalised units",
    "rel_l2_onestep": "error of single steps from true frames",
    "nrmse": "root mean square error over that of the truth",
    "vrmse": "root mean square error over the truth's standard deviation",
    "spectral_error/low": "error in the lowest third of wavenumbers",
    "spectral_error/mid": "error in the middle third",
    "spectral_error/high": "error in the highest third",
    "correlation_time": f"time until the correlation with the truth falls under {CORRELATED}",
    "valid_time": f"time until the error passes {100 * VALID:.0f} %",
    "mean_drift": "drift of the spatial mean",
    "energy_drift": "drift of the energy",
    "seconds": "seconds for one forecast",
}
TIMES = ("correlation_time", "valid_time")


def verdict(evaluation: Evaluation) -> str:
    """The result in a sentence or two, as text."""
    means, errors = evaluation.scores.means, sorted(evaluation.scores.trajectory_errors)
    error = means["rel_l2"]
    frames = len(evaluation.times)
    what = f"{evaluation.trajectories} {evaluation.split} trajectories of {evaluation.dataset}"
    if not math.isfinite(error):
        return f"At least one forecast of {frames} frames, over {what}, did not stay finite."
    low, high = errors[len(errors) // 4], errors[(3 * len(errors)) // 4]
    sentence = (
        f"Over {frames} predicted frames of {what}, {evaluation.name} is off by {100 * error:.3g} % on average; half "
        f"of the trajectories lie between {100 * low:.3g} % and {100 * high:.3g} %."
    )
    ratio = beats(evaluation)
    if ratio is not None:
        better = f"{ratio:.1f} times below" if ratio >= 1 else f"{1 / ratio:.1f} times above" if ratio else ""
        sentence += f" That is {better} persistence." if better else " The data stand still: persistence is exact."
    if diverged := divergence_sentence(evaluation.scores.divergences):
        sentence += f" {diverged}"
    return sentence + "".join(f" First sign of doubt: {one.words()}." for one in evaluation.scores.departures[:1])


def beats(evaluation: Evaluation) -> float | None:
    """By how much the error lies below that of persistence."""
    persistence = evaluation.baselines.get("persistence")
    error = evaluation.scores.means["rel_l2"]
    return persistence.means["rel_l2"] / error if persistence is not None and error else None


def numbers(evaluation: Evaluation, time_unit: str = "") -> str:
    """The verdict's numbers as cards."""
    means = evaluation.scores.means
    shown = [
        ("error of the forecast", number(means["rel_l2"]), f"relative l2, {len(evaluation.times)} frames"),
        ("error of one step", number(means.get("rel_l2_onestep")), "from true frames"),
    ]
    ratio = beats(evaluation)
    if ratio is not None and math.isfinite(ratio):
        shown.append(("against persistence", f"{ratio:.2g}\u00d7", "lower error" if ratio >= 1 else "higher error"))
    if "valid_time" in means:
        horizon = evaluation.times[-1] - evaluation.given_until
        shown.append(
            (
                "valid for",
                measured(number(means["valid_time"]), time_unit),
                f"of {number(horizon)} {time_unit or 'time units'}: error under {100 * VALID:.0f} %",
            )
        )
    shown.append(("parameters", f"{evaluation.parameters:,}", evaluation.model))
    if evaluation.seconds is not None:
        shown.append(("one forecast takes", f"{1000 * evaluation.seconds:.3g} ms", "measured, per trajectory"))
    return cards(shown)


def metrics(evaluation: Evaluation, time_unit: str = "") -> str:
    """Every metric, of the run and of what needs no learning."""
    meanings = {key: labelled(what, time_unit) if key in TIMES else what for key, what in MEANINGS.items()}
    sheet = metric_sheet(rows_of(evaluation), title="")
    grid = " x ".join(map(str, evaluation.points))
    caption = f"{evaluation.trajectories} {evaluation.split} trajectories of {evaluation.dataset}, {grid} points"
    return table(sheet.headings, sheet.rows, caption=caption, notes=meanings)


def band(scores: Scores) -> Band:
    """Error over time with its quartiles over trajectories."""
    lower, upper = scores.step_quartiles
    return Band(scores.step_errors, lower or scores.step_errors, upper or scores.step_errors)


def errors(report: RunReport) -> str:
    """Error over time, how it was learned, spectra."""
    evaluation = report.evaluation
    bands = {evaluation.name: band(evaluation.scores)}
    bands |= {name: band(scores) for name, scores in evaluation.baselines.items()}
    settings: dict[str, Any] = {"given_until": evaluation.given_until, "time_label": report.data.units.time_label}
    drawn = [
        picture(
            lambda: error_bands(evaluation.times, bands, **settings),
            "Relative error over time, with quartiles over trajectories",
            caption="Error of every predicted frame: mean, and the middle half of the trajectories.",
        )
    ]
    lines = [line for line in report.record if line.get("kind") == "epoch"]
    if lines:
        drawn.append(
            picture(
                lambda: loss_curves({evaluation.name: lines}),
                "Training loss and validation error over epochs",
                caption="How it was learned: loss on training data, error of forecasts of validation data.",
            )
        )
    why = no_spectrum(report.data)
    if not why:
        drawn.append(spectrum(report))
    return f'<div class="pictures">{"".join(drawn)}</div>' + (f'<p class="note">{text(why)}</p>' if why else "")


def no_spectrum(data: Trajectories) -> str:
    """Why there is no picture of the energy by wavenumber; nothing if there is one."""
    if data.mask is not None:
        return "No energy spectra: waves would run through masked points."
    return data.geometry.no_spectrum([axis.periodic for axis in data.axes])


def spectrum(report: RunReport) -> str:
    """Energy of truth and forecast over wavenumber, at a few times; along periodic axes, if others end at walls."""
    periodic = [axis for axis in report.data.axes if axis.periodic]
    wavenumbers, true = mean_spectrum(report.many.predicted_truth, report.data)
    _, made = mean_spectrum(report.many.forecast.nan_to_num(0.0, 0.0, 0.0), report.data)
    energies = {"truth": true.numpy(), report.evaluation.name: made.numpy()}
    field, units = report.data.fields[0], report.data.units
    lengths = {units.axes.get(axis.name, "") for axis in periodic}
    walls = len(periodic) < len(report.data.axes)
    along = f" along {' and '.join(axis.name for axis in periodic)}, mean over lines between the walls" if walls else ""
    words = {"time_unit": units.time, "length_unit": lengths.pop() if len(lengths) == 1 else ""}
    return picture(
        lambda: spectra(wavenumbers.numpy(), energies, times=report.many.predicted_times, field=field, **words),
        "Energy spectra of truth and forecast",
        caption=f"Energy of {field} by wavenumber{along}, mean over {len(report.many.indices)} trajectories.",
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


def forecasts(report: RunReport, identity: str) -> str:
    """The player, and a still picture of the median trajectory for paper; of a cloud, pictures of the pressure."""
    seen, data = report.examples, report.data
    if data.geometry.drawing == "flow":
        frames = data.read([seen.indices[0]])
        names = {"fields": data.fields, "context_fields": data.context_fields}
        found = flow_pictures(frames, seen.forecast[0, -1], **names)
        return "".join(picture(make, f"{name}, {report.labels[seen.indices[0]]}") for name, make in found.items())
    truth, made = seen.truth[0, :, 0].numpy(), seen.forecast[0, :, 0].numpy()
    title = f"{report.run.name}: {data.fields[0]}, {report.labels[seen.indices[0]]}"
    labels = labels_of(data).titled(title)
    still = picture(lambda: still_picture(data, truth, made, times=seen.times, labels=labels), title, format="png")
    hint = "Play, or drag the slider; arrow keys move it frame by frame. Colours are those of the truth."
    return f'<p class="note">{text(hint)}</p>{player(identity, seen, data, report.labels)}<h3>Still</h3>{still}'


def inside(found: RunInspection) -> str:
    """Damping, wavelengths, kernels and memory, learned against initial."""
    notes = "".join(f'<p class="note">{text(note)}</p>' for note in found.notes)
    drawn = []
    for axis in found.axes():
        now, before = found.along(axis)
        if axis == "time":
            words = "Weight of the last frames in the memory"
            drawn.append(picture(partial(memory_weights, now[0], before[0]), words))
            continue
        length = now[0].unit * now[0].kernel.shape[1]
        words = f"Damping, wavelength and decay length of the modes along {axis}"
        drawn.append(picture(partial(mode_ridges, now, before, length=length), words))
        words = f"Kernels of the layers along {axis}"
        drawn.append(picture(partial(kernel_panels, now, before), words))
    return notes + "".join(drawn) + (folded("All numbers", modes_table(found.rows())) if found.systems else "")


def modes_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row per layer, axis and direction: learned (initial)."""
    names = ("damping", "frequency", "decay_length", "reach_63", "reach_95")
    cells = [
        (
            str(row["layer"]) if not str(row["layer"]).isdigit() else f"layer {row['layer']}",
            f"{row['axis']} {row['direction']}",
            *(f"{_or_never(row[name])} ({_or_never(row[f'initial_{name}'])})" for name in names),
        )
        for row in rows
    ]
    headings = ("", "scan", "damping", "frequency", "decay length", "reach 63 %", "reach 95 %")
    return table(headings, cells, caption="learned (initial); lengths in the units of the axis")


def _or_never(value: float | None) -> str:
    return "never" if value is None else number(value)


def run_sections(report: RunReport, identity: str) -> str:
    """All sections of one run but those about where it comes from."""
    parts = [
        numbers(report.evaluation, report.data.units.time),
        section(
            f"{identity}-errors",
            "Errors",
            errors(report) + "<p></p>" + metrics(report.evaluation, report.data.units.time),
            level=3,
        ),
        section(f"{identity}-forecasts", "Forecasts", forecasts(report, f"{identity}-player"), level=3),
        section(f"{identity}-inside", "Inside the model", inside(report.findings), level=3),
    ]
    return "".join(parts)
