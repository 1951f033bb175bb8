"""docs/airfoils.md runs as it stands."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "airfoils.md").read_text()


def test_programs_run() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    exec(compile(program, "docs/airfoils.md", "exec"), {"__name__": "__main__"})
