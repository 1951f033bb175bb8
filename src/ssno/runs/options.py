"""What a training run does, as one typed description, and two recipes that fill it in.

`paper` follows the publication: [0, 1] normalisation, AdamW at 1e-3 with cosine decay over 500 epochs, noise 1e-3.
`fast` is ours and the default: see `docs/training.md` for what each of its choices gained.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ssno.base.launched import processes
from ssno.base.requirements import require_seed
from ssno.data.defaults import dataset_conventions
from ssno.data.mirror import Mirror
from ssno.data.normalise import NormalisationMethod as Normalisation
from ssno.native.engine import Engine
from ssno.native.precision import Precision
from ssno.runs.unrolling import Rollout

Schedule = Literal["cosine", "one-cycle", "constant"]
Recipe = Literal["fast", "paper"]
MOST_EPOCHS, MOST_WORKERS = 10**7, 256
Loss = Literal["rel_l2", "volume_surface"]
Compile = bool | Literal["auto", "reduce-overhead"]
Monitor = Literal["rel_l2", "rel_l2_normalised", "rel_l2_onestep"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How to train."""

    epochs: int = 20
    """Passes over the training trajectories."""
    batch_size: int = 4
    """Trajectories per optimiser step, over all processes together; recipe fast takes 4 for each process."""
    learning_rate: float = 3e-3
    """Peak rate."""
    ssm_learning_rate: float | None = None
    """Peak rate of state-space dynamics (damping, frequency, step, input weight); None for the same."""
    weight_decay: float = 1e-4
    """AdamW's decay; state-space dynamics have none."""
    schedule: Schedule = "one-cycle"
    """How the rate moves over the run."""
    warmup: float = 0.3
    """Fraction of the run in which the rate rises (one-cycle: its first part; cosine: linear)."""
    clip: float = 1.0
    """Largest norm of the gradient; 0 for no clipping."""
    ema: float = 0.0
    """Decay of an exponential moving average of the weights, which is then evaluated and saved; 0 for none."""
    noise: float = 1e-3
    """Standard deviation of noise on the inputs, in normalised units."""
    mirror: Mirror = "none"
    """Mirror images of the data that also obey their equation, each shown half of the time: u(-x) or -u(-x)."""
    normalisation: Normalisation = "zscore"
    """Units the model works in; a training that starts from weights keeps theirs."""
    refit_normalisation: bool = False
    """Fit the units to these data even if the training starts from weights, which then meet other numbers."""
    increment: bool = True
    """Predict the change since the last frame instead of the frame."""
    loss: Loss = "rel_l2"
    """Relative error of a frame; or, on clouds of points, mean squares off the wall and on it (volume_surface)."""
    surface_weight: float = 1.0
    """Weight of the wall in the loss volume_surface."""
    grids: tuple[int, ...] = ()
    """Training resolutions (points along the first axis); one is sampled per batch. Empty: the data's own."""
    points: int = 0
    """Points of a cloud drawn anew for every step; 0 for all."""
    rollout: Rollout = field(default_factory=Rollout)
    """Teacher forcing or unrolling, how far, and where gradients end."""
    engine: Engine = "auto"
    """What computes: native code where it can be built (auto, fused), or PyTorch (torch, plain); see ssno.native."""
    precision: Precision = "float32"
    """Numbers: float32; bf16 for activations, weights stay float32; float64 for science. See ssno.native.precision."""
    compile: Compile = "auto"
    """Run the model through torch.compile (auto: on CUDA only); reduce-overhead also replays CUDA graphs."""
    patience: int = 0
    """Stop after this many evaluations without improvement; 0 for never."""
    monitor: Monitor = "rel_l2"
    """Validation metric that picks the best weights."""
    evaluate_every: int = 1
    """Epochs between evaluations."""
    workers: int = 0
    """Processes that read batches from disk, for data larger than memory; 0 reads all data into memory at the start."""
    seed: int = 0
    """Weights, shuffling, noise and dropout follow from it."""
    keep_every: int = 0
    """Also keep a checkpoint every so many epochs; 0 for only the last and the best."""
    save_seconds: float = 60.0
    """Save the last checkpoint at least this often."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        for name, most in (("epochs", MOST_EPOCHS), ("workers", MOST_WORKERS)):
            if getattr(self, name) > most:
                raise ValueError(f"`{name}` must be at most {most}, got {getattr(self, name)}.")
        require_seed(self.seed)
        counts = ("patience", "workers", "keep_every", "points")
        for name in ("weight_decay", "clip", "noise", "save_seconds", "surface_weight", *counts):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` must not be negative, got {getattr(self, name)}.")
        for name in ("learning_rate", "ssm_learning_rate"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise ValueError(f"`{name}` must be positive, got {rate}.")
        if any(points < 2 for points in self.grids) or len(set(self.grids)) < len(self.grids):
            raise ValueError(f"`grids` must be different numbers of points, at least 2, got {self.grids}.")
        if not 0 <= self.ema < 1:
            raise ValueError(f"`ema` must lie in [0, 1), got {self.ema}.")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"`warmup` is a fraction of the run and must lie in [0, 1), got {self.warmup}.")
        for name, kind in (
            ("schedule", Schedule),
            ("loss", Loss),
            ("normalisation", Normalisation),
            ("mirror", Mirror),
            ("monitor", Monitor),
            ("engine", Engine),
            ("precision", Precision),
        ):
            if getattr(self, name) not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise ValueError(f"`{name}` must be one of {allowed}, got {getattr(self, name)!r}.")
        if self.compile not in (True, False, "auto", "reduce-overhead"):
            raise ValueError(f"`compile` must be True, False, 'auto' or 'reduce-overhead', got {self.compile!r}.")
        self.rollout.stages(self.epochs)


def recipe(name: Recipe, *, n_dims: int = 1, dataset: str = "", **changes: Any) -> TrainOptions:
    """The options of a recipe for data with `n_dims` space axes; `changes` override single ones.

    Of several processes that were launched together each has the batch of one in `fast`; `paper` divides its own.
    On clouds of points `paper` is Transolver's training on AirfRANS, and `fast` that of our experiment.
    """
    if name == "fast":
        options = TrainOptions(noise=dataset_conventions(dataset).own_noise)
    elif name == "paper":
        options = TrainOptions(
            epochs=500,
            batch_size=32 if n_dims == 1 else 8,
            learning_rate=1e-3,
            schedule="cosine",
            warmup=0.0,
            clip=0.0,
            noise=dataset_conventions(dataset).noise,
            normalisation="minmax",
            increment=False,
        )
    else:
        raise ValueError(f"`recipe` must be 'fast' or 'paper', got {name!r}.")
    if dataset_conventions(dataset).cloud:
        options = CLOUD_RECIPES[name]
    if name == "fast":  # the batch of the paper is part of what was published
        options = replace(options, batch_size=options.batch_size * processes())
    return replace(options, **changes)


ON_CLOUDS = TrainOptions(
    loss="volume_surface", noise=0.0, normalisation="zscore", increment=False, monitor="rel_l2_normalised"
)
CLOUD_RECIPES: dict[Recipe, TrainOptions] = {
    "fast": replace(ON_CLOUDS, epochs=40, points=256, evaluate_every=5),
    "paper": replace(
        ON_CLOUDS, epochs=398, points=32_000, batch_size=1, learning_rate=1e-3, weight_decay=0.0, clip=0.0
    ),
}
