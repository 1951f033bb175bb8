"""Text tables (CSV): their first lines, and their numbers as one array (row, column).

    # any comment
    trajectory,time,x,u (m s-1)        names, with a unit in brackets where there is one; a matrix of numbers has none
    0,0.0,0.0,1.25                     numbers; empty cells and NA are missing values

Cells are separated by commas, semicolons or tabs, whichever the first line has most of. NumPy's parser goes first; what
it cannot read is read cell by cell, which finds missing values, or the line and column of what is no number.
"""

import csv
import re
import warnings
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ssno.data.errors import DataError
from ssno.data.readers.arrays import clean_unit
from ssno.data.sandbox.report import Record, Report

SUFFIXES = (".csv", ".tsv")
LARGEST = 128 * 2**20
MOST_COLUMNS = 10_000
LONGEST_NAME = 80
LONGEST_LINE = 2**20
MISSING = {"", "na", "n/a", "null", "none", "-"}
WITH_UNIT = re.compile(r"(.*?)\s*[\[(](.*)[\])]\s*")


@dataclass(frozen=True)
class TableHead:
    """What comes before the numbers: names of columns (none if the first line is numbers), units, lines to skip."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    columns: int
    delimiter: str
    lines: int

    @property
    def places(self) -> list[float] | None:
        """Names after the first as numbers, where all of them are: a matrix, frames down and places across."""
        numbers = [float(name) for name in self.names[1:] if _is_number(name)]
        return numbers if numbers and len(numbers) == len(self.names) - 1 else None


def read_head(path: Path) -> TableHead:
    """Find names, delimiter and the first line of numbers. Raises `DataError`."""
    if (size := path.stat().st_size) > LARGEST:
        raise DataError(
            f"{path} has {size} bytes; CSV files are read whole, up to {LARGEST}. Store it as HDF5 or NPZ, or as a "
            "file for each trajectory."
        )
    comment: list[str] = []
    with open(path, encoding="utf-8-sig", errors="strict", newline=None) as file:
        for number, line in enumerate(_lines(file, path)):
            if line.startswith("#") or not line.strip():
                comment = [line.lstrip("# \t"), *comment][:1] if line.strip("# \t\r\n") else comment
                continue
            delimiter = max(",;\t", key=line.count)
            cells = _cells(line, delimiter)
            if len(cells) > MOST_COLUMNS:
                raise DataError(f"{path}, line {number + 1}: {len(cells)} columns, at most {MOST_COLUMNS} are read.")
            if not all(_is_number(cell) for cell in cells):
                return _named(path, cells, delimiter, number + 1)
            above = _cells(comment[0], delimiter) if comment else []
            if len(above) == len(cells) > 1 and not _is_number(above[0]):  # as numpy.savetxt does
                return _named(path, above, delimiter, number)
            return TableHead((), (), len(cells), delimiter, number)
    raise DataError(f"{path} has no numbers.")


def count_rows(path: Path, head: TableHead) -> int:
    """Lines that hold numbers."""
    with open(path, "rb") as file:
        return sum(1 for line in islice(file, head.lines, None) if line.strip() and not line.startswith(b"#"))


def read_numbers(path: Path, *, most: int | None = None) -> np.ndarray:
    """All numbers (row, column), or those of the first `most` rows. Raises `DataError` with line and column."""
    head = read_head(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files without numbers, which are an error below
            found = np.loadtxt(
                path, delimiter=head.delimiter, skiprows=head.lines, ndmin=2, max_rows=most, encoding="utf-8-sig"
            )
        if found.shape[1] == head.columns:
            return found
    except (ValueError, OverflowError):
        pass
    numbers = array("d")
    for row in _rows(path, head, most):
        numbers.extend(row)
    if not numbers:
        raise DataError(f"{path} has no numbers.")
    return np.array(numbers).reshape(-1, head.columns)


def line_of(path: Path, row: int) -> int:
    """The line of the file on which a row of numbers stands, counted from 1."""
    head = read_head(path)
    with open(path, "rb") as file:
        for number, line in enumerate(file):
            if number >= head.lines and line.strip() and not line.startswith(b"#"):
                if row == 0:
                    return number + 1
                row -= 1
    raise DataError(f"{path} was changed after it was opened. Load the dataset again.")


def _rows(path: Path, head: TableHead, most: int | None) -> Iterator[list[float]]:
    """Row by row, each cell by itself."""
    taken = 0
    with open(path, encoding="utf-8-sig", errors="strict", newline=None) as file:
        for number, line in enumerate(_lines(file, path)):
            if number < head.lines or line.startswith("#") or not line.strip():
                continue
            if taken == most:
                return
            cells = _cells(line, head.delimiter)
            if len(cells) != head.columns:
                raise DataError(
                    f"{path}, line {number + 1}: {len(cells)} cells, but the first line has {head.columns}."
                )
            for column, cell in enumerate(cells):
                if cell.lower() not in MISSING and not _is_number(cell):
                    name = head.names[column] if head.names else str(column + 1)
                    raise DataError(f"{path}, line {number + 1}, column {name}: {cell[:40]!r} is not a number.")
            yield [float("nan") if cell.lower() in MISSING else float(cell) for cell in cells]
            taken += 1


def _lines(file: Iterator[str], path: Path) -> Iterator[str]:
    """Lines of bounded length, all of them text."""
    number = 0
    try:
        while line := file.readline(LONGEST_LINE):  # type: ignore[attr-defined]
            number += 1
            if len(line) == LONGEST_LINE or "\0" in line:
                raise DataError(f"{path}, line {number}: not a line of text, or longer than {LONGEST_LINE} characters.")
            yield line
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, after line {number}: not text in UTF-8 ({error.reason}).") from error


def _cells(line: str, delimiter: str) -> list[str]:
    """One line as cells; quotes may hold delimiters."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        return [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])]
    except csv.Error:
        return line.rstrip("\r\n").split(delimiter)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _named(path: Path, cells: list[str], delimiter: str, lines: int) -> TableHead:
    """Names with their units; each must be there once."""
    names, units = [], []
    for cell in cells:
        stated = WITH_UNIT.fullmatch(cell)
        names.append(stated[1] if stated and stated[1] else cell)
        units.append(clean_unit(stated[2]) if stated and stated[1] else "")
    for column, name in enumerate(names):
        if not name or len(name) > LONGEST_NAME or name in names[:column]:
            what = "occurs twice" if name in names[:column] and name else "is empty or too long"
            raise DataError(f"{path}, line {lines}, column {column + 1}: the name {name[:LONGEST_NAME]!r} {what}.")
    return TableHead(tuple(names), tuple(units), len(names), delimiter, lines)


# List the columns of a CSV file. Numbers are tried on the first lines; all are read when the file is opened.

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
