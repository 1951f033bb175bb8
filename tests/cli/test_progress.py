"""Progress of long commands: a bar on a terminal, a few plain lines elsewhere."""

import io

from ssno.base.terminal import Console
from ssno.cli.options import progress


def test_plain_lines_say_how_far_and_end_once() -> None:
    text = io.StringIO()
    with progress("work", console=Console(file=text), seconds_between_lines=0.0) as advance:
        for done in (0.0, 1.0, 3.0, 4.0, 4.0):
            advance(done, 4)
    lines = text.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["work: 25 %", "work: 75 %", "work: 100 %"]
    assert lines[-1].endswith("0 s left")


def test_plain_lines_are_few() -> None:
    text = io.StringIO()
    with progress("work", console=Console(file=text)) as advance:
        for done in range(1, 1001):
            advance(done, 1000)
    assert text.getvalue().splitlines() == ["work: 100 %, 0 s left"]


def test_a_terminal_gets_a_bar_with_the_time_left() -> None:
    text = io.StringIO()
    with progress("work", console=Console(file=text, force_terminal=True, width=80)) as advance:
        advance(1, 4)
        advance(4, 4)
    assert "━" in text.getvalue()
    assert "100%" in text.getvalue()
    assert "left:" in text.getvalue()
