"""What `import ssno` offers."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ssno


def test_every_public_name_is_there() -> None:
    for name in ssno.__all__:
        assert getattr(ssno, name) is not None
    assert set(ssno.HOME) | {"__version__"} == set(ssno.__all__)
    assert dir(ssno) == sorted(ssno.__all__)


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(AttributeError, match="module 'ssno' has no attribute 'SNO'; it offers SSNO"):
        _ = ssno.SNO


def test_the_package_runs_from_a_copy_of_its_source_that_was_never_installed(tmp_path: Path) -> None:
    shutil.copytree(Path(ssno.__file__).parent / "base", tmp_path / "ssno" / "base")
    shutil.copy(ssno.__file__, tmp_path / "ssno")
    alone = [sys.executable, "-S", "-c", "import ssno; print(ssno.__version__)"]  # -S: no installed packages
    done = subprocess.run(alone, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert done.stdout == "unknown\n", done.stderr
