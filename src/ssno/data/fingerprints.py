"""Finding what occurs twice: trajectories within a set, frames that two sets share.

Every frame gets a 64-bit hash of its float32 bytes, all state fields together. Two trajectories are duplicates if all
their frames agree; a test set leaks if frames of it occur in the training set, at whatever time. Frames that are
uniform in space (all zero, say) are the same everywhere and count as nothing.

Axes: n trajectory, t frame.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt64
from torch import Tensor

Hashes = UInt64[np.ndarray, "n t"]
UNIFORM = np.uint64(0)  # the hash of frames without structure


@dataclass(frozen=True)
class Leak:
    """What a set shares with another: how many of its trajectories, how many of its frames, and the first pair."""

    here: str
    there: str
    trajectories: int
    frames: int
    example: tuple[int, int]


def frame_hashes(state: Float[Tensor, "n t c *grid"]) -> Hashes:
    """A hash per frame; 0 for frames that are uniform in space."""
    frames = state.numpy()
    uniform = is_uniform(frames)
    hashes = np.zeros(uniform.shape, np.uint64)
    for place in zip(*np.nonzero(~uniform), strict=True):
        digest = hashlib.blake2b(frames[place].tobytes(), digest_size=8).digest()
        hashes[place] = max(int.from_bytes(digest, "little"), 1)
    return hashes


def is_uniform(frames: Float[np.ndarray, "n t c *grid"]) -> Bool[np.ndarray, "n t"]:
    """Frames whose fields have one value each."""
    points = frames.reshape(*frames.shape[:3], -1)
    return (points == points[..., :1]).all(axis=(2, 3))


def duplicates(hashes: Hashes) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of trajectories whose frames all agree."""
    first: dict[bytes, int] = {}
    pairs = []
    for n, row in enumerate(hashes):
        if (row == UNIFORM).all():
            continue
        earlier = first.setdefault(row.tobytes(), n)
        if earlier != n:
            pairs.append((earlier, n))
    return pairs


def frozen(hashes: Hashes) -> list[int]:
    """Trajectories in which a frame equals the next one: a solver that stopped, or frames stored twice."""
    stuck = (hashes[:, 1:] == hashes[:, :-1]) & (hashes[:, 1:] != UNIFORM)
    return np.nonzero(stuck.any(axis=1))[0].tolist()


def leak(hashes: Hashes, training: UInt64[np.ndarray, "m s"], *, here: str, there: str) -> Leak | None:
    """What a set shares with the training set, or None if nothing."""
    known = {int(value): n for n, row in enumerate(training) for value in row if value != UNIFORM}
    shared = np.isin(hashes, np.fromiter(known, np.uint64, len(known)))
    if not shared.any():
        return None
    whole = (shared | (hashes == UNIFORM)).all(axis=1) & shared.any(axis=1)
    n, t = (int(index) for index in np.argwhere(shared)[0])
    return Leak(here, there, int(whole.sum()), int(shared.sum()), (n, known[int(hashes[n, t])]))
