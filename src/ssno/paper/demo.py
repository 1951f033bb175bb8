"""The whole story in minutes: generate data, train, compare, look.

Kuramoto-Sivashinsky with viscosity 0.1, seen on 64 of its 512 grid points: from 4 frames forecast the other 22. A small
SS-NO and an FFNO learn from the same trajectories for the same number of epochs; both are compared with forecasts that
need no learning, on the training grid and on one twice as fine.
"""

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from ssno.base import provenance, write_json
from ssno.base.terminal import Console
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import load_dataset
from ssno.data.trajectories import Trajectories
from ssno.evaluation.evaluate import ScoreRow, as_table, compare
from ssno.evaluation.trivial import trivial_forecasters
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.config import OperatorConfig
from ssno.models.operator import count_parameters
from ssno.models.ssno import SSNOConfig
from ssno.paper.tables_1d import RATES
from ssno.plots.curves import Band, error_bands, loss_curves
from ssno.plots.fields import forecast_panels
from ssno.plots.style import labels_of, save
from ssno.runs.log import Reporter, read_log
from ssno.training.train import train

Progress = Callable[[float, float], None]


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Sizes that fit into minutes on two cores."""

    viscosity: float = 0.1
    trajectories: int = 512
    held_out: int = 64
    points: int = 64
    finer_points: int = 128
    epochs: int = 24
    hidden_channels: int = 32
    d_state: int = 32

    @staticmethod
    def tiny() -> "Demo":
        """Sizes that fit into seconds."""
        return Demo(trajectories=8, held_out=4, epochs=1, hidden_channels=8, d_state=8)

    def models(self) -> dict[str, OperatorConfig]:
        """The trained models; the recipe sets both up for a periodic equation."""
        small = SSNOConfig(hidden_channels=self.hidden_channels, d_state=self.d_state, head_channels=128)
        fourier = FFNOConfig(hidden_channels=self.hidden_channels, n_modes=self.points // 2)
        return {"SS-NO": small, "FFNO": fourier}


def run_demo(
    demo: Demo, folder: Path, *, console: Console, progress: Progress, reporter: Callable[[], Reporter]
) -> dict[str, Any]:
    """Run everything, write pictures and numbers to `folder`, and return the numbers."""
    began = time.monotonic()

    def say(title: str) -> None:
        console.rule(Text.assemble((title, "bold"), f"  ({time.monotonic() - began:.0f} s)"), align="left")

    say(f"1  generate {demo.trajectories} trajectories of Kuramoto-Sivashinsky")
    train_data, valid, test, finer = make_data(demo, folder, progress)

    forecasters, records = {}, {}
    for number, (name, config) in enumerate(demo.models().items(), start=2):
        say(f"{number}  train {name}, {count_parameters(config.build()):,} parameters")
        run = folder / name.lower()
        forecasters[name] = train(
            config,
            train_data,
            valid=valid,
            epochs=demo.epochs,
            learning_rate=RATES[name],
            evaluate_every=max(1, demo.epochs // 6),
            folder=run,
            overwrite=True,
            reporter=reporter(),
        )
        records[name] = read_log(run)

    say("4  compare on trajectories that no model has seen")
    everyone = {**forecasters, **trivial_forecasters(train_data, forecasters["SS-NO"].window)}
    rows = compare(everyone, test)
    console.print(as_table(rows, title=f"forecasts of {len(test)} trajectories, {demo.points} points"))
    fine_rows = compare(everyone, finer)
    console.print(as_table(fine_rows, title=f"the same models on {demo.finer_points} points, without new training"))

    say("5  draw")
    pictures = draw(forecasters, rows, test, records, folder)
    numbers = {
        "demo": asdict(demo),
        "models": {name: forecaster.describe()["config"] for name, forecaster in forecasters.items()},
        f"errors at {demo.points} points": {row.name: row.scores.means for row in rows},
        f"errors at {demo.finer_points} points": {row.name: row.scores.means for row in fine_rows},
        "seconds": time.monotonic() - began,
        "provenance": provenance(),
    }
    write_json(folder / "results.json", numbers)
    conclude(rows, console)
    console.print(f"Pictures: {', '.join(map(str, pictures))}. Numbers: {folder / 'results.json'}.", soft_wrap=True)
    command = ["ssno", "play", str(folder / "ss-no"), "-o", str(folder / "play.html")]
    command += ["--dataset", "ks", "--viscosity", f"{demo.viscosity:g}"]
    console.print(f"A page on which the SS-NO runs in your browser: {shlex.join(command)}", soft_wrap=True)
    return numbers


def make_data(demo: Demo, folder: Path, progress: Progress) -> tuple[Trajectories, ...]:
    """Training, validation and test trajectories on the coarse grid, and the test ones on a finer grid."""
    counts = {"train": demo.trajectories, "valid": demo.held_out // 2, "test": demo.held_out}
    plan = build_plan("ks", "small", counts=counts, viscosity=demo.viscosity)  # type: ignore[arg-type]
    generate(plan, folder / "data", jobs=os.cpu_count(), report=progress)
    coarse = [load_dataset(folder / "data", split, resolution=demo.points) for split in ("train", "valid", "test")]
    return (*coarse, load_dataset(folder / "data", "test", resolution=demo.finer_points))


def draw(
    forecasters: dict[str, Forecaster], rows: list[ScoreRow], test: Trajectories, records: dict[str, Any], folder: Path
) -> list[Path]:
    """Loss curves, error along the forecast, and one trajectory in space and time."""
    forecaster = forecasters["SS-NO"]
    plan = forecaster.window.plan(len(test.times))
    # A trajectory of typical difficulty: the median error, not a favourite.
    errors = next(row for row in rows if row.name == "SS-NO").scores.trajectory_errors
    typical = sorted(range(len(errors)), key=errors.__getitem__)[len(errors) // 2]
    truth = test.read([typical]).state
    forecast = rollout(forecaster, truth[:, : plan.input_frames.stop], len(plan.predicted), spacing=test.spacing)
    times = test.times.tolist()
    panels = forecast_panels(
        truth[0, :, 0].numpy(),
        forecast[0, :, 0].numpy(),
        times=times,
        length=test.axes[0].length,
        labels=labels_of(test).titled(
            f"SS-NO on an unseen trajectory (the median of {len(errors)}): relative error {errors[typical]:.2f}"
        ),
    )
    bands = {row.name: Band(*(row.scores.step_errors,) * 3) for row in rows}
    return [
        save(panels, folder / "forecast.png"),
        save(
            error_bands(times[plan.scored.start :], bands, given_until=times[plan.input_frames.stop - 1]),
            folder / "error.png",
        ),
        save(loss_curves(records), folder / "loss.png"),
    ]


def conclude(rows: list[ScoreRow], console: Console) -> None:
    """By how much SS-NO beats what needs no learning."""
    error = {row.name: row.scores.means["rel_l2"] for row in rows}
    for name in ("persistence", "linear"):
        console.print(
            f"Over the whole forecast SS-NO's error is {error[name] / error['SS-NO']:.1f} times below {name}'s."
        )
