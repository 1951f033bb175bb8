"""A figure of which little changes from frame to frame: what stays is drawn once, as in matplotlib's blitting.

A GIF has one table of 256 colours for all its frames: those of the colour maps it shows, and the greys of its words.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.animation import FFMpegWriter
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap
from PIL import Image

from ssno.plots.style import Figure

Update = Callable[[int], None]
GREYS = 31  # one of them, 178 or nearly so, is that of missing data


class MovingFigure:
    """Frames of a figure: `update` changes the artists `moving`, which are drawn in this order above all others.

    `maps` are the colour maps it shows; its other colours are greys.
    """

    def __init__(
        self,
        figure: Figure,
        moving: Sequence[Artist],
        update: Update,
        *,
        frames: int,
        width: int,
        maps: Sequence[Colormap],
    ):
        self.figure, self.moving, self.update, self.frames, self.maps = figure, moving, update, frames, maps
        even = 2 * round(width / 2)  # ffmpeg wants even numbers of pixels
        inches = figure.get_size_inches()
        figure.set_size_inches(inches[0], 2 * round(even * inches[1] / inches[0] / 2) * inches[0] / even)
        figure.set_dpi(even / inches[0])
        self.canvas = FigureCanvasAgg(figure)
        update(0)
        figure.place()  # what moves included
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        self.still = self.canvas.copy_from_bbox(figure.bbox)

    def frame(self, number: int) -> Image.Image:
        """One picture."""
        self.update(number)
        self.canvas.restore_region(self.still)
        for artist in self.moving:
            artist.draw(self.canvas.get_renderer())
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")

    def write(self, path: Path, *, fps: float) -> None:
        """All pictures, as GIF or MP4 by the ending of the name."""
        if path.suffix == ".gif":
            table = self.colours()
            pictures = (self.frame(n).quantize(palette=table, dither=Image.Dither.NONE) for n in range(self.frames))
            duration = int(1000 / fps)
            next(pictures).save(path, save_all=True, append_images=pictures, duration=duration, loop=0)
            return
        writer = VideoWriter(fps=fps)  # type: ignore[arg-type]  # ffmpeg takes fractions
        with writer.saving(self.figure, str(path), dpi=self.figure.dpi):
            for number in range(self.frames):
                self.frame(number)
                writer.grab_frame()

    def colours(self) -> Image.Image:
        """An image whose palette has the colours of all frames."""
        each = (256 - GREYS) // len(self.maps)
        parts = [colormaps["gray"](np.linspace(0, 1, GREYS))]
        parts += [colouring(np.linspace(0, 1, each)) for colouring in self.maps]
        table = Image.new("P", (1, 1))
        table.putpalette((255 * np.concatenate(parts)[:, :3]).round().astype(np.uint8).tobytes())
        return table


class VideoWriter(FFMpegWriter):
    """Sends ffmpeg what is on the canvas, without drawing it again."""

    def grab_frame(self, **_: object) -> None:
        """The picture as it is."""
        self._proc.stdin.write(self.fig.canvas.buffer_rgba())  # type: ignore[attr-defined]
