"""A run as a folder for others: weights, config.json, a model card and a licence, as the Hugging Face Hub has them.

    publish_run(open_run("runs/ks-ssno"), Path("ks-ssno"), licence="MIT")

The folder is a model folder (`ssno.models.pretrained`): `load_forecaster("ks-ssno")` reads it. Paths of this machine
stay here: of files that the run names only their last part is written. Names from files are escaped in the card.
"""

import math
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import Any

from ssno.base.formatting import number, printable
from ssno.evaluation.evaluate import evaluate, metric_table, rows_of
from ssno.evaluation.record import Evaluation
from ssno.evaluation.trivial import TRIVIAL
from ssno.forecasting.metrics import VALID
from ssno.models.hub import check_repository
from ssno.models.pretrained import FILES, ReportedMetrics, reported_metrics
from ssno.report.make import stored
from ssno.report.page import summary
from ssno.report.provenance import data_command
from ssno.report.template import ENVIRONMENT, made_by
from ssno.runs.load import run_folder_of
from ssno.runs.log import read_log
from ssno.runs.open import LICENCE, RunFolder

CARD, LICENCE_FILE = "README.md", "LICENSE"
PUBLISHED = (*FILES, CARD, LICENCE_FILE)
MARKDOWN = re.compile(r"[\\`*_{}\[\]<>|#~&!$]")
LOCAL = re.compile(r"[/~\\]|[A-Za-z]:[\\/]")
"""How the path of a file on somebody's disk begins."""


class Verbatim(str):
    """Text for a block of code, where Markdown needs no escapes."""


def as_markdown(value: Any) -> str:
    """Any text as one line that Markdown shows as it is."""
    return value if isinstance(value, Verbatim) else MARKDOWN.sub(r"\\\g<0>", printable(str(value)))


PLAIN = ENVIRONMENT.overlay(autoescape=False, finalize=as_markdown)
PLAIN.filters["number"] = number
PLAIN.filters["unit"] = lambda name, units: units.field_label(name)
PLAIN.filters["code"] = lambda value: Verbatim(printable(str(value)).replace("`", "'"))


def publish_run(run: RunFolder, out: Path, *, licence: str | None = None, repository: str | None = None) -> Path:
    """Write the folder `out`, complete or not at all, and return it. A run without an evaluation is evaluated first.

    `licence` is an SPDX name; by default what the config says, as that of bundled checkpoints does. `repository` is
    where the card says that the model is found.
    """
    if repository is not None:
        check_repository(repository)
    chosen = licence or run.licence
    if not LICENCE.fullmatch(chosen):
        raise ValueError(
            f"`licence` must be an SPDX name such as MIT or CC-BY-4.0, got {chosen!r}. Pass --licence: you decide what "
            "others may do with your weights."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} exists already. Choose another folder, or remove it.")
    evaluation = stored(run) or evaluate(run)
    if not math.isfinite(evaluation.scores.means["rel_l2"]):
        raise ValueError(f"Forecasts of {run.name} do not stay finite on test data; such a model is not published.")
    address = f"hf://{repository}" if repository else out.name
    card = model_card(run, evaluation, address=address, licence=chosen, repository=repository)
    licence_text = PLAIN.get_template("licence.txt").render(licence=chosen, run=run, year=datetime.now(UTC).year)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".") as staging:
        made = Path(staging) / "made"
        run.forecaster.save(made, **public_sections(run, evaluation, chosen))
        (made / CARD).write_text(card)
        (made / LICENCE_FILE).write_text(licence_text + "\n")
        made.rename(out)
    return out


def public_sections(run: RunFolder, evaluation: Evaluation, licence: str) -> dict[str, Any]:
    """What config.json says beside model and units: the run, its data and errors, without paths of this machine."""
    known: dict[str, Any] = {
        name: without_paths(run.config[name]) for name in ("run", "data", "provenance") if name in run.config
    }
    errors = reported(evaluation, str(without_paths(evaluation.dataset)))
    return {**known, "licence": licence, "stated": {key: value for key, value in vars(errors).items() if value}}


def without_paths(value: Any, key: str = "") -> Any:
    """Nested values; of a path, which begins with a root or stands where files are named, only the last part."""
    if isinstance(value, str):
        path = LOCAL.match(value) or (key in ("name", "path", "start_from") and "/" in value)
        return PureWindowsPath(value).name if path else value  # which knows both kinds of slashes
    if isinstance(value, dict):
        return {name: without_paths(inner, name) for name, inner in value.items()}
    return [without_paths(inner) for inner in value] if isinstance(value, list | tuple) else value


def reported(evaluation: Evaluation, dataset: str) -> ReportedMetrics:
    """The errors to report; for spheres and point clouds more than rel_l2."""
    means = evaluation.scores.means
    own = ("rel_l2_normalised",) if len(evaluation.fields) > 1 else ()
    more = {name: means[name] for name in (*own, "lift_abs", "lift_rank") if name in means}
    return ReportedMetrics(
        dataset=dataset,
        split=evaluation.split,
        points=evaluation.points[0],
        trajectories=evaluation.trajectories,
        rel_l2=means["rel_l2"],
        rel_l2_onestep=means["rel_l2_onestep"],
        **more,
    )


def model_card(
    run: RunFolder,
    evaluation: Evaluation,
    *,
    address: str,
    licence: str,
    repository: str | None = None,
    lead: str = "",
    remarks: Sequence[str] = (),
) -> str:
    """The card of a published folder, or of a bundled checkpoint on the site; its sentences are in templates/card.md.

    `lead` is Markdown before the first section, `remarks` are further lines on where the model fails.
    """
    config: Any = getattr(run.forecaster.model, "config", None)
    epochs = [line["rel_l2"] for line in read_log(run_folder_of(run.folder)) if line.get("rel_l2") is not None]
    errors = sorted(evaluation.scores.trajectory_errors)
    quartiles = [errors[min(place * len(errors) // 4, len(errors) - 1)] for place in range(5)]
    normal = run.forecaster.normalisers.state
    described = run.config.get("run") or {}
    card = PLAIN.get_template("card.md").render(
        **made_by(),
        run=run,
        evaluation=evaluation,
        address=address,
        licence=licence,
        repository=repository,
        lead=Verbatim(lead),
        remarks=[Verbatim(line) for line in remarks],
        dataset=without_paths(evaluation.dataset, "name"),
        result=summary(evaluation),
        boundary=", ".join(config.boundaries()) if hasattr(config, "boundaries") else None,
        generate=None if run.data is None or run.data.path else data_command(run),
        train=described.get("train") or {},
        start_from=without_paths(described.get("start_from"), "start_from"),
        versions=run.config.get("provenance") or {},
        valid_error=min(epochs, default=None),
        reported=reported_metrics(run.config),
        table=metric_table(rows_of(evaluation), title=""),
        spread=dict(zip(("best", "first quartile", "median", "third quartile", "worst"), quartiles, strict=True)),
        beaten=beaten_from(evaluation),
        normalised=list(zip(normal.fields, normal.shift, normal.scale, strict=True)),
        tolerance=f"{VALID:.0%}",
    )
    return f"{card}\n"


def beaten_from(evaluation: Evaluation) -> int | None:
    """The first scored step, from 1, at which a trivial forecast has a smaller mean error; None if there is none."""
    trivial = [scores.step_errors for name, scores in evaluation.baselines.items() if name in TRIVIAL]
    steps = enumerate(zip(evaluation.scores.step_errors, *trivial, strict=True), start=1)
    return next((step for step, (own, *others) in steps if min(others, default=own) < own), None)
