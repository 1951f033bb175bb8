"""`ssno data generate NAME`: make a dataset. Every option of a problem is a flag of its name.

    ssno data generate ks --viscosity 0.075 --preset paper --dry-run

The flags of each dataset are derived from the fields of its problem; a flag that is not given takes the preset's
value.
"""

import dataclasses
import inspect
import json as json_format
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_type_hints

import tyro
from rich.table import Table

from ssno.base import cost_words, duration
from ssno.base.terminal import Console
from ssno.cli.options import parse_part, progress
from ssno.data.datasets import DATASETS, PRESETS, Plan, Preset, build_plan, build_problem, folder_name
from ssno.data.generation import GenerationReport
from ssno.data.generation import generate as generate_dataset
from ssno.data.solve_shards import GenerationCost, GenerationFailed

INTERRUPTED = 130


Count = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: by the preset)")]
Best = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: what suits the machine)")]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What may be asked of every dataset."""

    preset: Preset = "paper"
    """How large: `tiny` takes seconds, `small` minutes, `paper` is the published size."""
    train: Count = None
    """Training trajectories."""
    valid: Count = None
    """Validation trajectories."""
    test: Count = None
    """Test trajectories."""
    seed: int = 0
    """Another seed gives other trajectories."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="(default: ./data/NAME-PRESET)")] = (
        None
    )
    """Folder to write. An interrupted generation in it is continued."""
    jobs: Best = None
    """Worker processes, single-threaded; by default one per core where that is faster."""
    batch: Best = None
    """Trajectories solved at once. Changes the speed, not the numbers."""
    per_shard: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: by size)")] = None
    """Trajectories per file."""
    shard: str = "1/1"
    """i/n makes the i-th of n parts, for job arrays. The last job to finish writes the manifest."""
    dry_run: bool = False
    """Estimate time, memory and disk, and write nothing."""
    json: bool = False
    """Print the result as JSON."""


SHOWN = {"points": "resolution"}
"""What flags call options of problems."""


def request_type(name: str) -> type[Request]:
    """`Request` plus one optional flag for every option of the dataset's problem."""
    problem = DATASETS[name].problem
    hints, help_texts = get_type_hints(problem), option_help(problem)
    flags = []
    for option in dataclasses.fields(problem):  # type: ignore[arg-type]
        values = {preset: getattr(build_problem(name, preset), option.name) for preset in reversed(PRESETS)}
        others = {preset: value for preset, value in values.items() if value != values["paper"]}
        hint = "".join(
            [f"(default: {values['paper']}", *(f"; {preset}: {value}" for preset, value in others.items()), ")"]
        )
        optional: Any = hints[option.name] | None
        shown = tyro.conf.arg(name=SHOWN.get(option.name), help=help_texts.get(option.name), help_behavior_hint=hint)
        annotation: Any = Annotated[optional, shown]
        flags.append((option.name, annotation, dataclasses.field(default=None)))
    return dataclasses.make_dataclass(f"Request{problem.__name__}", flags, bases=(Request,), frozen=True, kw_only=True)


def option_help(problem: type) -> dict[str, str]:
    """What the comments behind the fields of a problem say, its base classes' where it has none."""
    found: dict[str, str] = {}
    for kind in reversed(problem.__mro__[:-1]):
        try:
            lines = inspect.getsource(kind)
        except (OSError, TypeError):  # made in a session: there is no file to read
            continue
        for option, text in re.findall(r"^    (\w+): .*  # (.+)$", lines, flags=re.MULTILINE):
            found[option] = f"{text[0].upper()}{text[1:]}."
    return found


REQUESTS: Mapping[str, type[Request]] = {name: request_type(name) for name in DATASETS}
if TYPE_CHECKING:
    AnyRequest = Request
else:
    AnyRequest = Union[  # noqa: UP007 (its members are computed)
        tuple(
            Annotated[REQUESTS[name], tyro.conf.subcommand(name, description=dataset.summary)]
            for name, dataset in DATASETS.items()
        )
    ]


def generate(request: Annotated[AnyRequest, tyro.conf.arg(name="")]) -> None:
    """Generate a dataset, or continue one that was interrupted."""
    name = next(name for name, kind in REQUESTS.items() if type(request) is kind)
    plan, preset = plan_of(name, request), request.preset
    folder = Path("data") / folder_name(plan.problem, preset) if request.out is None else request.out
    notes = Console(stderr=True)

    def announce(cost: GenerationCost) -> None:
        if not request.dry_run:
            notes.print(f"{folder}: {describe(cost)}", highlight=False, soft_wrap=True)

    try:
        with progress(folder.name, console=notes) as advance:
            outcome = generate_dataset(
                plan,
                folder,
                jobs=request.jobs,
                batch=request.batch,
                part=parse_part(request.shard),
                dry_run=request.dry_run,
                announce=announce,
                report=advance,
            )
    except GenerationFailed as error:
        raise SystemExit(f"ssno: {error}") from error
    except KeyboardInterrupt:
        notes.print("Interrupted. Finished files are kept: run the same command again to continue.")
        raise SystemExit(INTERRUPTED) from None
    if request.json:
        print(json_format.dumps(as_json(outcome, dry_run=request.dry_run), indent=1))
    else:
        Console().print(as_table(outcome, dry_run=request.dry_run))


def plan_of(name: str, request: Request) -> Plan:
    """The plan that a parsed command line asks for."""
    given = {option.name: getattr(request, option.name) for option in dataclasses.fields(DATASETS[name].problem)}  # type: ignore[arg-type]
    counts = {split: getattr(request, split) for split in ("train", "valid", "test")}
    return build_plan(
        name,
        request.preset,
        counts={split: count for split, count in counts.items() if count is not None},  # type: ignore[misc]
        seed=request.seed,
        per_shard=request.per_shard,
        **{option: value for option, value in given.items() if value is not None},
    )


def describe(cost: GenerationCost) -> str:
    """A forecast in a line."""
    if not cost.shards:
        return "nothing left to generate."
    return (
        f"{cost.trajectories} trajectories in {cost.shards} files, with {cost.jobs} process(es) "
        f"{cost_words(cost.seconds, cost.memory_bytes, cost.disk_bytes)}."
    )


def as_json(outcome: GenerationReport, *, dry_run: bool) -> dict[str, Any]:
    """The result for programs."""
    counted = {name: getattr(outcome, name) for name in ("made", "kept", "missing", "complete", "seconds")}
    return {"folder": str(outcome.folder), "dry_run": dry_run, "forecast": asdict(outcome.forecast), **counted}


def as_table(outcome: GenerationReport, *, dry_run: bool) -> Table:
    """The result for people."""
    table = Table(title=f"{outcome.folder}{' (dry run: nothing written)' if dry_run else ''}", show_header=False)
    cost = outcome.forecast
    rows = {"forecast": describe(cost)} if dry_run else {"time": duration(outcome.seconds)}
    rows |= {"files made": str(outcome.made), "files kept": str(outcome.kept)}
    if outcome.complete:
        rows["state"] = f"complete; check it with `ssno data verify {outcome.folder}`"
    else:
        rows["state"] = f"{outcome.missing} files are missing; the same command without `--shard` makes them"
    for row in rows.items():
        table.add_row(*row)
    return table
