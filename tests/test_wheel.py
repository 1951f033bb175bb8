"""Wheel and sdist are built, and what they install works in a clean environment."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import ssno
from ssno.models.pretrained import FILES, bundled_folders
from ssno.report.template import ENVIRONMENT

ROOT = Path(__file__).parents[1]


@pytest.mark.verify
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_what_is_built_installs_and_works_in_a_clean_environment(kind: str, tmp_path: Path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run([str(word) for word in command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    built = tmp_path / "dist"
    python, command = tmp_path / "venv" / "bin" / "python", tmp_path / "venv" / "bin" / "ssno"
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(python, "-m", "pip", "install", "--quiet", "torch==2.13.0", "build")
    run(python, "-m", "build", f"--{kind}", "--outdir", built, ROOT)
    (file,) = built.iterdir()
    with zipfile.ZipFile(file) if kind == "wheel" else tarfile.open(file) as archive:
        names = archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames()
    inside = {name.rpartition("/src/")[2] for name in names}
    bundled = {f"ssno/pretrained/{name}/{part}" for name in bundled_folders() for part in FILES}
    templates = {f"ssno/report/templates/{name}" for name in ENVIRONMENT.list_templates()}
    engine = {"ssno/report/engine.c", "ssno/report/engine.wasm"}
    assert bundled | templates | engine | {"ssno/pretrained/README.md"} <= inside
    run(python, "-m", "pip", "install", "--quiet", file)
    assert run(python, "-c", "import ssno; print(len(ssno.__all__))").strip() == str(len(ssno.__all__))
    assert "ks-0.1-64" in run(command, "models")
    loaded = "from ssno import SSNO; print(sum(p.numel() for p in SSNO.from_pretrained('ks-0.1-64').parameters()))"
    assert run(python, "-c", loaded).strip() == "203649"
    run(command, "demo", "--tiny")
    run(command, "report", "demo/ss-no", "--data", "demo/data", "--resolution", "64", "--out", "page.html")
    assert {"forecast.png", "error.png", "results.json"} <= {path.name for path in (tmp_path / "demo").iterdir()}
    assert "<canvas" in (tmp_path / "page.html").read_text(encoding="utf-8")
