"""Every model of the registry as an ONNX file, periodic and walled, in 1D, 2D and on the sphere; and a C++ program."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from ssno.data.normalise import Normaliser, Normalisers
from ssno.export import export_run
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.layers.memory import MemoryOptions
from ssno.models.registry import CLOUD_MODELS, SLOW_MODELS, known_models, model_config
from ssno.runs.open import RunFolder, open_run

SOURCE = Path(__file__).parents[2] / "examples" / "aoti" / "main.cpp"
CASES = [
    ("ssno", (12,), {"boundary": "zero"}),
    ("ssno", (12,), {"boundary": "periodic"}),
    ("ssno", (12,), {"boundary": "dirichlet"}),
    ("ssno", (12,), {"boundary": "learned"}),
    ("ssno", (12, 8), {"boundary": ("periodic", "neumann")}),
    ("ssno", (4, 6, 4), {"boundary": "periodic"}),
    ("ssno", (12,), {"frames_as_channels": 3, "memory": MemoryOptions(0, d_state=8)}),
    ("ssno", (12,), {"memory": MemoryOptions(3, d_state=8, kernel="s4")}),
    ("ssno-uni", (12,), {}),
    ("ssno-vm", (8, 6), {}),
    ("ssno-ff", (8, 6), {}),
    ("ssno-product", (12,), {"boundary": "periodic"}),
    ("ssno-product", (12, 8), {"boundary": "neumann"}),
    ("ssno-warp", (12, 8), {"boundary": "periodic"}),
    ("ffno", (12,), {}),
    ("ffno", (12, 14), {}),
    ("fno", (13,), {}),
    ("fno", (12, 14), {}),
    ("fno-r", (12, 12), {}),
    ("unet", (32,), {}),
    ("unet", (32, 16), {}),
    ("cnext-unet", (32,), {}),
    ("gkt", (12,), {}),
    ("gkt", (12, 14), {}),
    ("factformer", (12,), {}),
    ("factformer", (12, 8), {}),
    ("persistence", (8,), {}),
    ("linear", (8, 8), {}),
    ("ssno-sphere", (12, 24), {}),
    ("ssno-sphere", (12, 24), {"scans": "great-circles"}),
    ("ssno-sphere-product", (12, 24), {}),
    ("ssno-sphere", (12, 24), {"learned_map": True, "colatitude": "zero"}),
    ("sfno", (16, 32), {}),
    ("sfno", (16, 32), {"memory": MemoryOptions(3, d_state=8)}),
]


def tiny_run(folder: Path, name: str, axes: int, options: dict) -> RunFolder:
    torch.manual_seed(0)
    config = model_config(f"{name}:tiny", n_dims=axes, in_channels=1, out_channels=1, **options)
    state = Normaliser("zscore", ("u",), (0.5,), (2.0,), (0.1,))
    units = Normalisers(state, Normaliser.identity(()))
    Forecaster(config.build(), normalisers=units, predict_increment=name != "linear").save(folder)
    return open_run(folder)


def test_every_model_is_exported_or_refused():
    refused = {*CLOUD_MODELS, *SLOW_MODELS}
    assert {name for name, *_ in CASES} | refused == set(known_models())


@pytest.mark.verify
@pytest.mark.parametrize(("name", "grid", "options"), CASES)
def test_every_model_agrees_with_pytorch_as_an_onnx_file(tmp_path, name, grid, options):
    run = tiny_run(tmp_path / "run", name, len(grid), options)
    made = export_run(run, tmp_path / "model.onnx", resolution=grid, batch="any")
    assert made.agreement.one_step < 1e-4
    proto = onnx.load(made.path)
    assert not {"DFT", "STFT", "Loop", "If", "Scan"} & {node.op_type for node in proto.graph.node}
    assert {node.domain for node in proto.graph.node} <= {""}


@pytest.mark.verify
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_program_in_cpp_forecasts_with_a_compiled_model(tmp_path):
    run = tiny_run(tmp_path / "run", "ssno", 2, {"boundary": "periodic"})
    made = export_run(run, tmp_path / "model.aoti.pt2", format="aoti", resolution=(12, 8))
    home = Path(torch.__file__).parent
    flags = [f"-I{home}/include", f"-I{home}/include/torch/csrc/api/include", f"-L{home}/lib", f"-Wl,-rpath,{home}/lib"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    libraries = ["-ltorch", "-ltorch_cpu", "-lc10"]
    program = tmp_path / "forecast"
    subprocess.run(["g++", "-std=c++20", abi, str(SOURCE), *flags, *libraries, "-o", str(program)], check=True)
    first = np.random.default_rng(0).normal(size=(1, 1, 12, 8)).astype(np.float32)
    words = [str(program), str(made.path), "5", "1", "12", "8"]
    found = subprocess.run(words, input=first.tobytes(), capture_output=True, check=True)
    expected = rollout(run.forecaster, torch.from_numpy(first)[:, None], 5)[0].numpy()
    np.testing.assert_allclose(
        np.frombuffer(found.stdout, np.float32).reshape(5, 1, 12, 8), expected, rtol=1e-3, atol=1e-4
    )
