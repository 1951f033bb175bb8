"""Every model by name: what the command line offers and what files may name.

`MODELS` run on any Cartesian grid (and, as plain baselines, on the rectangle of colatitude and longitude);
`SPHERE_MODELS` know that their grid is a sphere's; `CLOUD_MODELS` take points without a grid;
`SLOW_MODELS` carry states from point to point, and are left out where all models are compared in cost.
"""

from ssno.base import unknown_name
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.ffno import FFNOConfig
from ssno.models.baselines.fno import FNOConfig, FNORConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.sfno import SFNOConfig
from ssno.models.baselines.transolver import TransolverConfig
from ssno.models.baselines.trivial import LinearConfig, PersistenceConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.config import OperatorConfig
from ssno.models.ssno import SSNOConfig
from ssno.models.ssno_slices import SSNOSlicesConfig
from ssno.models.ssno_sphere import SphereSSNOConfig
from ssno.models.variants import SSNOFFConfig, SSNOSelectiveConfig, SSNOUniConfig, SSNOVMConfig

MODELS: dict[str, type[OperatorConfig]] = {
    config.name: config
    for config in (
        SSNOConfig,
        SSNOUniConfig,
        SSNOVMConfig,
        SSNOFFConfig,
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


def model_config(name: str) -> type[OperatorConfig]:
    """The configuration type of a model by name."""
    if name not in ALL_MODELS:
        raise ValueError(unknown_name(name, list(ALL_MODELS)))
    return ALL_MODELS[name]
