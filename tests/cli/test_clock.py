"""Words for when to stop."""

from datetime import datetime

import pytest

from ssno.cli.options import moment

NOW = datetime(2030, 1, 31, 22, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23:30", datetime(2030, 1, 31, 23, 30)),
        ("06:00", datetime(2030, 2, 1, 6, 0)),  # tomorrow
        ("1h30m", datetime(2030, 1, 31, 23, 30)),
        ("55m", datetime(2030, 1, 31, 22, 55)),
        ("90s", datetime(2030, 1, 31, 22, 1, 30)),
        ("0.5h", datetime(2030, 1, 31, 22, 30)),
    ],
)
def test_a_time_of_day_or_a_while_is_a_moment(text: str, expected: datetime) -> None:
    assert moment(text, NOW, option="--stop-at") == expected


@pytest.mark.parametrize("text", ["", "25:00", "soon", "10", "m", "-5m"])
def test_other_words_are_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="`--stop-at` must be a time of day as 06:00, or a while as 55m"):
        moment(text, NOW, option="--stop-at")
