"""Small exactly known data: travelling waves, with and without a known companion field."""

import math

import numpy as np

from ssno.data.trajectories import Trajectories


def travelling_waves(
    count: int, *, seed: int, points: int = 16, frames: int = 8, context: bool = False
) -> Trajectories:
    """sin(k (x - t) + phase), and as context the same wave a quarter period ahead."""
    rng = np.random.default_rng(seed)
    x = 2 * math.pi * np.arange(points) / points
    t = 0.2 * np.arange(frames)[:, None]
    phase, wave = rng.uniform(0, 6, (count, 1, 1)), rng.integers(1, 3, (count, 1, 1))
    angle = wave * (x - t) + phase
    channels = [np.sin(angle), np.cos(angle)] if context else [np.sin(angle)]
    return Trajectories.from_array(
        np.stack(channels, axis=2).astype(np.float32),
        name="waves",
        fields=["u", "known"][: len(channels)],
        context_fields=["known"] if context else (),
        lengths=[2 * math.pi],
        dt=0.2,
    )
