"""What a training run does, as one typed description, and two recipes that fill it in.

`paper` follows the publication: [0, 1] normalisation, AdamW at 1e-3 with cosine decay over 500 epochs, noise 1e-3.
`fast` is ours and the default: see `docs/evidence/recipe.md` for what each of its choices gained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from ssno.base.checks import require_one_of, require_seed, unknown_name
from ssno.base.distributed_env import processes
from ssno.data.normalise import NormalisationMethod as Normalisation
from ssno.data.windows import Reflection, Window, dataset_conventions
from ssno.native.engine import Engine, Precision

# How trajectories are unrolled while a model learns: one typed schedule over the run.
#
#  teacher_forcing      share of frames that are true instead of the model's own     1 teacher forcing, 0 free running
#     frames                  predicted frames per trajectory, cut out at a random place      0 for all there are
#     pushforward             times the inputs are first replaced by predictions, without gradient
#     truncate                truncated back-propagation: the gradient ends every so many frames
#     gradient_checkpointing  keep the input of each step, compute its inside again in the backward pass
#
# The first three are lists over the run. One value holds throughout; n values divide the epochs into n parts of equal
# length, so `teacher_forcing 1 0.5 0` lets go in three stages and `frames 4 8 16 16` gives the longest unroll half of
# the run. The `Stage` of an epoch is a function of the epoch alone: a resumed run needs nothing else.


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What holds in one epoch."""

    teacher_forcing: float = 1.0
    frames: int = 0
    pushforward: int = 0
    truncate: int = 0
    gradient_checkpointing: bool = False

    @property
    def parallel(self) -> bool:
        """With true inputs only, all time steps are computed at once; otherwise one frame after the other."""
        return self.teacher_forcing == 1

    def window(self, window: Window) -> Window:
        """The protocol on pieces of this stage's length."""
        return replace(window, horizon=self.frames) if self.frames else window

    def length(self, window: Window, frames: int) -> int:
        """How many of the frames of a trajectory this stage looks at: the input frames and `frames` more."""
        plan = window.plan(frames)
        return len(plan.input_frames) + self.frames if self.frames else frames


@dataclass(frozen=True, kw_only=True)
class Unrolling:
    """How trajectories are unrolled in training. Lists divide the run into stages of equal length."""

    teacher_forcing: tuple[float, ...] = (1.0,)
    """Share of true frames among the inputs, per stage: 1 is teacher forcing, 0 feeds the model its own predictions."""
    frames: tuple[int, ...] = (0,)
    """Predicted frames per trajectory, per stage; 0 for all there are."""
    pushforward: tuple[int, ...] = (0,)
    """Times that inputs are replaced by predictions without gradient before the loss is taken, per stage."""
    truncate: int = 0
    """Truncated back-propagation: end the gradient after this many predicted frames; 0 for never."""
    gradient_checkpointing: bool = False
    """Gradient checkpointing: recompute each unrolled step in the backward pass instead of storing activations."""

    def __post_init__(self) -> None:
        for name in ("teacher_forcing", "frames", "pushforward"):
            if not getattr(self, name):
                raise ValueError(f"`unroll.{name}` is empty. Give one value, or one for each stage of the run.")
        if not all(0 <= share <= 1 for share in self.teacher_forcing):
            raise ValueError(
                f"`unroll.teacher_forcing` is a share of frames and must lie in [0, 1], got {self.teacher_forcing}."
            )
        for name in ("frames", "pushforward"):
            if min(getattr(self, name)) < 0:
                raise ValueError(f"`unroll.{name}` must not be negative, got {getattr(self, name)}.")
        if self.truncate < 0:
            raise ValueError(f"`unroll.truncate` must be a number of frames, or 0 for never, got {self.truncate}.")
        if all(share == 1 for share in self.teacher_forcing):
            for name, what in (
                ("truncate", "no gradient passes from step to step"),
                ("gradient_checkpointing", "there are no steps"),
            ):
                if getattr(self, name):
                    raise ValueError(
                        f"`unroll.{name}` does nothing here: with `unroll.teacher_forcing` 1 all frames are "
                        f"computed at once and {what}. Lower `unroll.teacher_forcing`, or save memory with a "
                        "smaller `batch_size`."
                    )

    def stage(self, epoch: int, epochs: int) -> Stage:
        """What holds in epoch number `epoch` of `epochs`."""
        return Stage(
            teacher_forcing=self.teacher_forcing[len(self.teacher_forcing) * epoch // epochs],
            frames=self.frames[len(self.frames) * epoch // epochs],
            pushforward=self.pushforward[len(self.pushforward) * epoch // epochs],
            truncate=self.truncate,
            gradient_checkpointing=self.gradient_checkpointing,
        )

    def stages(self, epochs: int) -> list[Stage]:
        """The different stages of a run, in order; senseless ones and ones that would never be reached are refused."""
        for name in ("teacher_forcing", "frames", "pushforward"):
            count = len(getattr(self, name))
            if count > epochs:
                raise ValueError(
                    f"`unroll.{name}` has {count} stages, but the run only {epochs} epochs. Train longer or drop some."
                )
        counts = {len(self.teacher_forcing), len(self.frames), len(self.pushforward)}
        begins = sorted({-(-part * epochs // count) for count in counts for part in range(count)})
        found = {epoch: self.stage(epoch, epochs) for epoch in begins}
        for epoch, stage in found.items():
            if stage.pushforward and not stage.parallel:
                raise ValueError(
                    f"In epoch {epoch + 1} of {epochs}, `unroll.pushforward` is {stage.pushforward} and "
                    f"`unroll.teacher_forcing` {stage.teacher_forcing:g}: the model already sees its own predictions. "
                    "Set pushforward to 0 or teacher_forcing to 1."
                )
        return list(dict.fromkeys(found.values()))


def check_frames(stages: Sequence[Stage], window: Window, frames: int) -> None:
    """Refuse stages that need longer trajectories than there are."""
    plan = window.plan(frames)
    for stage in stages:
        if stage.length(window, plan.predicted.stop) > plan.predicted.stop:
            there = plan.predicted.stop - len(plan.input_frames)
            raise ValueError(
                f"`unroll.frames` asks for {stage.frames} predicted frames, but after {len(plan.input_frames)} input "
                f"frames these trajectories have {there}. Use at most {there}, or 0 for all."
            )
        predicted = stage.frames or len(plan.loss_steps)
        if stage.pushforward >= predicted:
            raise ValueError(
                f"`unroll.pushforward` is {stage.pushforward}, but of {predicted} predicted frames at most "
                f"{predicted - 1} can be inputs. Use fewer, or more `unroll.frames`."
            )


# What a training run does, as one typed description, and two recipes that fill it in.

Optimizer = Literal["adamw", "soap", "muon"]
Schedule = Literal["cosine", "one-cycle", "constant"]
Recipe = Literal["fast", "paper"]
"""Options of training: ours, or those of the paper."""
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
    optimizer: Optimizer = "soap"
    """AdamW; SOAP, which is Adam in eigenbases of the gradients; or Muon, which orthogonalises them."""
    precondition_every: int = 10
    """Steps between updates of SOAP's eigenbases."""
    learning_rate: float = 1e-2
    """Peak learning rate. AdamW often wants 3e-3."""
    ssm_learning_rate: float | None = None
    """Peak learning rate of state-space dynamics (damping, frequency, step, input weight); None for the same."""
    weight_decay: float = 1e-4
    """Decoupled weight decay; state-space dynamics have none."""
    schedule: Schedule = "one-cycle"
    """Learning-rate schedule."""
    warmup: float = 0.3
    """Fraction of the run in which the learning rate rises (one-cycle: its first part; cosine: linear)."""
    grad_clip: float = 1.0
    """Largest norm of the gradient; 0 for no clipping."""
    ema: float = 0.0
    """Decay of an exponential moving average of the weights, which is then evaluated and saved; 0 for none."""
    noise_std: float = 1e-3
    """Standard deviation of noise on the inputs, in normalised units."""
    reflect: Reflection = "none"
    """Reflection images of the data that also obey their equation, each shown half of the time: u(-x) or -u(-x)."""
    normalisation: Normalisation = "zscore"
    """Normalisation of the fields; fine-tuning (`start_from`) keeps that of the checkpoint."""
    refit_normalisation: bool = False
    """Fit the normalisation to these data when fine-tuning, instead of keeping the checkpoint's."""
    predict_increment: bool = True
    """Predict the change since the last frame instead of the frame."""
    conserve_mean: bool = False
    """Keep the mean of each field over the grid in every step, where the equation does: forecasts then live longer."""
    loss: Loss = "rel_l2"
    """Relative error of a frame; or, on point clouds, mean squares of volume and surface points (volume_surface)."""
    surface_weight: float = 1.0
    """Weight of the wall in the loss volume_surface."""
    grids: tuple[int, ...] = ()
    """Training resolutions (points along the first axis); one is sampled per batch. Empty: the data's own."""
    points_per_step: int = 0
    """Points of a cloud drawn anew for every step; 0 for all."""
    unroll: Unrolling = field(default_factory=Unrolling)
    """Teacher forcing or unrolling, how far, and where gradients end."""
    engine: Engine = "auto"
    """What computes: native code where it can be built (auto, fused), else PyTorch (torch, plain, triton)."""
    precision: Precision = "float32"
    """Floating-point format: float32; bf16 for activations (weights stay float32); float64."""
    compile: Compile = "auto"
    """Run the model through torch.compile (auto: on CUDA only); reduce-overhead also replays CUDA graphs."""
    patience: int = 0
    """Stop after this many evaluations without improvement; 0 for never."""
    monitor: Monitor = "rel_l2"
    """Validation metric that picks the best weights."""
    evaluate_every: int = 1
    """Epochs between evaluations."""
    num_workers: int = 0
    """Processes that read batches from disk, for data larger than memory; 0 reads all data into memory at the start."""
    shuffle_buffer: int = 0
    """Read files in order, in blocks, and shuffle within a buffer of so many trajectories, for data larger than memory;
    0 shuffles all and reads each trajectory by itself."""
    seed: int = 0
    """Weights, shuffling, noise and dropout follow from it."""
    keep_every: int = 0
    """Also keep a checkpoint every so many epochs; 0 for only the last and the best."""
    save_seconds: float = 60.0
    """Save the last checkpoint at least this often."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "evaluate_every", "precondition_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        for name, most in (("epochs", MOST_EPOCHS), ("num_workers", MOST_WORKERS)):
            if getattr(self, name) > most:
                raise ValueError(f"`{name}` must be at most {most}, got {getattr(self, name)}.")
        require_seed(self.seed)
        counts = ("patience", "num_workers", "shuffle_buffer", "keep_every", "points_per_step")
        for name in ("weight_decay", "grad_clip", "noise_std", "save_seconds", "surface_weight", *counts):
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
            ("optimizer", Optimizer),
            ("schedule", Schedule),
            ("loss", Loss),
            ("normalisation", Normalisation),
            ("reflect", Reflection),
            ("monitor", Monitor),
            ("engine", Engine),
            ("precision", Precision),
        ):
            require_one_of(name, getattr(self, name), get_args(kind))
        if self.precondition_every != 10 and self.optimizer != "soap":
            raise ValueError(
                f"`precondition_every` is {self.precondition_every}, but only `optimizer` 'soap' has eigenbases to "
                f"update, not {self.optimizer!r}. Leave it out, or choose 'soap'."
            )
        require_one_of("compile", self.compile, (True, False, "auto", "reduce-overhead"))
        self.unroll.stages(self.epochs)


def recipe(
    name: Recipe, *, n_dims: int = 1, dataset: str = "", suited: Mapping[str, Any] | None = None, **changes: Any
) -> TrainOptions:
    """The options of a recipe for data with `n_dims` space axes; `changes` override single ones.

    `suited` are the options with which `fast` trains a model better than with its own (`OperatorConfig.training`).

    Of several processes that were launched together each has the batch of one in `fast`; `paper` divides its own.
    On clouds of points `paper` is Transolver's training on AirfRANS, and `fast` that of our experiment.
    """
    require_one_of("recipe", name, get_args(Recipe))
    known = [option.name for option in fields(TrainOptions)]
    if unknown := [change for change in changes if change not in known]:
        raise TypeError(unknown_name(unknown[0], known, kind="option of training"))
    if name == "fast":
        usual = dataset_conventions(dataset)
        options = TrainOptions(noise_std=usual.own_noise, conserve_mean=usual.conserves_mean, **(suited or {}))
    else:
        options = TrainOptions(
            epochs=500,
            batch_size=32 if n_dims == 1 else 8,
            optimizer="adamw",
            learning_rate=1e-3,
            schedule="cosine",
            warmup=0.0,
            grad_clip=0.0,
            noise_std=dataset_conventions(dataset).noise,
            normalisation="minmax",
            predict_increment=False,
        )
    if dataset_conventions(dataset).geometry.has_wall:
        options = CLOUD_RECIPES[name]
    if name == "fast":  # the batch of the paper is part of what was published
        options = replace(options, batch_size=options.batch_size * processes())
    return replace(options, **changes)


ON_CLOUDS = TrainOptions(
    optimizer="adamw",
    learning_rate=3e-3,
    loss="volume_surface",
    noise_std=0.0,
    normalisation="zscore",
    predict_increment=False,
    monitor="rel_l2_normalised",
)
CLOUD_RECIPES: dict[Recipe, TrainOptions] = {
    "fast": replace(ON_CLOUDS, epochs=40, points_per_step=256, evaluate_every=5),
    "paper": replace(
        ON_CLOUDS, epochs=398, points_per_step=32_000, batch_size=1, learning_rate=1e-3, weight_decay=0.0, grad_clip=0.0
    ),
}
