"""Typed model descriptions: frozen dataclasses that validate themselves, build the model, and are JSON on disk.

A configuration read from a file names its model; only names in `ssno.models.registry` are known, so opening a file
never imports or runs anything that the file chooses.

How a model sees the past:

    memory              a causal state-space block over the last K frames   memory=MemoryOptions(window=K)
    Markovian           the newest frame only                               memory=MemoryOptions(window=0)
    frames as channels  the last K frames stacked into one input            frames_as_channels=K, no memory

The calling convention of the three is the same (`ssno.models.operator`).
"""

import abc
import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from torch import nn

from ssno.base import description_from_json, require_positive
from ssno.layers.memory import MemoryOptions

LARGEST_MODEL = 2**28
"""Parameters of the largest model that is built: a gibibyte of float32."""
SIZES = (
    *("in_channels", "out_channels", "hidden_channels", "head_channels", "embed_dim", "n_layers", "blocks_per_level"),
    *("n_modes", "n_heads", "n_slices", "lattice", "scale_factor"),
)
"""Fields that count something of which a model that has the field needs at least one."""
LARGEST_SIZES = {"n_layers": 256, "d_state": 1024}
"""Limits of sizes that cost time rather than parameters."""

ADAMW: Mapping[str, Any] = {"optimizer": "adamw", "learning_rate": 3e-3}
"""Options of training for models that learn more in equal time with AdamW than with SOAP."""

Config = TypeVar("Config", bound="OperatorConfig")


@dataclass(frozen=True)
class ModelVariant:
    """A model with a name of its own that is another one with some fields changed."""

    summary: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the defaults."""
    smallest: Mapping[str, Any] = field(default_factory=dict)
    """What differs from these in the smallest useful size."""
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class OperatorConfig(abc.ABC):
    """The interface of all model descriptions. `in_channels` counts state and context fields, not coordinates."""

    model_name: ClassVar[str]
    """How commands and files call the model with the default fields."""
    variants: ClassVar[Mapping[str, ModelVariant]] = {}
    """Other models that this configuration describes, by name."""
    origin: ClassVar[str] = "your own"
    """Where the model comes from: a paper, or a project."""
    training: ClassVar[Mapping[str, Any]] = {}
    """Options of training in which the recipe `fast` differs for this model (trials in docs/design/operator.md)."""
    geometries: ClassVar[tuple[str, ...]] = ("cartesian", "sphere")
    """Kinds of grids that the model takes; on the sphere most see a rectangle of colatitude and longitude."""
    smallest: ClassVar[Mapping[str, Any]] = {}
    """The fields of the smallest useful size."""

    in_channels: int = 1
    """State fields plus context fields."""
    out_channels: int = 1
    """Predicted fields."""
    n_dims: int = 1
    """Number of grid axes."""

    def __post_init__(self) -> None:
        for name in SIZES:
            require_positive(name, getattr(self, name, 1))
        if self.n_dims not in (1, 2, 3):
            raise ValueError(f"`n_dims` must be 1, 2 or 3, got {self.n_dims}.")
        for name, most in LARGEST_SIZES.items():
            if getattr(self, name, 0) > most:
                raise ValueError(f"`{name}` must be at most {most:,}, got {getattr(self, name):,}.")
        if self.approximate_size() > LARGEST_MODEL:
            raise ValueError(
                f"This {self.name!r} model would have about {self.approximate_size():,} parameters; models of up to "
                f"{LARGEST_MODEL:,} are built. Make it narrower or shallower."
            )

    @property
    def name(self) -> str:
        """How commands and files call this model."""
        return self.model_name

    @classmethod
    def names(cls) -> list[str]:
        """All models that this configuration describes."""
        return [cls.model_name, *cls.variants]

    @classmethod
    def summary(cls, name: str) -> str:
        """What a model of this name is, in one line."""
        described = cls.variants.get(name)
        return described.summary if described else (inspect.getdoc(cls) or "").splitlines()[0]

    @abc.abstractmethod
    def build(self) -> nn.Module:
        """The model, freshly initialised from torch's random state."""

    def build_described(self) -> nn.Module:
        """The model of `build`; one that does not carry its description as `config` is given this one."""
        model = self.build()
        if not hasattr(model, "config"):
            model.config = self  # type: ignore[assignment]
        return model

    def check_grid_type(self, geometry: str) -> None:
        """Refuse data on a kind of grid that the model cannot take."""
        if geometry not in self.geometries:
            raise ValueError(
                f"Model {self.name!r} takes data of the geometry {' or '.join(map(repr, self.geometries))}, but these "
                f"have {geometry!r}. `ssno models` lists the geometries of every model."
            )

    def approximate_size(self) -> int:
        """Roughly how many parameters the model has, from its sizes alone, without allocating them."""

        def size(name: str) -> int:
            return max(1, getattr(self, name, 1))

        memory = getattr(self, "memory", None)
        width = max(size("hidden_channels"), size("embed_dim"))
        inner = max(2 * width, size("head_channels") * size("n_heads"))
        entering = self.in_channels * size("frames_as_channels") + self.out_channels
        states = size("d_state") + (memory.d_state if isinstance(memory, MemoryOptions) else 1)
        return size("n_layers") * self.n_dims * (4 * width * inner + 4 * width * states) + entering * inner

    def for_grid(self: Config, grid: Sequence[int]) -> Config:
        """The same model with no more Fourier modes than `grid` resolves; a model without modes is unchanged."""
        return self

    def recommended(self: Config, *, periodic: bool | Sequence[bool]) -> Config:
        """The same model with the settings of our recipe for data whose axes are `periodic`, or not."""
        return self

    def frames_seen(self) -> int:
        """How many frames the model looks at: its memory, or the frames it takes as channels."""
        memory = getattr(self, "memory", None)
        remembered = memory.window if isinstance(memory, MemoryOptions) else 1
        return getattr(self, "frames_as_channels", 0) or remembered

    @classmethod
    def tiny(cls: type[Config], **fields: Any) -> Config:
        """The smallest useful size, with `fields` changed: for tests and first tries."""
        return cls(**{**cls.smallest, **fields})

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete, with the model's name."""
        return {"model": self.name, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls: type[Config], values: Mapping[str, Any]) -> Config:
        """The inverse of `to_json`. Unknown names, values of a wrong type, and absurd sizes are refused."""
        values = dict(values)
        name = values.pop("model", cls.model_name)
        if name not in cls.names():
            described = " or ".join(map(repr, cls.names()))
            raise ValueError(f"The configuration is of a {name!r} model, but {cls.__name__} describes {described}.")
        for key, value in cls.variants[name].fields.items() if name in cls.variants else ():
            plain: Any = dataclasses.asdict(value) if dataclasses.is_dataclass(type(value)) else value
            given = values.get(key, plain)
            values[key] = {**plain, **given} if isinstance(given, Mapping) else given
        return description_from_json(cls, values)


@dataclass(frozen=True, kw_only=True)
class GridConfig(OperatorConfig):
    """The interface of learned models of fields on a grid, which may take several frames as channels of one input."""

    frames_as_channels: int = 0
    """Stack this many frames, oldest first, into one input and predict one frame; 0 maps frame by frame."""
    coordinates: bool | tuple[int, ...] = True
    """Append grid coordinates to the input: of all axes, of none, or of these, counted from 0. Without coordinates a
    periodic model commutes with translations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frames_as_channels < 0:
            raise ValueError(
                "`frames_as_channels` must be 0 (frame by frame) or the number of frames to stack, "
                f"got {self.frames_as_channels}."
            )
        memory = getattr(self, "memory", None)
        if self.frames_as_channels and memory is not None and memory.window:
            raise ValueError(
                f"`frames_as_channels={self.frames_as_channels}` leaves one time step, so a memory of "
                f"`memory.window={memory.window}` has nothing to see. Set one of the two to 0."
            )
        for axis in self.coordinate_axes():
            if not 0 <= axis < self.n_dims:
                raise ValueError(
                    f"`coordinates` must be True, False or axes in 0 ... {self.n_dims - 1}, got {self.coordinates}."
                )

    def coordinate_axes(self) -> tuple[int, ...]:
        """The axes whose coordinates enter the model."""
        if isinstance(self.coordinates, bool):
            return tuple(range(self.n_dims)) if self.coordinates else ()
        return self.coordinates

    def lifted_channels(self) -> int:
        """Channels that enter the first layer: fields of all stacked frames, and coordinates."""
        return self.in_channels * max(1, self.frames_as_channels) + len(self.coordinate_axes())
