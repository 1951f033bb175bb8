"""Forecasts for docs/design/fluids.md:  python docs/scripts/fluid_forecasts.py  (minutes; needs ./data and ./runs).

For every dataset an animation of truth, forecast and difference of the median test trajectory, by a bundled checkpoint
or, where there is none, by SS-NO of the 2D table (`ssno reproduce navier-stokes`, `euler`). With `--spectra`, for
TorusLi: spectra of rollouts five times as long as what training saw, beside those of the solver.
"""

from pathlib import Path

import numpy as np
import torch
import tyro

from ssno.base.json_io import to_text
from ssno.base.provenance import provenance
from ssno.data.datasets import build_problem
from ssno.evaluation.examples import Examples, make_examples
from ssno.forecasting.metrics import energy_spectrum
from ssno.forecasting.rollout import rollout
from ssno.models.pretrained import ROOT as BUNDLED
from ssno.paper.tables_2d import EULER, NAVIER_STOKES
from ssno.plots.animation import AnimationOptions, animate
from ssno.plots.curves import spectra
from ssno.plots.style import labels_of, save
from ssno.runs.open import RunFolder, open_run

PROJECT = Path(__file__).parents[2]
IMAGES, RESULTS = PROJECT / "docs" / "images", PROJECT / "results"
RUNS = Path("runs/reproduce/cpu/runs")
SHIPPED = {"torus-li": "torus-li-64", "torus-vis-force": "torus-vis-force-64", "ce-rm": "ce-rm-64"}
DATASETS = ("torus-li", "torus-vis", "torus-vis-force", "ce-rm", "gce-rt")
LONGER, SOLVED = 5, 8
RUNAWAY = 10
"""Times the energy of the truth from which a forecast counts as diverged."""


def of_the_table(dataset: str, label: str) -> Path:
    """The run of the 2D table's first seed."""
    trials = (*NAVIER_STOKES.runs(), *EULER.runs())
    return next(RUNS / trial.name for trial in trials if (trial.label, trial.run.data.name) == (label, dataset))


def median(run: RunFolder) -> tuple[Examples, float]:
    """The test trajectory whose error is the median one, and that error."""
    data = run.load("test")
    seen = make_examples(run.forecaster, data, range(len(data)))
    errors = (seen.forecast - seen.predicted_truth).flatten(1).norm(dim=1) / seen.predicted_truth.flatten(1).norm(dim=1)
    index = int(errors.argsort()[len(errors) // 2])
    return make_examples(run.forecaster, data, [index]), float(errors[index])


def draw(dataset: str) -> None:
    """One animation."""
    name = SHIPPED.get(dataset, "")
    run = open_run(name if name and (BUNDLED / name).is_dir() else of_the_table(dataset, "SS-NO"))
    seen, error = median(run)
    truth, forecast = (values[:, 0] for values in seen.drawn(0))
    data = run.load("test")
    path = animate(
        truth[seen.input_frames :],
        forecast,
        IMAGES / f"forecast-{dataset}.gif",
        times=seen.predicted_times,
        lengths=[axis.length for axis in data.axes],
        labels=labels_of(data).titled(f"SS-NO: {data.fields[0]}, error {error:.3g}"),
        errors=seen.step_errors()[0].tolist(),
        options=AnimationOptions(width=720, fps=4, format="gif"),
    )
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, trajectory {seen.indices[0]}, rel_l2 {error:.3g}", flush=True)


def compare_spectra() -> None:
    """TorusLi to five times the last frame of training: energy by wavenumber of the solver, of SS-NO and of FFNO."""
    usual = build_problem("torus-li", "small")
    problem = build_problem("torus-li", "small", frames=LONGER * usual.frames)
    drawn = [problem.draw(np.random.default_rng((2026, number))) for number in range(SOLVED)]
    runs = {label: open_run(of_the_table("torus-li", label)) for label in ("SS-NO", "FFNO")}
    options = runs["SS-NO"].load("test")
    points = options.axes[0].points
    truth = problem.solve(drawn).state[..., :: problem.points // points, :: problem.points // points]
    frames = torch.from_numpy(np.ascontiguousarray(truth)).float()
    energies = {}
    for label, run in runs.items():
        given = run.forecaster.window.size
        forecast = rollout(run.forecaster, frames[:, :given], frames.shape[1] - given, spacing=options.spacing)
        energies[label] = torch.cat([frames[:, :given], forecast], dim=1)
    found, totals = {}, {}
    for label, fields in {"truth": frames, **energies}.items():
        wavenumbers, energy = energy_spectrum(fields, spacing=options.spacing)
        found[label], totals[label] = energy[:, :, 0].median(0).values.numpy(), energy[:, :, 0].sum(-1).numpy()
    times = [float(problem.first_time + problem.frame_interval * frame) for frame in range(frames.shape[1])]
    shown = [usual.frames - 1, 3 * usual.frames - 1, LONGER * usual.frames - 1]
    figure = spectra(
        wavenumbers.numpy(),
        {label: energy[shown] for label, energy in found.items()},
        times=[times[frame] for frame in shown],
        field="vorticity",
    )
    save(figure, IMAGES / "fluids-long-spectra.png")
    thirds = np.array_split(np.arange(1, len(wavenumbers)), 3)
    rows = [
        {
            "time": times[frame],
            "model": label,
            "ran_away": int((~(totals[label][:, frame] < RUNAWAY * totals["truth"][:, frame])).sum()),
            **{
                f"energy_ratio_{band}": float(found[label][frame, third].sum() / found["truth"][frame, third].sum())
                for band, third in zip(("low", "mid", "high"), thirds, strict=True)
            },
        }
        for frame in shown
        for label in energies
    ]
    about = (
        f"TorusLi, {points} x {points} points, {SOLVED} trajectories rolled out {LONGER} times as far as training "
        "data reach: median energy of forecasts over that of the solver in the lower, middle and upper third of shells,"
        f" and how many forecasts have more than {RUNAWAY} times the energy of the truth."
    )
    document = {"about": about, "rows": rows, "provenance": provenance()}
    (RESULTS / "long-spectra.json").write_text(to_text(document, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print({key: value if isinstance(value, str) else round(value, 3) for key, value in row.items()})


def main(names: tyro.conf.Positional[tuple[str, ...]] = DATASETS, *, spectra: bool = False) -> None:
    """Draw forecasts of some datasets, or compare long spectra."""
    if spectra:
        compare_spectra()
        return
    for name in names:
        draw(name)


if __name__ == "__main__":
    tyro.cli(main)
