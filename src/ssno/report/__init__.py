"""One page about runs: numbers, pictures, a player, the model's inside, and how to make it all again.

The page is a single HTML file: no network, no other files, good on a phone, in the dark and on paper.
"""

from ssno.report.make import make_report

__all__ = ["make_report"]
