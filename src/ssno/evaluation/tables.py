"""Tables of results for the terminal, LaTeX (booktabs) and CSV.

A `ResultTable` holds formatted text; CSV files are written from records, with all digits.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ssno.base.atomic_write import Kind, check_replaceable, write_whole

LATEX_WORDS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
}


CSV = Kind("a table", re.compile(rb"\A(name,model,parameters,seeds|run,model,seed,dataset),"))
"""Written by `ssno compare` or `ssno evaluate`, whose columns begin so."""
LATEX = Kind("a table", re.compile(rb"\A% [^\n]*\n\\begin\{tabular\}"))


@dataclass(frozen=True)
class ResultTable:
    """A table of formatted text: the first column names the row, the others hold its numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(
                    f"A row of `{self.title}` has {len(row)} cells for {len(self.headings)} headings: {row}."
                )

    def terminal(self) -> Table:
        """A table for rich consoles."""
        table = Table(title=self.title, title_justify="left")
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def latex(self) -> str:
        """A tabular with the rules of booktabs, numbers to the right."""
        lines = [_latex_row(self.headings), r"\midrule", *(_latex_row(row) for row in self.rows)]
        columns = "l" + "r" * (len(self.headings) - 1)
        return "\n".join(
            [
                f"% {self.title}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                "",
            ]
        )


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per record; columns in the order of their first appearance, empty where a record lacks one."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns, restval="")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def check_tables(csv: Path | None, latex: Path | None) -> None:
    """Refuse to replace files that are not tables of ssno."""
    if csv is not None:
        check_replaceable(csv, CSV, option="--csv")
    if latex is not None:
        check_replaceable(latex, LATEX, option="--latex")


def write_text(path: Path, text: str) -> None:
    """Write text atomically, creating the folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join("".join(LATEX_WORDS.get(letter, letter) for letter in cell) for cell in cells) + r" \\"
