"""One HTML page about runs: numbers, plots, a player, learned kernels, and how to reproduce them.

The page is a single file: no network, no other files; it works on a phone, in dark mode and on paper.
"""

from ssno.report.make import make_report

__all__ = ["make_report"]
