"""Write docs/gallery from the registry, the bundled checkpoints and results/:  python docs/scripts/gallery.py

A page for every dataset, model and checkpoint, and one that answers which model and which options to take. About a
minute of processor time when nothing is there; pictures are drawn again only when their inputs change. The work is in
docs/scripts/pages.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    runpy.run_module("docs.scripts.pages", run_name="__main__")
