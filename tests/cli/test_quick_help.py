"""Help comes without the import of torch, and says the same as with it."""

import json
import subprocess
import sys

from ssno.cli.main import VERBS

ASKED = [*(name.split() for name in VERBS), ["train", "--model", "ffno"], ["train", "--recipe", "paper"]]
ALL = """
import contextlib, io, json, sys
from ssno.cli.main import main
found = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        main([*words, "--help"])
    found.append(text.getvalue())
loaded = [name for name in ("torch", "scipy", "matplotlib") if hasattr(sys.modules.get(name), "__file__")]
print(json.dumps([found, loaded]))
"""


def help_of_all(program: str) -> tuple[list[str], list[str]]:
    """The help of every command in a process of its own, and which large libraries that imported."""
    call = [sys.executable, "-c", program, json.dumps(ASKED)]
    found, loaded = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    return found, loaded


def test_help_of_every_command_is_shown_without_torch_as_with_it(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    quick, loaded = help_of_all(ALL)
    assert not loaded
    slow, loaded = help_of_all(f"import torch\n{ALL}")
    assert "torch" in loaded
    for words, here, there in zip(ASKED, quick, slow, strict=True):
        assert here == there, words
        assert "--help" in here, words
        assert "--device" not in here or "Where to compute" in here, words
