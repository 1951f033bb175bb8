"""Write the gallery:  python docs/scripts/gallery.py  (or `python -m docs.scripts.pages` in the repository)."""

import time
from pathlib import Path

import matplotlib
import torch
from docs.scripts.pages.checkpoints import all_checkpoints, checkpoint_page, checkpoint_rows
from docs.scripts.pages.choices import choices_page
from docs.scripts.pages.datasets import dataset_page, datasets_index
from docs.scripts.pages.markdown import DOCS, GENERATED, table, write_page
from docs.scripts.pages.models import model_page, models_index

from ssno.data.datasets import DATASETS
from ssno.models import known_models

GALLERY = DOCS / "gallery"


def main() -> None:
    """Every page of the gallery; pages of things that are gone are removed."""
    matplotlib.use("Agg")
    torch.set_num_threads(1)
    began = time.process_time()
    pages = [dataset_page(name, GALLERY / "datasets") for name in DATASETS]
    pages += [model_page(name, GALLERY / "models") for name in known_models()]
    pages += [checkpoint_page(name, GALLERY / "checkpoints") for name in all_checkpoints()]
    pages += [datasets_index(GALLERY / "datasets"), models_index(GALLERY / "models"), choices_page(GALLERY)]
    pages.append(gallery_index(GALLERY))
    for path in set(GALLERY.rglob("*.md")) - set(pages):
        path.unlink()
    print(f"{len(pages)} pages in {GALLERY.relative_to(DOCS.parent)}, {time.process_time() - began:.0f} s of CPU")


def gallery_index(folder: Path) -> Path:
    """The entry: every page, grouped; the site makes its navigation from it."""
    datasets = ", ".join(f"[{name}](datasets/{name}.md)" for name in DATASETS)
    models = ", ".join(f"[{name}](models/{name}.md)" for name in known_models())
    text = (
        "# Gallery\n\n"
        "Made from the code, the bundled checkpoints and the stored results each time the site is built.\n\n"
        f"{GENERATED}\n"
        "## Choose\n\n[Which model, which options](which.md), as tables from our own measurements.\n\n"
        f"## Datasets\n\n[All datasets](datasets/index.md) with pictures. Each: {datasets}.\n\n"
        f"## Models\n\n[All models](models/index.md) with diagrams. Each: {models}.\n\n"
        "## Trained checkpoints\n\nErrors are those stored with the weights: `rel_l2` of rollouts on the whole test "
        "split, on the sphere in normalised units.\n\n"
        f"{table(['checkpoint', 'report', 'model', 'data', 'error'], checkpoint_rows(), right=4)}"
    )
    return write_page(folder / "index.md", text)


if __name__ == "__main__":
    main()
