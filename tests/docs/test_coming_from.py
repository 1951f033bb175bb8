"""The code of the pages under docs/coming-from runs beside the library it is about, in an environment of its own.

The environment sees our packages, too (a path file), so that pip finds this torch in place and brings no other.
"""

import os
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest
from tests.docs.test_pages import ROOT, blocks

PAGES = sorted(page for page in (ROOT / "docs" / "coming-from").glob("*.md") if page.stem != "index")
# Packages that would replace torch, or that ask for one of long ago, come without what they require.
ALONE = {
    "pdebench": ["--no-deps", "--ignore-requires-python", "pdebench==0.1.0"],
    "physicsnemo": ["--no-deps", "nvidia-physicsnemo==2.2.2", "tensordict", "torchvision==0.28.0", "timm==1.0.22"],
    "the-well": ["--no-deps", "the_well==1.2.0", "torchvision==0.28.0", "timm==1.0.22"],
}
OTHERS = {
    "apebench": ["apebench==0.1.1"],
    "neuraloperator": ["neuraloperator==2.0.0"],
    "pdebench": [],
    "physicsnemo": [
        "cftime",
        "gitpython",
        "hydra-core",
        "importlib-metadata",
        "nvtx",
        "onnx",
        "pandas",
        "psutil",
        "requests",
        "s3fs",
        "termcolor",
        "tqdm",
        "treelib",
        "warp-lang",
        "pyvers",
        "orjson",
        "cloudpickle",
        "xarray",
    ],
    "the-well": ["neuraloperator==2.0.0", "huggingface_hub", "pyyaml"],
}
# PyPI's torchvision is built for CUDA. Beside a torch for CPUs its operators are not there, and it cannot be imported
# until two of them have a signature; none is called here.
PREAMBLE = """
import torch

try:
    import torchvision
except ImportError:
    pass
except RuntimeError:
    import sys

    for name in [name for name in sys.modules if name.startswith("torchvision")]:
        del sys.modules[name]
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
assert torch.__version__.startswith("2.13.0"), torch.__version__
"""


def test_every_page_has_its_environment() -> None:
    assert {page.stem for page in PAGES} == OTHERS.keys()
    assert ALONE.keys() <= OTHERS.keys()


@pytest.mark.verify
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_the_page_runs(page: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    (ours,) = {path for path in sys.path if path.endswith("site-packages")}
    next((tmp_path / "venv").glob("lib/*/site-packages")).joinpath("ours.pth").write_text(ours)
    (tmp_path / "constraints.txt").write_text("torch==2.13.0\n")
    for packages in (OTHERS[page.stem], ALONE.get(page.stem, []), ["--no-deps", str(ROOT)]):
        if packages:
            command = [python, "-m", "pip", "install", "--quiet", "-c", tmp_path / "constraints.txt", *packages]
            subprocess.run(command, check=True, timeout=1800)
    program = "\n".join([textwrap.dedent(PREAMBLE), *(block for kind, block in blocks(page) if kind == "python")])
    (tmp_path / "page_of_this_test.py").write_text(program, encoding="utf-8")
    (tmp_path / "work").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [python, tmp_path / "page_of_this_test.py"],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
