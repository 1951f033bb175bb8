"""HTML pages about runs: a report (numbers, plots, a player, learned kernels), and one on which the model runs live.

A page is a single file: no network, no other files; it works on a phone and in dark mode.
"""

from ssno.report.make import make_report
from ssno.report.play import make_play

__all__ = ["make_play", "make_report"]
