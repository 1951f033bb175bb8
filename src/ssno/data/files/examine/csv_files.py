"""List the columns of a CSV file. Numbers are tried on the first lines; all are read when the file is opened."""

from pathlib import Path

import numpy as np

from ssno.data.files.csv_text import count_rows, read_head, read_numbers
from ssno.data.files.examine.report import Record, Report

TRIED = 10_000  # numbers


def examine_csv(path: str, budget: int) -> Record:
    """A column for each name; without names one matrix; with places as names, a matrix and its coordinates."""
    file, report = Path(path), Report("csv", budget)
    head = read_head(file)
    rows = count_rows(file, head)
    if report.reads:
        read_numbers(file, most=max(1, TRIED // head.columns))
    number = np.dtype("<f8")
    if head.names and len(head.names) > 2 and head.places is not None:
        first, unit = head.names[0], head.units[0]
        report.add(first, (rows,), number, columns=[0, 1], attributes={"units": unit} if unit else {})
        report.add("x", (head.columns - 1,), number, values=head.places)
        report.add("u", (rows, head.columns - 1), number, columns=[1, head.columns], dims=[first, "x"])
    elif head.names:
        for column, (name, unit) in enumerate(zip(head.names, head.units, strict=True)):
            report.add(name, (rows,), number, columns=[column, column + 1], attributes={"units": unit} if unit else {})
    else:
        report.add("array", (rows, head.columns), number, columns=[0, head.columns])
    return report.answer
