"""The built wheel installs and imports in a clean environment."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ssno
from ssno.models.pretrained import FILES, bundled_folders
from ssno.report.template import ENVIRONMENT

ROOT = Path(__file__).parents[1]


@pytest.mark.verify
def test_the_wheel_installs_and_imports_in_a_clean_environment(tmp_path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run([str(word) for word in command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("ssno-*.whl")
    bundled = {f"ssno/pretrained/{name}/{file}" for name in bundled_folders() for file in FILES}
    templates = {f"ssno/report/templates/{name}" for name in ENVIRONMENT.list_templates()}
    engine = {"ssno/report/engine.c", "ssno/report/engine.wasm"}
    assert bundled | templates | engine | {"ssno/pretrained/README.md"} <= set(zipfile.ZipFile(wheel).namelist())
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "torch==2.13.0")
    run(python, "-m", "pip", "install", "--quiet", wheel)
    assert run(python, "-c", "import ssno; print(len(ssno.__all__))").strip() == str(len(ssno.__all__))
    assert "ssno train" in run(tmp_path / "venv" / "bin" / "ssno", "--help")
