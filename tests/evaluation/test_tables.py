"""Tables as LaTeX and CSV."""

import csv
import io
import math

import pytest

from ssno.base.formatting import number
from ssno.evaluation.evaluate import ScoreRow, metric_table
from ssno.evaluation.tables import ResultTable, csv_text, write_text
from ssno.forecasting.divergence import Divergence
from ssno.forecasting.scores import Scores


def test_latex_has_the_rules_of_booktabs_and_escapes_what_latex_would_take() -> None:
    text = ResultTable("errors, 5 %", ("model", "rel_l2"), (("a&b", "0.1 ± 0.02"),)).latex()
    assert text.splitlines() == [
        "% errors, 5 %",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"model & rel\_l2 \\",
        r"\midrule",
        r"a\&b & 0.1 $\pm$ 0.02 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_csv_keeps_all_digits_and_leaves_gaps_open() -> None:
    records = [{"name": "a", "x": 0.1234567890123}, {"name": "b, c", "y": 2}]
    rows = list(csv.DictReader(io.StringIO(csv_text(records))))
    assert rows == [{"name": "a", "x": "0.1234567890123", "y": ""}, {"name": "b, c", "x": "", "y": "2"}]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.12345, "0.123"), (12345, "12,345"), (3.2e-5, "3.2e-05"), (0.0, "0"), (math.inf, "inf"), (None, "-"),
     (math.nan, "-"), (25000.0, "2.5e+04")],
)  # fmt: skip
def test_numbers_have_three_digits_that_matter(value, shown) -> None:
    assert number(value) == shown


def test_a_sheet_of_metrics_has_a_line_per_metric_and_a_gap_where_one_is_missing() -> None:
    model = Scores({"rel_l2": 0.5, "vrmse": 0.25}, (), (), divergences=(Divergence(0, 3, "too large"),))
    sheet = metric_table(
        [ScoreRow("ssno", 1000, model), ScoreRow("solver", 0, Scores({"rel_l2": 0.1}, (), ()))], title="t"
    )
    assert sheet.headings == ("", "ssno", "solver")
    assert sheet.rows == (
        ("parameters", "1,000", "0"),
        ("rel_l2", "0.5", "0.1"),
        ("vrmse", "0.25", "-"),
        ("diverged forecasts", "1", "0"),
    )


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="A row of `t` has 1 cells for 2 headings"):
        ResultTable("t", ("a", "b"), (("1",),))


def test_a_table_is_written_into_a_folder_that_is_made(tmp_path) -> None:
    write_text(tmp_path / "new" / "table.csv", "a,b\n")
    assert (tmp_path / "new" / "table.csv").read_text() == "a,b\n"
