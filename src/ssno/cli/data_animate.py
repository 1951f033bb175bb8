"""`ssno data animate DATA`: trajectories as moving pictures, without a model.

ssno data animate ks --trajectories 0 3
ssno data animate channel.h5 --axes "batch channel x y time" --mask obstacle --animation.width 1920
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from ssno.base.names import as_file_name
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.plots.animation import DEFAULTS, AnimationOptions
from ssno.plots.forecasts import moving_picture
from ssno.plots.labels import labels_of

AS_STORED = ReadOptions()


def animate(
    data: tyro.conf.Positional[str],
    *,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = AS_STORED,
    split: str = "all",
    trajectories: tuple[int, ...] = (0,),
    preset: str | None = None,
    points: int | None = None,
    animation: AnimationOptions = DEFAULTS,
    out: Path = Path("animations"),
) -> None:
    """Draw trajectories frame by frame, a file for each trajectory and field; masked points are grey.

    Args:
        data: A dataset's name, looked up in ./data, or a file or folder of your own.
        read: What the file does not say.
        split: Where the trajectories are: train, valid, test or all.
        trajectories: Trajectories, numbered from 0.
        preset: Size of a generated dataset: tiny, small or paper.
        points: Coarsen the grid to this many points along the first axis.
        animation: How animations look.
        out: Folder for the animations.
    """
    options = {name: getattr(read, name) for name in read.given}
    chosen = DataOptions(name=data, preset=preset, points=points, **options).load(split)
    if chosen.grid_type == "points":
        raise ValueError(f"{chosen.name!r} are clouds of points, which do not move.")
    for number in trajectories:
        if not 0 <= number < len(chosen):
            raise ValueError(f"`--trajectories` must lie between 0 and {len(chosen) - 1}, got {number}.")
    for path in draw(chosen, trajectories, out, animation):
        print(path)


def draw(data: Trajectories, index: tuple[int, ...], folder: Path, options: AnimationOptions) -> list[Path]:
    """Write the animations of some trajectories."""
    state, context = data.read(list(index))
    fields = state.numpy()
    if data.mask_channel is not None:
        fields = np.where(context[:, :, [data.mask_channel]].numpy() > 0, np.nan, fields)
    times = data.times.tolist()
    return [
        moving_picture(
            data,
            fields[row, :, channel],
            None,
            folder / f"{as_file_name(data.name)}-{number}-{as_file_name(field)}{options.suffix}",
            times=times,
            labels=labels_of(data, channel).titled(f"{data.name}: {field} of trajectory {number}"),
            options=options,
        )
        for row, number in enumerate(index)
        for channel, field in enumerate(data.fields)
    ]
