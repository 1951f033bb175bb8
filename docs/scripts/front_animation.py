"""Draw the moving picture of the front page:  python docs/scripts/front_animation.py  (half a minute on one core).

Eight flows of TorusLi from the solver that no training has seen; bundled `torus-li-64` continues four frames of each,
and the flow with the median error is shown: solver, forecast and their difference, on a transparent background.
"""

from pathlib import Path

import numpy as np
import torch
from matplotlib import colormaps
from PIL import Image, ImageDraw, ImageFont

from ssno import load_forecaster, rollout
from ssno.data.datasets import build_problem

FILE = Path(__file__).parents[1] / "images" / "front.webp"
FLOWS, PANEL, GAP, TOP = 8, 300, 12, 44
GREY = (128, 128, 128, 255)  # readable on white and on black


def main() -> None:
    """Solve, forecast, draw."""
    forecaster, problem = load_forecaster("torus-li-64"), build_problem("torus-li", "small")
    drawn = [problem.draw(np.random.default_rng((36, number))) for number in range(FLOWS)]
    truth = torch.from_numpy(problem.solve(drawn).state).float()
    known = forecaster.window.plan(truth.shape[1]).input_frames.stop
    forecast = rollout(forecaster, truth[:, :known], truth.shape[1] - known)
    errors = (forecast - truth[:, known:]).flatten(1).norm(dim=1) / truth[:, known:].flatten(1).norm(dim=1)
    median = int(errors.argsort()[FLOWS // 2])
    left, right = truth[median, :, 0].numpy(), np.concatenate([truth[median, :known, 0], forecast[median, :, 0]])
    frames = [
        picture((left[t], right[t], right[t] - left[t]), scale=np.abs(left).max(), step=t + 1 - known)
        for t in range(len(left))
    ]
    pause = [250] * (len(frames) - 1) + [1500]
    frames[0].save(FILE, save_all=True, append_images=frames[1:], duration=pause, loop=0, quality=80, method=6)
    print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB, rel_l2 {errors[median]:.3f} (median of {FLOWS})")


def picture(fields: tuple[np.ndarray, ...], *, scale: float, step: int) -> Image.Image:
    """The three panels of one frame with their titles."""
    sheet = Image.new("RGBA", (3 * PANEL + 2 * GAP, PANEL + TOP), (0, 0, 0, 0))
    said = f"forecast, step {step}" if step > 0 else "input frames"
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(30)
    for place, (field, title) in enumerate(zip(fields, ("solver", said, "difference"), strict=True)):
        image = Image.fromarray(field.T[::-1].astype(np.float32)).resize((PANEL, PANEL), Image.Resampling.BICUBIC)
        shades = colormaps["RdBu_r"](0.5 + 0.5 * np.asarray(image) / scale, bytes=True)
        left = place * (PANEL + GAP)
        sheet.paste(Image.fromarray(shades), (left, TOP))
        pen.text((left + PANEL / 2, TOP / 2), title, fill=GREY, font=font, anchor="mm")
    return sheet


if __name__ == "__main__":
    main()
