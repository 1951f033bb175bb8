"""Which frames of a trajectory are input, which are predicted, and which outputs a loss counts.

A model's output at time step t predicts frame t + 1 from at most the last K frames up to t (K = `size`, the window).
A protocol says, for a trajectory of T frames, where forecasting begins:

    protocol   input frames          predicted frames       time steps in the training loss
    first_k    0 ... K-1             K ... T-1              K-1 ... T-2  (every window that is full)
    memno      0                     1 ... T-1              0 ... T-2    (the memory grows from 1 to K)
    fno        0 ... G-1             G ... G+H-1            G-1 ... G+H-2  (G = input_frames, H = horizon, 10 each)
    ffno       T-H-K ... T-H-1       T-H ... T-1            K-1 ... T-2  (all pairs train, the last H are scored)

K = 0 is a model without memory; it sees one frame, like K = 1. Rollouts start from the last input frame and
feed the model its own predictions. A metric counts `scored` frames: the predicted ones or, with `score_last`,
only the last few, so that runs with different K are compared on the same frames. Input frames are never among
them.

Axes: n trajectory, t frame or time step, k context channel, then the space axes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base import require_one_of
from ssno.data.trajectories import Frames, Trajectories
from ssno.pde.geometry import CARTESIAN, POINT_CLOUD, Geometry

Protocol = Literal["first_k", "memno", "fno", "ffno"]
ContextTime = Literal["input", "target"]
"""Whose context fields a step gets: those of its input frame, or of the frame that it predicts."""


@dataclass(frozen=True)
class WindowPlan:
    """The frames and time steps of a trajectory with a fixed number of frames."""

    input_frames: range
    predicted: range
    scored: range
    loss_steps: range

    @property
    def start(self) -> int:
        """The frame that a rollout starts from: the last input frame."""
        return self.input_frames[-1]

    def inputs(
        self, state: Float[Tensor, "n t c *grid"], context: Float[Tensor, "n t k *grid"]
    ) -> tuple[Float[Tensor, "n g c *grid"], Float[Tensor, "n s k *grid"] | None]:
        """What a rollout gets: the input frames, and context fields from the first of them on; None without any."""
        return self.first(state), context[:, self.input_frames.start :] if context.shape[2] else None

    def first(self, state: Float[Tensor, "n t c *grid"]) -> Float[Tensor, "n g c *grid"]:
        """The input frames among all frames of trajectories."""
        return state[:, self.input_frames.start : self.input_frames.stop]


@dataclass(frozen=True)
class Window:
    """A protocol with its window."""

    protocol: Protocol = "first_k"
    """Input frames: as many as the model looks at (first_k), one (memno), `input_frames` (fno), or all up to the last
    `horizon` (ffno)."""
    size: int = 4
    """Number of input frames K (0 counts as 1). Follows the model's memory; only a model without one takes another."""
    score_last: int | None = None
    """Count only this many last frames in errors; None for all that are predicted."""
    input_frames: int = 10
    """Input frames of protocol fno."""
    horizon: int = 10
    """Frames that protocols fno and ffno predict."""

    def __post_init__(self) -> None:
        require_one_of("protocol", self.protocol, get_args(Protocol))
        if self.size < 0:
            raise ValueError(f"`size` of the window must be at least 0, got {self.size}.")
        for label in ("input_frames", "horizon"):
            if getattr(self, label) < 1:
                raise ValueError(f"`{label}` must be at least 1, got {getattr(self, label)}.")
        if self.score_last is not None and self.score_last < 1:
            raise ValueError(f"`score_last` must be at least 1, got {self.score_last}.")

    @property
    def frames_seen(self) -> int:
        """Frames that one prediction looks at, the current one included."""
        return max(self.size, 1)

    def plan(self, frames: int) -> WindowPlan:
        """What this protocol means for trajectories of `frames` frames."""
        start = {"first_k": self.frames_seen, "memno": 1, "fno": self.input_frames, "ffno": frames - self.horizon}[
            self.protocol
        ]
        need = {"first_k": self.frames_seen + 1, "memno": 2, "fno": self.input_frames + self.horizon}
        need["ffno"] = self.frames_seen + self.horizon
        if frames < need[self.protocol]:
            raise ValueError(
                f"Protocol {self.protocol!r} with window {self.size} needs trajectories of at least "
                f"{need[self.protocol]} frames, these have {frames}. Use a smaller window, or a "
                "`time_index` that keeps more frames."
            )
        inputs = range(start - self.frames_seen if self.protocol == "ffno" else 0, start)
        predicted = range(start, start + self.horizon if self.protocol == "fno" else frames)
        full = {"first_k": self.frames_seen - 1, "memno": 0, "fno": self.input_frames - 1, "ffno": self.frames_seen - 1}
        return WindowPlan(
            input_frames=inputs,
            predicted=predicted,
            scored=predicted[-self.score_last :] if self.score_last else predicted,
            loss_steps=range(full[self.protocol], predicted.stop - 1),
        )


def next_frames(state: Float[Tensor, "n t c *grid"]) -> Float[Tensor, "n t-1 c *grid"]:
    """Targets of time steps 0 ... T-2: output t is compared with frame t + 1."""
    return state[:, 1:]


def context_at_steps(
    context: Float[Tensor, "n t k *grid"], context_time: ContextTime = "input"
) -> Float[Tensor, "n t-1 k *grid"]:
    """Context fields for time steps 0 ... T-2, which predict frames 1 ... T-1.

    Step t gets the context of its input frame t ("input") or of the frame t + 1 that it predicts ("target"), as a force
    that acts during the step would be.
    """
    require_one_of("context_time", context_time, get_args(ContextTime))
    return context[:, :-1] if context_time == "input" else context[:, 1:]


def sliding_windows(frames: Float[Tensor, "n t c *grid"], size: int) -> Float[Tensor, "n w size c *grid"]:
    """Every run of `size` neighbouring frames as a view, for models that take frames as channels."""
    if not 1 <= size <= frames.shape[1]:
        raise ValueError(f"`size` must be between 1 and {frames.shape[1]} frames, got {size}.")
    return frames.unfold(1, size, 1).movedim(-1, 2)


# What the literature does with each dataset unless told otherwise: frames, points, splits, noise, context.
#
#     dataset           stored -> used frames    points    noise   context at    split of the public file
#     burgers           201 -> 20 (0:140:7)      as stored 5e-3    -             first 2048 / last 1000
#     ks                26                       as stored 1e-3    -             one file per split
#     torus-li          20                       64        1e-3    -             first 1000 / last 200
#     torus-vis         200 -> 20 (0::10)        64        1e-3    target        groups in the file
#     torus-vis-force   200 -> 20 (0::10)        64        1e-3    target        groups in the file
#     ce-rm             21 -> 11 (0::2)          64        1e-3    input         first 1000 / last 200
#     gce-rt            11                       64        1e-3    input         first 1000 / last 200
#     kt-foil           2                        all       0       -             as stored; coordinates get no noise
#     airfrans          2                        all       0       -             by its manifest; AirfRANS.pt: 800 / 200
#
# Every entry can be overridden where it is used. Datasets that are not listed use everything as it is stored. Our own
# torus and Euler data hold only the frames that are used (20, 20 and 11), so nothing is left out of those. Where there
# is no validation split, the last tenth of the training trajectories is it (`ssno.data.splits.holdout`).


@dataclass(frozen=True)
class Defaults:
    """Conventions of one dataset. `splits` divide a public file that holds all trajectories.

    `time_index` thins files with at least `thinned_from` frames; shorter ones are taken whole.
    """

    time_index: slice = field(default_factory=lambda: slice(None))  # slices do not hash in Python 3.11
    thinned_from: int = 0
    resolution: int | None = None
    noise: float = 1e-3
    """Published, in [0, 1] units."""
    own_noise: float = 1e-3
    """Of our recipe, in standard deviations. Burgers: at 1e-3 some forecasts diverge after long trainings
    (results/burgers-noise.json); the published 5e-3 are 4.4e-2 of these. Chaos and tori: more noise gives forecasts
    that live beyond the horizon of training (docs/design/operator.md)."""
    conserves_mean: bool = False
    """Whether our recipe keeps the mean of every field: without it the mean of long forecasts on the tori drifts, and
    they diverge (docs/design/warp.md)."""
    context_time: ContextTime = "input"
    geometry: Geometry = CARTESIAN
    splits: Mapping[str, slice] = field(default_factory=dict)

    def frames_of(self, stored: int) -> slice:
        """Which of `stored` frames to use."""
        return self.time_index if stored >= self.thinned_from else slice(None)

    @property
    def published(self) -> int:
        """Trajectories that the published splits take together."""
        return self.splits["train"].stop - self.splits["test"].start if self.splits else 0


def _first_and_last(train: int, test: int) -> dict[str, slice]:
    """First trajectories to train on, the last to report on."""
    return {"train": slice(0, train), "test": slice(-test, None)}


EVERY_TENTH = slice(0, None, 10)
VARIED_TORUS = Defaults(EVERY_TENTH, 21, 64, own_noise=3e-2, conserves_mean=True, context_time="target")
CONVENTIONS: dict[str, Defaults] = {
    "burgers": Defaults(slice(0, 140, 7), noise=5e-3, own_noise=3e-2, splits=_first_and_last(2048, 1000)),
    "ks-attractor": Defaults(own_noise=1e-2),
    "torus-li": Defaults(resolution=64, own_noise=3e-2, conserves_mean=True, splits=_first_and_last(1000, 200)),
    "torus-vis": VARIED_TORUS,
    "torus-vis-force": VARIED_TORUS,
    "ce-rm": Defaults(slice(0, None, 2), 12, resolution=64, splits=_first_and_last(1000, 200)),
    "gce-rt": Defaults(resolution=64, splits=_first_and_last(1000, 200)),
    "kt-foil": Defaults(noise=0.0, geometry=POINT_CLOUD),
    "airfrans": Defaults(noise=0.0, geometry=POINT_CLOUD, splits=_first_and_last(800, 200)),
}


def dataset_conventions(name: str | None) -> Defaults:
    """The conventions of a dataset; those of no particular one if the name is not listed, or there is none."""
    return CONVENTIONS.get(name or "", Defaults())


# Reflection images of trajectories: more data for nothing, where the equation does not tell left from right.
#
#     even    u(-x)     densities, temperatures, concentrations
#     odd     -u(-x)    Burgers and KS in 1D, where u is a velocity; vorticity in 2D, for each axis by itself
#
# Of a box the middle stays where it is, so walls must be alike on both sides.

# Training noise that depends on (seed, epoch, step, sample) and on nothing else.
#
# Every sample of a batch has its own generator, seeded by a hash of those four numbers. Resuming a run,
# changing the number of workers or splitting a batch over machines therefore leaves the noise of each sample as
# it was.
#
# Noise is added to what the model sees, state and context alike, after normalisation, and in training only.


def sample_generator(*key: int) -> torch.Generator:
    """A CPU generator seeded by a hash of some non-negative integers, such as (seed, epoch, step, sample)."""
    # Two words per number and their count in front: NumPy drops leading zeros, so (1, 2) and (1, 2, 0) would
    # agree.
    words = [word for number in key for word in divmod(number, 2**32)]
    low, high = np.random.SeedSequence([len(key), *words]).generate_state(2)
    return torch.Generator().manual_seed(int(low) | int(high) << 32)


def noise_like(
    batch: Float[Tensor, "n ..."], *, std: float, seed: int, epoch: int, samples: Sequence[int], step: int = 0
) -> Float[Tensor, "n ..."]:
    """Gaussian noise of deviation `std` for each sample of a batch; `samples` are their numbers in the
    dataset.

    Drawn on the CPU in float32 and then moved, so a GPU run sees the noise of a CPU run.
    """
    if std < 0:
        raise ValueError(f"`std` must not be negative, got {std}.")
    if len(samples) != len(batch):
        raise ValueError(f"`samples` must name the {len(batch)} samples of the batch, got {len(samples)}.")
    if std == 0 or len(batch) == 0:
        return torch.zeros_like(batch)
    shape = batch.shape[1:]
    drawn = [torch.randn(shape, generator=sample_generator(seed, epoch, step, int(n))) for n in samples]
    return (std * torch.stack(drawn)).to(batch)


Reflection = Literal["none", "even", "odd"]
COINS = 5  # keeps the key of this draw apart from others


def reflected(frames: Frames, reflect: Reflection, key: tuple[int, int, int], samples: Sequence[int]) -> Frames:
    """Each sample as it is or as its image along each axis, by coins drawn from (seed, epoch, step, sample)."""
    if reflect == "none":
        return frames
    n_dims, sign = frames.state.ndim - 3, -1 if reflect == "odd" else 1
    coins = torch.stack([torch.rand(n_dims, generator=sample_generator(*key, n, COINS)) < 0.5 for n in samples])
    state, context = frames
    for axis in range(n_dims):
        tossed = coins[:, axis].to(state.device).reshape(-1, *(1,) * (state.ndim - 1))
        dim = axis - n_dims
        state = torch.where(tossed, sign * state.flip(dim), state)
        context = torch.where(tossed, context.flip(dim), context)
    return Frames(state, context)


def check_reflection(reflect: Reflection, data: Trajectories) -> None:
    """Refuse data whose images are not known to obey the same equation."""
    if reflect == "none":
        return
    data.geometry.require_box("reflect", data.name)
    if reflect == "odd" and (len(data.fields) > 1 or data.context_fields):
        names = ", ".join((*data.fields, *data.context_fields))
        raise ValueError(
            f"`reflect='odd'` needs a single field and no context fields; {data.name!r} has {names}. "
            "Use 'none', or 'even' if none of them changes its sign."
        )
