"""`ssno publish RUN -o FOLDER`: a run as a folder for others, and onto the Hugging Face Hub if asked for."""

from pathlib import Path
from typing import Annotated

import tyro

from ssno.base import byte_size, to_text
from ssno.models.hub import require_library, upload
from ssno.report.publish import PUBLISHED, publish_run
from ssno.runs.open import open_run


def publish(
    run: tyro.conf.Positional[Path],
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    licence: str | None = None,
    to: str | None = None,
    json: bool = False,
) -> None:
    """Write a run as a folder for others: config.json, model.safetensors, README.md (a model card) and LICENSE.

    A run that has not been evaluated is evaluated first, on its test data. Nothing is sent anywhere without --to.

    Args:
        run: Folder of a training run, or the name of a bundled checkpoint.
        out: The new folder.
        licence: Under which others may use the weights, as SPDX names it: MIT, CC-BY-4.0.
        to: Also upload the four files to this repository on the Hugging Face Hub, ORGANISATION/NAME, made public if
            there is none. Needs `pip install 'ssno[hub]'` and `hf auth login`.
        json: Print the result as JSON.
    """
    if to is not None:
        require_library(to)
    folder = publish_run(open_run(run), out, licence=licence, repository=to)
    size = sum((folder / name).stat().st_size for name in PUBLISHED)
    try:
        commit = None if to is None else upload(folder, to, files=PUBLISHED)
    except OSError as error:
        raise OSError(f"{error} {folder} is complete: try `hf upload {to} {folder}` later.") from error
    if json:
        print(to_text({"path": str(folder), "bytes": size, "repository": to, "commit": commit}, indent=2))
        return
    print(f"{folder}: {', '.join(PUBLISHED)}, {byte_size(size)}. Read README.md before others do.")
    if to is not None:
        print(f"Uploaded: ssno predict hf://{to}@{commit} --input FILE --output FILE forecasts with it.")
