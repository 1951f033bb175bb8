"""Model cards of the bundled checkpoints, and the pages of `ssno report` about them.

The card is the one of `ssno publish` (`ssno.report.publish.model_card`). What it and the report show is measured when
the pages are made, on the first `TESTED` test trajectories: they are generated (they are the same in every dataset of
that plan), forecast, and forecast far beyond the training.
"""

import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from docs.scripts.pages.datasets import metric_of
from docs.scripts.pages.markdown import GENERATED, draw_once, page_link, source_digest, write_page

from ssno.base import byte_size
from ssno.cli.models import describe_checkpoint
from ssno.data import Trajectories, build_plan, generate
from ssno.data.datasets import DATASETS, generate_command
from ssno.evaluation import Evaluation, evaluate, read_evaluation
from ssno.evaluation.record import write_evaluation
from ssno.forecasting import divergence_step, rollout
from ssno.forecasting.divergence import largest_values
from ssno.models import bundled_folders, known_models
from ssno.plots import error_bands, save
from ssno.report.page import band, build_page, gather
from ssno.report.publish import model_card
from ssno.runs import RunFolder, open_run, reported_metrics

TESTED = 4
LONGER = 5
"""Long forecasts have this many times the steps of training trajectories."""


def checkpoint_page(name: str, folder: Path) -> Path:
    """Write the card of a bundled checkpoint, its report and its picture."""
    run, row = open_run(name), describe_checkpoint(bundled_folders()[name])
    evaluation, far = measured(run, folder)
    dataset, path = dataset_name(run), folder / f"{name}.md"
    steady = len(evaluation.times) == 1
    lead = [
        GENERATED,
        f"Bundled with the package ({byte_size(row['bytes'])}). Model [{row['model']}](../models/{row['model']}.md), "
        f"dataset [{dataset}](../datasets/{dataset}.md). [Its report](../reports/{name}.html), a page as `ssno report` "
        f"makes it: forecasts to play, spectra, learned kernels. "
        f"{page_link('How checkpoints are made and checked', 'checkpoints.md', near=path)}.\n",
        *([] if steady else [f"![Error of {name} over time, beside trivial forecasts]({name}.png)\n"]),
        f"```bash\n{usage(name, run)}\n```",
    ]
    card = model_card(
        run,
        evaluation,
        address=name,
        licence=run.licence,
        lead="\n".join(lead),
        remarks=[far] if far else ["Shapes outside the training range were not tested."] * steady,
    )
    return write_page(path, card)


def dataset_name(run: RunFolder) -> str:
    """The dataset of the registry that the checkpoint was trained on."""
    assert run.data is not None
    return run.data.name


def usage(name: str, run: RunFolder) -> str:
    """Commands with this checkpoint."""
    assert run.data is not None
    options = {} if run.data.viscosity is None else {"viscosity": run.data.viscosity}
    make = generate_command(run.data.name, run.data.preset, **options)
    return f"{make}    # the data below\nssno evaluate {name}\nssno rollout {name} --trajectories 0 1"


def measured(run: RunFolder, folder: Path) -> tuple[Evaluation, str]:
    """The evaluation and words on long forecasts; they and the report are made once for every checkpoint and code."""
    report = folder.parent / "reports" / f"{run.name}.html"
    scores, words = (report.parent / ".drawn" / f"{run.name}.{kind}" for kind in ("evaluation.json", "words.json"))
    weights = b"".join(file.read_bytes() for file in sorted(run.folder.glob("*")))
    code = source_digest("pde", "data", "forecasting", "evaluation", "models", "layers", "ssm", "report", "plots")

    def make(path: Path) -> None:
        data = first_trajectories(run)
        evaluation = replace(evaluate(run, data, write=False), seconds=None)  # measured beside other work
        write_evaluation(evaluation, scores)
        words.write_text(json.dumps(far_forecasts(run, data)))
        path.write_text(build_page([gather(run, data, evaluation)]), encoding="utf-8")

    draw_once(report, f"{hashlib.sha256(weights).hexdigest()} {code} {Path(__file__).read_text()}", make)
    evaluation = read_evaluation(scores)
    if len(evaluation.times) > 1:
        draw_once(folder / f"{run.name}.png", scores.read_text(), lambda target: draw(evaluation, target))
    return evaluation, json.loads(words.read_text())


def first_trajectories(run: RunFolder) -> Trajectories:
    """The first test trajectories of the data that the checkpoint reports its error on."""
    options, stated = run.data, reported_metrics(run.config)
    assert options is not None
    assert stated is not None, f"{run.name} does not state its error"
    chosen = {} if options.viscosity is None else {"viscosity": options.viscosity}
    with tempfile.TemporaryDirectory() as place:
        counts = {"train": 0, "valid": 0, "test": TESTED}
        plan = build_plan(options.name, options.preset, counts=counts, **chosen)  # type: ignore[arg-type]
        generate(plan, Path(place) / stated.dataset, jobs=1)
        where = str(Path(place) / stated.dataset)
        data = replace(options, path=where, viscosity=None, train=None, valid=None).load("test")
        return replace(data.in_memory(), name=stated.dataset)


def far_forecasts(run: RunFolder, data: Trajectories) -> str:
    """When forecasts far beyond the training trajectories diverge; nothing for steady flows and with context fields."""
    if data.geometry.is_steady or data.context_fields:
        return ""
    plan, frames = run.forecaster.window.plan(len(data.times)), data.read(range(2)).state
    steps = LONGER * len(plan.predicted)
    made = rollout(run.forecaster, frames[:, : len(plan.input_frames)], steps)
    gone = [step + 1 for step in divergence_step(made, largest_values(frames)).tolist() if step >= 0]
    size = made.flatten(2).square().mean(2).sqrt() / frames.flatten(1).square().mean(1).sqrt()[:, None]
    told = f"Forecasts of {steps} steps ({LONGER} times as many), two trajectories: "
    if gone:
        return f"{told}{len(gone)} diverged, first at step {min(gone)}."
    sizes = ", ".join(f"{float(value):.2g}" for value in size[:, -1])
    return f"{told}none diverged; root mean square at the end relative to the test frames: {sizes}."


def draw(evaluation: Evaluation, path: Path) -> None:
    """Error over time of the checkpoint and of trivial forecasts, with quartiles over trajectories."""
    bands = {evaluation.name: band(evaluation.scores)}
    bands |= {name: band(scores) for name, scores in evaluation.baselines.items()}
    title = f"error of forecasts, mean and quartiles of {evaluation.trajectories} test trajectories"
    save(error_bands(evaluation.times, bands, title=title), path)


def checkpoint_rows() -> list[tuple[str, str, str, str, str]]:
    """Name, model, data, reported error and report of every checkpoint."""
    rows = []
    for name, folder in bundled_folders().items():
        row = describe_checkpoint(folder)
        stated = row["reported"] or {}
        assert row["model"] in known_models()
        card, report = f"[{name}](checkpoints/{name}.md)", f"[report](reports/{name}.html)"
        metric = metric_of(dataset_name(open_run(name)))
        rows.append((card, report, row["model"], stated["dataset"], f"{stated.get(metric, stated['rel_l2']):.3g}"))
    return rows


def all_checkpoints() -> tuple[str, ...]:
    """Their names."""
    assert all(open_run(name).data is not None for name in bundled_folders())
    assert all(dataset_name(open_run(name)) in DATASETS for name in bundled_folders())
    return tuple(bundled_folders())
