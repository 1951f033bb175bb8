"""The numbers behind a page's player: forecasts beside their truth. templates/page.js decodes, colours and draws them.

A field is sent as 16-bit numbers between `low` and `high`, the range of the truth widened by half on both sides; the
largest number stands for "not finite".

Axes: n trajectory, t frame, c field, then the grid.
"""

import base64
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, UInt8, UInt16

from ssno.data.trajectories import Trajectories
from ssno.evaluation.examples import Examples
from ssno.plots.fields import as_drawn
from ssno.plots.style import DIFFERENCE_MAP, colours

MAX_POINTS, MAX_FRAMES, MAX_FIELDS = 128, 120, 4
NOT_FINITE = 65535


def player_data(examples: Examples, data: Trajectories, labels: Mapping[int, str]) -> dict[str, Any]:
    """What the page's script needs, as JSON values; `labels` names trajectories by their index.

    At most 128 points along an axis, 120 frames and 4 fields, of a box in planes.
    """
    truth, forecast = examples.truth.numpy(), examples.forecast.numpy()
    shown = np.concatenate([truth[:, : examples.input_frames], forecast], axis=1)
    every = -(-len(examples.times) // MAX_FRAMES)
    errors = np.concatenate([np.zeros((len(truth), examples.input_frames)), examples.step_errors().numpy()], axis=1)
    drawn, fields = as_drawn(data, truth, shown)[:MAX_FIELDS], []
    for one in drawn:
        steps = (1, every, *(-(-points // MAX_POINTS) for points in one.values[0].shape[2:]))
        values, other = (values[tuple(slice(None, None, step) for step in steps)] for values in one.values)
        low, high = float(values.min()), float(values.max())
        margin = 0.5 * (high - low) or 0.5
        low, high = low - margin, high + margin
        colour_map, bottom, top = colours(values)
        fields.append(
            {
                "low": low,
                "high": high,
                "bottom": bottom,
                "top": top,
                "worst": [_worst(a - b, floor=1e-6 * (high - low)) for a, b in zip(other, values, strict=True)],
                "map": _colour_table(colour_map),
                "truth": [_text(quantised(trajectory, low, high)) for trajectory in values],
                "forecast": [_text(quantised(trajectory, low, high)) for trajectory in other],
            }
        )
    return {
        "grid": list(values.shape[2:]),
        "lengths": [axis.length for axis in data.axes][: values.ndim - 2],
        "times": [float(time) for time in examples.times[::every]],
        "input_frames": -(-examples.input_frames // every),
        "labels": [labels.get(index, f"trajectory {index}") for index in examples.indices],
        "errors": [[round(float(e), 5) if np.isfinite(e) else None for e in row] for row in errors[:, ::every]],
        "fields": [", ".join(filter(None, (one.name, one.labels.where))) for one in drawn],
        "axis": data.axes[0].name,
        "units": {
            "time": data.units.time,
            "axis": data.units.axes.get(data.axes[0].name, ""),
            "fields": [one.labels.unit for one in drawn],
        },
        "differences": _colour_table(DIFFERENCE_MAP),
        "values": fields,
    }


def quantised(values: Float[np.ndarray, "..."], low: float, high: float) -> UInt16[np.ndarray, "..."]:
    """Numbers between `low` and `high` as 0 to 65534, others at the nearer end; 65535 where not finite."""
    finite = np.isfinite(values)
    scaled = np.clip((np.where(finite, values, 0.0) - low) / (high - low), 0.0, 1.0) * (NOT_FINITE - 1)
    return np.where(finite, np.rint(scaled), NOT_FINITE).astype("<u2")


def _worst(difference: Float[np.ndarray, "..."], *, floor: float) -> float:
    """The largest difference of a trajectory, except for single points: the limit of its colour scale."""
    finite = np.abs(difference[np.isfinite(difference)])
    return max(floor, float(np.quantile(finite, 0.999)) if finite.size else 0.0)


def _colour_table(name: str) -> str:
    """The 256 colours of a map, red green blue."""
    table: UInt8[np.ndarray, "256 3"] = (
        (mpl.colormaps[name](np.linspace(0, 1, 256))[:, :3] * 255).round().astype(np.uint8)
    )
    return _text(table)


def _text(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode()
