"""`ssno export` and `ssno predict model.onnx`: the file computes what PyTorch does, or there is no file."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from ssno.cli.main import main
from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.normalise import Normaliser, Normalisers
from ssno.data.windows import Window
from ssno.export import ExportMismatch, ForecastStep, check, export_run, open_exported, write
from ssno.export.real import RealStep
from ssno.export.write import require_onnx
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.models.pretrained import bundled_folders
from ssno.models.registry import model_config
from ssno.runs.open import open_run

GRID = (12, 8)
STEPS = {"burgers-64": 0.07, "ce-rm-64": 0.2, "ks-0.1-64": 0.1, "kt-foil": 1, "swe-32": 3600, "torus-li-64": 1}
STEPS |= {"torus-vis-force-64": 1, "ks-attractor-64": 0.1, "box-32": 0.2}


def forecaster_of(name: str = "ssno", *, axes: int = 1, context: tuple[str, ...] = (), **options) -> Forecaster:
    torch.manual_seed(0)
    mask = options.pop("mask", None)
    method = options.pop("method", "zscore")
    config = model_config(f"{name}:tiny", n_dims=axes, in_channels=1 + len(context), out_channels=1, **options)
    known = Normaliser("zscore", context, (0.0,) * len(context), (1.0,) * len(context), (0.0,) * len(context))
    return Forecaster(
        config.build(),
        normalisers=Normalisers(Normaliser(method, ("u",), (0.5,), (2.0,), (0.1,)), known),
        predict_increment=True,
        window=Window(size=4),
        spacing=(0.25,) * axes,
        mask=mask,
    ).eval()


def saved(folder: Path, forecaster: Forecaster) -> Path:
    forecaster.save(folder)
    return folder


@pytest.fixture(scope="module")
def walled(tmp_path_factory) -> Path:
    """A run in a channel, periodic along one axis, with a forcing and a mask."""
    channel = forecaster_of(axes=2, boundary=("periodic", "neumann"), context=("force", "mask"), mask="mask")
    return saved(tmp_path_factory.mktemp("runs") / "walled", channel)


@pytest.fixture(scope="module")
def exported(walled) -> Path:
    path = walled.parent / "walled.onnx"
    main(["export", str(walled), "--resolution", "12", "8", "--batch", "any", "-o", str(path)])
    return path


def array_file(path: Path, *, points: tuple[int, ...] = GRID, fields: int = 3) -> Path:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 6, fields, *points)).astype(np.float32)
    if fields > 2:
        values[:, :, 2] = 0
        values[:, :, 2, :3, :2] = 1
    np.save(path, values)
    return path


def predict_words(model: Path, data: Path, output: Path) -> list[str]:
    lengths = ["--lengths", "3", "2", "--axes", "n t c x y", "--dt", "0.5"]
    steps = ["--input-frames", "4", "--steps", "2"]
    named = ["--fields", "u", "force", "mask", "--context", "force", "mask", "--mask", "mask", "--periodic", "x"]
    return ["predict", str(model), "--input", str(data), *lengths, *named, "--output", str(output), *steps]


def test_an_onnx_file_has_ordinary_operations_and_real_numbers(exported):
    proto = onnx.load(exported)
    onnx.checker.check_model(proto)
    assert {node.domain for node in proto.graph.node} == {""}
    assert not {"DFT", "STFT", "Loop", "If", "Scan"} & {node.op_type for node in proto.graph.node}
    assert {one.data_type for one in proto.graph.initializer} <= {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}
    assert [one.name for one in proto.graph.input] == ["frame", "buffer"]


def test_the_metadata_describe_the_model(exported):
    found = {one.key: json.loads(one.value) for one in onnx.load(exported).metadata_props}
    assert found["model"] == "ssno"
    assert found["fields"] == ["u"]
    assert found["context_fields"] == ["force", "mask"]
    assert found["grid"] == [12, 8]
    assert found["spacing"] == [0.25, 0.25]
    assert found["boundary"] == ["periodic", "neumann"]
    assert found["normalisation"]["state"]["scale"] == [2.0]
    assert found["batch"] == "any"
    assert found["buffer"] == [3, 16, 12, 8, "any"]
    wanted = {"name", "units", "axes", "dt", "licence", "commit", "ssno_version", "opset", "steps", "input_frames"}
    assert wanted <= set(found)


def test_predict_with_an_onnx_file_equals_predict_with_the_run(exported, walled, tmp_path):
    data = array_file(tmp_path / "now.npy")
    made = []
    for model in (exported, walled):
        output = tmp_path / f"{model.stem}{model.suffix}.h5"
        main(predict_words(model, data, output))
        made.append(load_dataset(output, "all").read(slice(None)).state)
    torch.testing.assert_close(made[0], made[1], rtol=1e-4, atol=1e-5)
    assert made[0].shape == (3, 2, 1, *GRID)


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("0", "0")])
def test_the_telemetry_of_onnx_runtime_is_off_unless_asked_for(monkeypatch, before, after):
    """Version 1.31 keeps a database in the cache folder and can upload it; strace sees neither with this variable."""
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if before is not None:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", before)
    require_onnx()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == after


def test_other_grids_and_other_fields_are_refused(exported, tmp_path, capsys):
    for data in (array_file(tmp_path / "a.npy", points=(24, 8)), array_file(tmp_path / "b.npy", fields=2)):
        with pytest.raises(SystemExit, match="2"):
            main(predict_words(exported, data, tmp_path / "out.h5"))
        assert not (tmp_path / "out.h5").exists()
    told = " ".join(capsys.readouterr().err.split())
    assert "exported for a grid of 12 x 8 points, got 24 x 8 points" in told
    assert "again with --resolution 24 8, or read the data with --resolution 12 8." in told
    run = open_exported(exported)
    with pytest.raises(DataError, match=r"again with --resolution 6 8\.$"):  # coarser data have no 12 points
        run.forecaster.model.start(torch.zeros(1, 2, 3, 6, 8))
    with pytest.raises(DataError, match="the same points at another spacing"):
        rollout(run.forecaster, torch.randn(1, 4, 1, *GRID), 1, context=torch.zeros(1, 6, 2, *GRID), spacing=(1.0, 1.0))


def test_hostile_files_are_refused_in_our_own_words(exported, tmp_path):
    good = onnx.load(exported)
    path = tmp_path / "bad.onnx"

    def refused(data: bytes, match: str) -> None:
        path.write_bytes(data)
        with pytest.raises(DataError, match=match):
            open_exported(path)

    refused(exported.read_bytes()[:-5000], "damaged or not an ONNX model")
    refused(b"\0" * 100, "damaged|was not written")
    outside = onnx.ModelProto.FromString(good.SerializeToString())
    weight = outside.graph.initializer[0]
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../etc/passwd")
    refused(outside.SerializeToString(), "keeps its weights in other files, which are not opened")
    own = onnx.ModelProto.FromString(good.SerializeToString())
    own.graph.node[0].domain = "evil"
    refused(own.SerializeToString(), "has operations of its own")
    unknown = onnx.ModelProto.FromString(good.SerializeToString())
    del unknown.metadata_props[:]
    refused(unknown.SerializeToString(), "was not written by `ssno export`")
    for one in good.metadata_props:
        if one.key == "grid":
            one.value = "[12, 9]"
    refused(good.SerializeToString(), "its metadata do not fit its step")


def test_several_steps_in_one_call_as_a_torch_program(tmp_path):
    run = open_run(saved(tmp_path / "run", forecaster_of(boundary="periodic")))
    made = export_run(run, tmp_path / "two.pt2", format="torch", resolution=(8,), steps=2)
    assert made.agreement.steps == 50
    assert made.agreement.one_step < 1e-5
    step = torch.export.load(made.path).module()
    first = torch.randn(1, 1, 8)
    frames, _, buffer = step(first, torch.zeros(3, 16, 8, 1))
    expected = rollout(run.forecaster, first[:, None], 2)
    torch.testing.assert_close(frames, expected, rtol=1e-4, atol=1e-5)
    assert buffer[-1].any()
    assert not buffer[:-1].any()


@pytest.mark.parametrize("case", [("fno", (12, 14))])
def test_real_arithmetic_equals_fourier_transforms(case):
    name, grid = case
    step = ForecastStep(forecaster_of(name, axes=len(grid)), grid=grid, spacing=None).eval().requires_grad_(False)
    frame, buffer = torch.randn(2, 1, *grid), step.empty_buffer(2)
    with write._quiet():
        real = RealStep(torch.export.export(step, (frame, buffer)))
    for found, wanted in zip(real(frame, buffer), step(frame, buffer), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_long_axes_share_the_matrix_of_a_transform(monkeypatch):
    step = ForecastStep(forecaster_of(boundary="neumann"), grid=(10,), spacing=None)
    monkeypatch.setattr("ssno.export.step.LARGEST_MATRICES", 0)
    other = ForecastStep(forecaster_of(boundary="neumann"), grid=(10,), spacing=None)
    assert other.weights.blocks[0][0].matrix.is_complex()
    frame, buffer = torch.randn(1, 1, 10), step.empty_buffer(1)
    for found, wanted in zip(other(frame, buffer), step(frame, buffer), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.fixture
def stubbed(monkeypatch):
    """Exports without tracing: the file is a word, its step is the module times a factor."""
    factor, made = [1.0], []

    def runner(path: Path) -> check.StepFunction:
        plain = write._of_tensors(made[0])
        return lambda frame, buffer: [factor[0] * one for one in plain(frame, buffer)]

    def trace(step, **_):
        made[:] = [step]

    monkeypatch.setattr(write, "traced_step", trace)
    monkeypatch.setattr(check, "CHECKED_STEPS", 5)
    monkeypatch.setitem(write.WRITERS, "torch", lambda program, path, *_: path.write_text("step"))
    monkeypatch.setitem(write.RUNNERS, "torch", runner)
    return factor


def test_nothing_is_written_if_the_file_differs_from_pytorch(stubbed, tmp_path):
    run = open_run(saved(tmp_path / "run", forecaster_of()))
    export_run(run, tmp_path / "good.pt2", format="torch", resolution=(8,))
    assert (tmp_path / "good.pt2").read_text() == "step"
    for factor in (1.001, float("nan")):
        stubbed[0] = factor
        with pytest.raises(ExportMismatch, match=r"differs from PyTorch's by .* Nothing was written"):
            export_run(run, tmp_path / "bad.pt2", format="torch", resolution=(8,))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.pt2", "run"]


def test_steps_after_a_divergence_are_not_compared(stubbed, tmp_path, monkeypatch):
    run = open_run(saved(tmp_path / "run", forecaster_of()))
    steps = torch.tensor([check.NEVER])
    monkeypatch.setattr(check, "divergence_step", lambda *_: steps)
    for diverged, compared in ((check.NEVER, 5), (3, 3)):
        steps[0] = diverged
        made = export_run(run, tmp_path / f"{compared}.pt2", format="torch", resolution=(8,))
        assert made.agreement.steps == compared
    steps[0] = 0
    with pytest.raises(ExportMismatch, match="own first step diverges in PyTorch"):
        export_run(run, tmp_path / "none.pt2", format="torch", resolution=(8,))


def test_an_existing_file_is_replaced_only_when_asked(stubbed, tmp_path):
    run = open_run(saved(tmp_path / "run", forecaster_of("linear")))
    path = tmp_path / "model.pt2"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="--overwrite"):
        export_run(run, path, format="torch", resolution=(8,))
    assert path.read_text() == "mine"
    export_run(run, path, format="torch", resolution=(8,), overwrite=True)
    assert path.read_text() == "step"
    with pytest.raises(IsADirectoryError, match="is a folder"):
        export_run(run, tmp_path, format="torch", resolution=(8,))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "`resolution` is needed: .* does not record the grid"),
        ({"resolution": (8, 8)}, r"`resolution` must have 1 or 1 positive numbers for this model, got \(8, 8\)"),
        ({"resolution": (8,), "steps": 0}, "`steps`"),
        ({"resolution": (8,), "batch": 0}, "`batch`"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, match):
    run = open_run(saved(tmp_path / "run", forecaster_of()))
    with pytest.raises(ValueError, match=match):
        export_run(run, tmp_path / "model.pt2", **{"format": "torch", **options})
    assert not (tmp_path / "model.pt2").exists()


@pytest.mark.parametrize(
    ("forecaster", "resolution", "match"),
    [
        (lambda: forecaster_of("ssno-selective"), 8, "'ssno-selective' cannot be exported: a scan has no kernel"),
        (lambda: forecaster_of(method="per_sample_minmax"), 8, "'per_sample_minmax' depends on all input frames"),
        (lambda: forecaster_of("unet"), 12, "the U-Net halves it"),
        (lambda: forecaster_of("fno"), 8, "which need at least 12 points"),
        (lambda: forecaster_of("transolver", context=("x", "y")), 8, "'transolver' cannot be exported: only models"),
    ],
)
def test_models_that_cannot_be_exported_are_named_with_the_reason(tmp_path, forecaster, resolution, match):
    run = open_run(saved(tmp_path / "run", forecaster()))
    with pytest.raises(ValueError, match=match):
        export_run(run, tmp_path / "model.pt2", format="torch", resolution=(resolution,))


def test_the_bundled_model_is_exported_on_grids_that_it_works_on():
    run = open_run("ks-0.1-64")
    assert write.grid_for(run, None) == ((64,), (1.0,))
    assert write.grid_for(run, (128,)) == ((128,), (0.5,))
    with pytest.raises(ValueError, match="on 96 points this model forecasts on 128"):
        write.grid_for(run, (96,))
    assert write.grid_for(open_run("torus-li-64"), (128,))[0] == (128, 128)


@pytest.mark.parametrize("name", bundled_folders())
def test_bundled_checkpoints_say_what_they_were_trained_on(name):
    run = open_run(name)
    described = run.config["data"]["train"]
    assert run.licence == "MIT"
    assert run.grid is not None
    assert run.time_step == pytest.approx(STEPS[name])
    assert run.config["stated"]["dataset"].startswith(described["name"])
    assert tuple(described["fields"]) == run.forecaster.normalisers.state.fields
    assert tuple(described["spacing"]) == run.forecaster.spacing
    assert described["shape"][1] == run.forecaster.envelope.frames
    units = {"geopotential": "m2 s-2", "vorticity": "s-1", "divergence": "s-1"} if name == "swe-32" else {}
    assert (run.trained_on.units.fields, run.trained_on.units.time) == (units, "s" if units else "")


@pytest.mark.parametrize("words", [["--format", "tflite"], ["--resolution", "96"]])
def test_the_command_refuses_unknown_formats_and_grids(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["export", "ks-0.1-64", *words])
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_a_batch_that_is_no_number(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["export", "ks-0.1-64", "--batch", "many"])
    assert "`batch` must be a number of trajectories, or any, got 'many'" in capsys.readouterr().err
