"""Every command shows its options, and imports nothing for it that takes seconds beside torch."""

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
print(json.dumps([found, [name for name in ("scipy", "sympy", "torch._dynamo") if name in sys.modules]]))
"""


def test_help_of_every_command_is_shown_without_slow_imports(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    call = [sys.executable, "-c", ALL, json.dumps(ASKED)]
    found, slow = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    assert not slow
    for words, text in zip(ASKED, found, strict=True):
        assert "--help" in text, words
        assert "--device" not in text or "Where to compute" in text, words


def test_the_list_of_commands_is_shown_without_torch() -> None:
    code = "import sys; from ssno.cli.main import main; main(['--help']); sys.exit('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (shown.returncode, "ssno train" in shown.stdout) == (0, True)
