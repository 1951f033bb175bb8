"""Every model by name: what the command line offers and what files may name.

`MODELS` run on any Cartesian grid (and, as plain baselines, on the rectangle of colatitude and longitude);
`SPHERE_MODELS` know that their grid is a sphere's; `CLOUD_MODELS` take points without a grid;
`SLOW_MODELS` carry states from point to point, and are left out where all models are compared in cost.
Users add their own with `register_model`, in their own code: no file and no option makes ssno import anything.
"""

from ssno.base import unknown_name
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig, FNOConfig, FNORConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.sfno import SFNOConfig
from ssno.models.baselines.trivial import LinearConfig, PersistenceConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.config import OperatorConfig
from ssno.models.slices import SSNOSlicesConfig, TransolverConfig
from ssno.models.ssno import SSNOConfig
from ssno.models.ssno_sphere import SphereSSNOConfig
from ssno.models.variants import SSNOFFConfig, SSNOProductConfig, SSNOSelectiveConfig, SSNOUniConfig, SSNOVMConfig

MODELS: dict[str, type[OperatorConfig]] = {
    config.name: config
    for config in (
        SSNOConfig,
        SSNOUniConfig,
        SSNOVMConfig,
        SSNOFFConfig,
        SSNOProductConfig,
        FFNOConfig,
        FNOConfig,
        FNORConfig,
        UNetConfig,
        GKTConfig,
        FactformerConfig,
        PersistenceConfig,
        LinearConfig,
    )
}

SPHERE_MODELS: dict[str, type[OperatorConfig]] = {config.name: config for config in (SphereSSNOConfig, SFNOConfig)}
CLOUD_MODELS: dict[str, type[OperatorConfig]] = {config.name: config for config in (SSNOSlicesConfig, TransolverConfig)}
SLOW_MODELS: dict[str, type[OperatorConfig]] = {SSNOSelectiveConfig.name: SSNOSelectiveConfig}
ALL_MODELS = {**MODELS, **SLOW_MODELS, **SPHERE_MODELS, **CLOUD_MODELS}


REGISTERED: dict[str, type[OperatorConfig]] = {}
"""What `register_model` added in this process."""


def register_model(name: str, config: type) -> None:
    """Make a model of your own known by name, in this process: runs, files and `ssno models` then take it like ours.

    `config` is a frozen dataclass derived from `OperatorConfig` whose `build()` makes the module. A name may be
    registered again, as a notebook does when a cell is run twice; those of our models are taken.
    """
    if name in ALL_MODELS:
        raise ValueError(f"`name`: {name!r} is a model of ssno. Choose another name.")
    if not issubclass(config, OperatorConfig):
        raise TypeError(
            f"`config` must be a frozen dataclass derived from `OperatorConfig` whose `build()` makes the module, got "
            f"{config!r}. A module without one needs no name: `train(module, data)`, `load_forecaster(..., model=)`."
        )
    config.name = name
    REGISTERED[name] = config


def known_models() -> dict[str, type[OperatorConfig]]:
    """All models by name: ours, and those registered in this process."""
    return {**ALL_MODELS, **REGISTERED}


def named_model(text: str) -> OperatorConfig:
    """A model by its name, `ffno`, or in its smallest size, `ffno:tiny`."""
    name, _, size = text.partition(":")
    kind = model_config(name)
    if size not in ("", "tiny"):
        raise ValueError(f"`model`: the only named size of {name!r} is {name}:tiny, got {text!r}.")
    return kind.tiny() if size else kind()


def model_config(name: str) -> type[OperatorConfig]:
    """The configuration type of a model by name."""
    known = known_models()
    if name not in known:
        raise ValueError(
            f"{unknown_name(name, list(known))} A model of your own must be registered first, by your own code: "
            f"`ssno.register_model({name!r}, ItsConfig)`."
        )
    return known[name]
