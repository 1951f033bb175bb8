"""The page of `ssno play` without a browser: what is in it, and which runs it refuses."""

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.models.registry import model_config
from ssno.report.play import BUILD, ENGINE, describe_page, make_play, model_weights
from ssno.runs.log import Silent
from ssno.runs.open import open_run
from ssno.training.train import train

HOSTILE = "<img src=x onerror=alert(1)>"


def trained(
    folder: Path,
    model: str = "ssno:tiny",
    *,
    points: int = 64,
    field: str = "u",
    n_dims: int = 1,
    periodic: bool = True,
    change: Callable[[nn.Module], None] | None = None,
    **fields: Any,
) -> Path:
    """A run of a small model on waves, as started from Python: its config does not describe its data."""
    axes = (1,) * n_dims
    phase = np.random.default_rng(0).uniform(0, 6, (8, 1, 1, *axes)) + 0.3 * np.arange(6).reshape(-1, 1, *axes)
    x = np.stack(np.meshgrid(*[np.arange(points) / points] * n_dims, indexing="ij")).sum(0)
    array = np.sin(2 * np.pi * x - phase).astype(np.float32)
    data = Trajectories.from_array(array, lengths=[64.0] * n_dims, fields=[field], dt=0.1)
    torch.manual_seed(0)
    built = model_config(model, n_dims=n_dims, in_channels=1, out_channels=1, **fields)
    made = (built.recommended(periodic=True) if periodic else built).build()
    if change is not None:
        change(made)
    train(made, data, folder=folder, epochs=1, batch_size=4, reporter=Silent())
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("play") / "run")


def page_of(html: str) -> dict:
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', html, flags=re.S)[1])


def test_the_command_writes_one_page_that_fetches_nothing(run, tmp_path, capsys) -> None:
    main(["play", str(run), "-o", str(tmp_path / "play.html"), "--dataset", "ks", "--viscosity", "0.1"])
    assert "Open it in any browser" in capsys.readouterr().out
    html = (tmp_path / "play.html").read_text()
    assert "default-src 'none'" in html
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", html)
    assert "http://" not in html
    assert "https://" not in html
    assert page_of(html)["viscosity"] == 0.1


def test_an_earlier_page_is_replaced_and_another_file_is_not(run, tmp_path, capsys) -> None:
    command = ["play", str(run), "-o", str(tmp_path / "play.html"), "--dataset", "ks", "--viscosity", "0.1", "--json"]
    main(command)
    capsys.readouterr()
    main(command)
    assert json.loads(capsys.readouterr().out)["bytes"] > 50_000
    (tmp_path / "play.html").write_text("mine")
    with pytest.raises(SystemExit):
        main(command)
    assert (tmp_path / "play.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "equation", "grid"), [("burgers-64", "burgers", [64]), ("ks-attractor-64", "ks", [64])]
)
def test_a_bundled_checkpoint_needs_no_other_words(name, equation, grid) -> None:
    page = describe_page(open_run(name))
    assert (page["equation"], page["grid"], page["name"]) == (equation, grid, name)
    assert page["samples_from"].startswith(("our solver", "test data"))
    assert page["input_frames"] == 4
    assert len(base64.b64decode(page["samples"][0])) == 4 * 64


def test_the_frames_of_burgers_are_those_of_the_literature() -> None:
    page = describe_page(open_run("burgers-64"))
    assert page["dt"] == pytest.approx(0.07)
    assert page["trained_frames"] == 20


def test_weights_are_as_many_as_the_sizes_say(run) -> None:
    sizes, weights = model_weights(open_run(run).forecaster.model, (64,))
    h, blocks, wide = sizes["h"], sizes["before"] + sizes["after"], sizes["head"]
    scans = blocks * (2 * h * 64 + 4 * h * h + 4 * h)
    memory = h * sizes["window"] + 2 * h * h + 2 * h
    assert len(weights) == h * sizes["inputs"] + h + scans + memory + wide * h + wide + wide + 1


@pytest.mark.parametrize(("model", "heads"), [("ssno-product:tiny", 0), ("ssno-warp:tiny", 4)])
@pytest.mark.parametrize("n_dims", [1, 2])
def test_weights_of_products_and_warps_are_as_many_as_the_sizes_say(model, heads, n_dims) -> None:
    built = model_config(model, n_dims=n_dims, in_channels=1, out_channels=1).recommended(periodic=True).build()
    sizes, weights = model_weights(built, (32,) * n_dims)
    h, wide = sizes["h"], sizes["head"]
    assert (sizes["product"], sizes["heads"]) == (1, heads)
    carried = 2 * h * h + h + heads * n_dims * (h + 1) if heads else 0
    block = n_dims * h * 32 + 2 * h * h + 2 * h + carried  # one kernel per axis, for both directions
    memory = h * sizes["window"] + 2 * h * h + 2 * h
    others = h * sizes["inputs"] + h + wide * h + wide + wide + 1
    assert len(weights) == (sizes["before"] + sizes["after"]) * block + memory + others


def test_names_from_files_are_text(tmp_path) -> None:
    folder = trained(tmp_path / HOSTILE.replace("/", ""), field=HOSTILE)
    path = make_play(open_run(folder), tmp_path / "play.html", dataset="ks", viscosity=0.1)
    assert "<img" not in path.read_text()
    assert page_of(path.read_text())["field"] == HOSTILE


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ("ffno:tiny", {}, "is a ffno"),
        ("ssno-uni:tiny", {}, "is an ssno-uni"),
        ("ssno:tiny", {"periodic": False}, "has the boundary 'zero'"),
    ],
)
def test_other_models_are_refused_with_what_is_supported(tmp_path, model, options, told) -> None:
    opened = open_run(trained(tmp_path / "run", model, **options))
    with pytest.raises(
        ValueError, match=rf"{told}.*ssno, ssno-product and ssno-warp .*ks-0.1-64, burgers-64 and torus-li-64"
    ):
        describe_page(opened, dataset="ks", viscosity=0.1)


def test_a_bundled_checkpoint_with_context_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="has 3 input and 1 output fields"):
        describe_page(open_run("torus-vis-force-64"))


def test_a_run_without_an_equation_asks_for_one(run) -> None:
    with pytest.raises(ValueError, match="Supported datasets: ks, ks-attractor, burgers, torus-li.*--dataset"):
        describe_page(open_run(run), dataset="heat")
    with pytest.raises(ValueError, match="does not record the viscosity.*--viscosity"):
        describe_page(open_run(run), dataset="ks")
    with pytest.raises(ValueError, match="does not record a grid that fits the dataset 'torus-li'"):
        describe_page(open_run(run), dataset="torus-li")


def test_a_grid_that_is_no_power_of_two_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"grid of \(48,\) points; the page needs a power of two"):
        describe_page(open_run(trained(tmp_path / "run", points=48)), dataset="ks", viscosity=0.1)


@pytest.mark.verify
def test_the_documented_command_builds_the_same_engine(tmp_path) -> None:
    if shutil.which(BUILD[0]) is None or shutil.which("wasm-ld") is None:
        pytest.fail("No clang with wasm-ld found. Install them: apt-get install clang lld")
    shutil.copy(ENGINE.with_suffix(".c"), tmp_path)
    subprocess.run(BUILD, cwd=tmp_path, check=True)
    version = subprocess.run([BUILD[0], "--version"], capture_output=True, text=True).stdout
    if "version 14." in version:  # the compiler of the committed file; another one orders instructions differently
        assert (tmp_path / "engine.wasm").read_bytes() == ENGINE.read_bytes()
    assert (tmp_path / "engine.wasm").read_bytes()[:4] == b"\0asm"
