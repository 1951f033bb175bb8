"""Every model by name: what the command line offers and what files may name.

`MODELS` run on any Cartesian grid (and, as plain baselines, on the rectangle of colatitude and longitude);
`SPHERE_MODELS` are made for the grid of a sphere; `CLOUD_MODELS` take points without a grid;
`SLOW_MODELS` carry states from point to point, and are left out where the costs of all models are compared.
Users add their own with `register_model`, in their own code: no file and no option makes ssno import anything.
"""

from typing import Any

from ssno.base import unknown_name
from ssno.models.baselines.cnext_unet import CNextUNetConfig
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig, FNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.sfno import SFNOConfig
from ssno.models.baselines.trivial import LinearConfig, PersistenceConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.config import ModelVariant, OperatorConfig
from ssno.models.slices import SSNOSlicesConfig, TransolverConfig
from ssno.models.ssno import SSNOConfig
from ssno.models.ssno_sphere import SphereSSNOConfig

GRID_CONFIGS: tuple[type[OperatorConfig], ...] = (
    SSNOConfig,
    FFNOConfig,
    FNOConfig,
    UNetConfig,
    CNextUNetConfig,
    GKTConfig,
    FactformerConfig,
    PersistenceConfig,
    LinearConfig,
)
SLOW_MODELS = ("ssno-selective",)
MODELS = tuple(name for kind in GRID_CONFIGS for name in kind.names() if name not in SLOW_MODELS)
"""Names of the models of Cartesian grids."""
SPHERE_MODELS = (*SphereSSNOConfig.names(), *SFNOConfig.names())
CLOUD_MODELS = (SSNOSlicesConfig.model_name, TransolverConfig.model_name)
ALL_MODELS = (*MODELS, *SLOW_MODELS, *SPHERE_MODELS, *CLOUD_MODELS)
"""Names of all models of this library."""

OTHER_CONFIGS: tuple[type[OperatorConfig], ...] = (SphereSSNOConfig, SFNOConfig, SSNOSlicesConfig, TransolverConfig)
CONFIGS = {name: kind for kind in (*GRID_CONFIGS, *OTHER_CONFIGS) for name in kind.names()}
REGISTERED: dict[str, type[OperatorConfig]] = {}
"""What `register_model` added in this process."""


def register_model(name: str, config: type) -> None:
    """Make a model of your own known by name, in this process: runs, files and `ssno models` then take it like ours.

    `config` is a frozen dataclass derived from `OperatorConfig` whose `build()` makes the module. A name may be
    registered again, as a notebook does when a cell is run twice; the names of our models cannot.
    """
    if name in CONFIGS:
        raise ValueError(f"`name`: {name!r} is a model of ssno. Choose another name.")
    if not issubclass(config, OperatorConfig):
        raise TypeError(
            f"`config` must be a frozen dataclass derived from `OperatorConfig` whose `build()` makes the module, got "
            f"{config!r}. A module without one needs no name: `train(module, data)`, `load_forecaster(..., model=)`."
        )
    config.model_name = name
    REGISTERED[name] = config


def known_models() -> tuple[str, ...]:
    """The names of all models: ours, and those registered in this process."""
    return (*ALL_MODELS, *REGISTERED)


def config_type(name: str) -> type[OperatorConfig]:
    """The configuration that describes the model of this name."""
    known = {**CONFIGS, **REGISTERED}
    if name not in known:
        raise ValueError(
            f"{unknown_name(name, known_models())} A model of your own must be registered first, by your own code: "
            f"`ssno.register_model({name!r}, ItsConfig)`."
        )
    return known[name]


def model_config(text: str, **fields: Any) -> OperatorConfig:
    """A model by its name, `ffno`, or in its smallest size, `ffno:tiny`, with `fields` changed."""
    name, _, size = text.partition(":")
    kind = config_type(name)
    if size not in ("", "tiny"):
        raise ValueError(f"`model`: the only named size of {name!r} is {name}:tiny, got {text!r}.")
    variant = kind.variants.get(name, ModelVariant(""))
    if size:
        return kind.tiny(**{**variant.fields, **variant.smallest, **fields})
    return kind(**{**variant.fields, **fields})
