"""Numbers that pages state are those stored, counted or defined in the code."""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from benchmarks.__main__ import BASELINE
from benchmarks.__main__ import main as run_benchmarks
from benchmarks.catalogue import catalogue, chosen
from benchmarks.rows import read
from benchmarks.tables import BEGIN, END, tables
from docs.scripts import any_grid

from ssno.base.device import SWITCH
from ssno.cli.main import VERBS
from ssno.cli.models import describe
from ssno.evaluation import BenchmarkCase, BenchmarkEntry, published_flops
from ssno.forecasting import rollout
from ssno.forecasting.cloud_scores import CLOUD_METRICS
from ssno.forecasting.scores import EVERY
from ssno.models.registry import ALL_MODELS, model_config
from ssno.report.play import BUILD
from ssno.training.checks import ALLOWED

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    """A page of docs; of the manual, if its name says no folder."""
    return (ROOT / "docs" / (name if "/" in name else f"manual/{name}")).with_suffix(".md").read_text(encoding="utf-8")


def stored(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_devices_lists_the_commands_switch_and_tolerances_of_the_code() -> None:
    listed = re.search(r"every command that computes \((.*?)\)", page("devices"), flags=re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == {"train", *(name for name, verb in VERBS.items() if verb.computes)}
    assert SWITCH in page("devices")
    assert (ALLOWED["losses"], ALLOWED["forecasts"], ALLOWED["gradients"]) == (1e-3, 1e-3, 1e-4)
    assert "losses and forecasts 1e-3, gradients 1e-4" in page("devices")


def test_evaluation_explains_every_metric() -> None:
    on_grids = [name for name in EVERY if name not in ("divergence", *CLOUD_METRICS)]
    for name in (*on_grids, "rel_l2_step", "spectral_error/low"):
        assert f"| `{name}" in page("metrics"), name
    assert "**diverges**" in page("metrics")


@pytest.mark.parametrize("name", list(ALL_MODELS))
def test_models_lists_every_model_with_its_size(name: str) -> None:
    row = describe(name)
    counts = [row[f"parameters_{n_dims}d"] for n_dims in (1, 2)]
    one, two = ("-" if count is None else f"{count:,}" for count in counts)
    assert f"| `{name}` | {one} | {two} | {row['past']} |" in page("models")


@pytest.mark.parametrize("name", ["unet", "gkt", "factformer", "ffno", "ssno"])
def test_cost_states_the_operations_that_are_counted(name: str) -> None:
    config = model_config(name).for_grid((32,))
    flops = BenchmarkEntry(config, BenchmarkCase("forward", (32,)), part=1).flops("plain")
    assert rf"| `{name}` | {flops.total / 1e9:.3f} \| {published_flops(config, 32) / 1e9:.3f} |" in page("design/cost")


def test_performance_shows_the_stored_rows() -> None:
    shown = page("design/performance-tables").split(BEGIN)[1].split(END)[0]
    assert shown.strip() == tables(read(BASELINE)).strip(), (
        "run `python -m benchmarks --page docs/design/performance-tables.md`"
    )


@pytest.mark.parametrize(
    "command", re.findall(r"^(?:\S+=\S+ )?python -m benchmarks\b(.*)", page("design/performance"), re.MULTILINE)
)
def test_performance_names_options_and_entries_that_exist(command: str) -> None:
    words = command.partition("#")[0].split()
    known = run_benchmarks.__doc__ or ""
    assert all(word.removeprefix("--").replace("list", "list_names") in known for word in words if word[:2] == "--")
    assert chosen(catalogue(), [word for word in words if re.fullmatch(r"[\w-]+", word) and word[:2] != "--"])


@pytest.mark.parametrize("case", ["public", "vortical"])
def test_sphere_shows_the_stored_rules(case: str) -> None:
    title = {"public": "public, t = |", "vortical": "eddies, t = |"}[case]
    table = page("design/sphere").split(title)[1].split("\n\n")[0]
    for name in ("persistence", "equivariant-linear", "zonal-linear"):
        row = next(line for line in table.splitlines() if line.startswith(f"| {name}"))
        shown = [float(cell.strip(" *")) for cell in row.strip("|").split("|")[1:-1]]
        assert shown == pytest.approx(stored("sphere-rules")[case][name]["rel_l2_area"], rel=1e-2)


def test_other_resolutions_show_the_stored_errors_of_both_transfers() -> None:
    """And the script that measures them still makes a forecaster of each: they agree on the grid of training only."""
    assert f"{any_grid.BEGIN}\n{any_grid.table()}\n{any_grid.END}" in page("any-grid"), any_grid.__doc__
    spectrum, resample = map(any_grid.with_transfer, any_grid.TRANSFERS)
    for points, same in ((any_grid.LEARNED, True), (2 * any_grid.LEARNED, False)):
        frames = torch.randn(1, 4, 1, points, generator=torch.Generator().manual_seed(0))
        spacing = (any_grid.LEARNED / points,)
        one, other = (rollout(each, frames, 1, spacing=spacing) for each in (spectrum, resample))
        assert torch.equal(one, other) == same


def test_training_shows_every_mode_of_unrolling() -> None:
    shown = "".join(re.findall(r"^ssno train (ks .*)$", page("unrolling"), flags=re.MULTILINE))
    assert all(
        f"--train.unroll.{name}" in shown
        for name in ("teacher-forcing", "frames", "truncate", "gradient-checkpointing", "pushforward")
    )


def test_training_states_the_stored_memory() -> None:
    rows = stored("memory")["rows"]
    assert all(0.8 < row["ratio"] < 1.2 for row in rows)
    lines = [line for line in page("unrolling").splitlines() if "MiB" in line]
    for row in rows:
        if (row["model"], row["grid"], row["batch"], row["frames"]) == ("ssno", [64], 16, 24):
            line = next(line for line in lines if line.startswith(f"| {row['mode']} |"))
            assert f"| {row['measured_bytes'] / 2**20:.0f} MiB |" in line


def test_training_states_the_stored_cost_of_compilation() -> None:
    milliseconds = {name: round(found["median"]) for name, found in stored("compile")["ms"].items()}
    assert f"a step then takes {milliseconds['compiled']} ms, against {milliseconds['torch']}" in page("optimisers")
    assert f"{milliseconds['fused']} with the native one" in page("optimisers")


def test_own_networks_states_what_was_measured() -> None:
    rows = stored("own-networks")["rows"]
    for layer in dict.fromkeys(row["layer"] for row in rows):
        errors = [row["rel_l2_onestep"] for row in rows if row["layer"] == layer]
        assert re.search(rf"^\| .*\| \**{sum(errors) / len(errors):.3f}\** \|$", page("own-networks"), re.MULTILINE), (
            layer
        )
    assert stored("own-networks")["steps"] == 800


def test_play_states_the_stored_speeds_and_the_command_of_the_code() -> None:
    for row in stored("play")["pages"]:
        alone, whole = row["model_frames_per_second"]["per_core"], row["page_frames_per_second"]
        told = f"| {row['name']} | {row['bytes'] / 1024:.0f} KiB | {row['error_after_50_steps']:.0e} | "
        assert told + f"{alone:.0f} frames/s | {whole:.0f} frames/s |" in page("play")
    assert shlex.join(BUILD) in page("play")
    assert len(page("play").splitlines()) <= 80
