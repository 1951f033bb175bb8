"""Claims of the study of other grids."""

import pytest
from studies.transfer import within

from ssno.paper.results import OPEN


@pytest.mark.parametrize(
    ("ours", "theirs", "answer"),
    [(1.2, 1.0, "holds"), (1.3, 1.0, "does not hold"), (float("inf"), float("inf"), OPEN), (1.0, float("inf"), OPEN)],
)
def test_an_error_within_a_factor_is_a_fact_unless_a_run_diverged(ours, theirs, answer) -> None:
    assert within("a claim", ours, theirs, factor=1.25).answer == answer
