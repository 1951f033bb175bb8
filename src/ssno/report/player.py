"""The player: forecasts beside their truth, to play, pause and scrub. Numbers travel in the page, colours are tables.

A field is sent as 16-bit numbers between `low` and `high`, the range of the truth widened by half on both sides; the
largest number stands for "not finite". page.js decodes them, subtracts, colours and draws on canvases.

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
from ssno.plots.style import DIFFERENCE_MAP, colours
from ssno.report.markup import script_data, text

MOST_POINTS, MOST_FRAMES, MOST_FIELDS = 128, 120, 4
NOT_FINITE = 65535


def player(identity: str, examples: Examples, data: Trajectories, labels: Mapping[int, str]) -> str:
    """The element and its numbers. `labels` says what each trajectory is an example of."""
    payload = payload_of(examples, data, labels)
    names = [text(label) for label in payload["labels"]]
    choices = "".join(f'<option value="{n}">{name}</option>' for n, name in enumerate(names))
    fields = "".join(f'<option value="{n}">{text(name)}</option>' for n, name in enumerate(payload["fields"]))
    last = len(payload["times"]) - 1
    lines = '<canvas class="lines" role="img" aria-label="truth and forecast as lines"></canvas>'
    panels = "".join(
        f'<figure><div class="frame"><canvas class="panel" data-panel="{name}" role="img" aria-label="{name}"></canvas>'
        f"<i hidden></i></div><figcaption>{name}<span></span></figcaption></figure>"
        for name in ("truth", "forecast", "difference")
    )
    return (
        f'<div class="player" id="{text(identity)}" role="group" aria-label="Forecast beside the truth">'
        f'<div class="choices"><label>trajectory <select class="trajectory">{choices}</select></label>'
        f'<label{"" if len(payload["fields"]) > 1 else " hidden"}>field <select class="field">{fields}</select></label>'
        f"</div>{lines if len(payload['grid']) == 1 else ''}"
        f'<div class="panels">{panels}</div>'
        '<div class="controls"><button type="button" class="play" aria-label="Play">&#9654;</button>'
        f'<input type="range" min="0" max="{last}" value="{(2 * last) // 3}" step="1" aria-label="Frame">'
        '<output aria-live="off"></output></div></div>'
        f"{script_data(f'{identity}-data', payload)}"
    )


def payload_of(examples: Examples, data: Trajectories, labels: Mapping[int, str]) -> dict[str, Any]:
    """Everything the page's script needs, as JSON values."""
    truth, forecast = examples.truth.numpy(), examples.forecast.numpy()
    shown = np.concatenate([truth[:, : examples.given], forecast], axis=1)
    truth, shown = (thinned(values)[:, :, :MOST_FIELDS] for values in (truth, shown))
    every = -(-len(examples.times) // MOST_FRAMES)
    errors = np.concatenate([np.zeros((len(truth), examples.given)), examples.step_errors().numpy()], axis=1)
    errors = errors[:, ::every]
    fields = []
    for channel in range(truth.shape[2]):
        values, other = truth[:, ::every, channel], shown[:, ::every, channel]
        low, high = limits(values)
        colour_map, bottom, top = colours(values)
        fields.append(
            {
                "low": low,
                "high": high,
                "bottom": bottom,
                "top": top,
                "worst": [worst(a, b, floor=1e-6 * (high - low)) for a, b in zip(other, values, strict=True)],
                "map": colour_table(colour_map),
                "truth": [packed(trajectory, low, high) for trajectory in values],
                "forecast": [packed(trajectory, low, high) for trajectory in other],
            }
        )
    return {
        "grid": list(truth.shape[3:]),
        "lengths": [axis.length for axis in data.axes][: len(truth.shape[3:])],
        "times": [float(time) for time in examples.times[::every]],
        "given": -(-examples.given // every),
        "labels": [labels.get(index, f"trajectory {index}") for index in examples.indices],
        "errors": [[round(float(e), 5) if np.isfinite(e) else None for e in row] for row in errors],
        "fields": list(data.fields)[:MOST_FIELDS],
        "differences": colour_table(DIFFERENCE_MAP),
        "values": fields,
    }


def thinned(values: Float[np.ndarray, "n t c *grid"]) -> Float[np.ndarray, "n t c *coarse"]:
    """At most 128 points along an axis; of three axes, the middle plane of the last."""
    if values.ndim == 6:
        values = values[..., values.shape[-1] // 2]
    steps = tuple(slice(None, None, -(-points // MOST_POINTS)) for points in values.shape[3:])
    return values[(slice(None), slice(None), slice(None), *steps)]


def limits(values: Float[np.ndarray, "..."]) -> tuple[float, float]:
    """The range of the truth, widened by half on both sides, so that forecasts that overshoot are seen to."""
    low, high = float(values.min()), float(values.max())
    margin = 0.5 * (high - low) or 0.5
    return low - margin, high + margin


def worst(forecast: Float[np.ndarray, "..."], truth: Float[np.ndarray, "..."], *, floor: float) -> float:
    """The largest difference of a trajectory, but for single points; it sets the colours of the difference."""
    difference = np.abs(forecast - truth)
    finite = difference[np.isfinite(difference)]
    return max(floor, float(np.quantile(finite, 0.999)) if finite.size else 0.0)


def quantised(values: Float[np.ndarray, "..."], low: float, high: float) -> UInt16[np.ndarray, "..."]:
    """Numbers between `low` and `high` as 0 to 65534, those beyond at the ends; 65535 where not finite."""
    finite = np.isfinite(values)
    scaled = np.clip((np.where(finite, values, 0.0) - low) / (high - low), 0.0, 1.0) * (NOT_FINITE - 1)
    return np.where(finite, np.rint(scaled), NOT_FINITE).astype("<u2")


def packed(values: Float[np.ndarray, "..."], low: float, high: float) -> str:
    """`quantised`, as text."""
    return base64.b64encode(quantised(values, low, high).tobytes()).decode()


def colour_table(name: str) -> str:
    """The 256 colours of a map, red green blue, as text."""
    table: UInt8[np.ndarray, "256 3"] = (
        (mpl.colormaps[name](np.linspace(0, 1, 256))[:, :3] * 255).round().astype(np.uint8)
    )
    return base64.b64encode(table.tobytes()).decode()
