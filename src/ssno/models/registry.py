"""Every model by name: what the command line offers and what files may name."""

from ssno.models.config import OperatorConfig, unknown_name
from ssno.models.factformer import FactformerConfig
from ssno.models.ffno import FFNOConfig
from ssno.models.fno import FNOConfig, FNORConfig
from ssno.models.gkt import GKTConfig
from ssno.models.ssno import SSNOConfig
from ssno.models.ssno_ff import SSNOFFConfig
from ssno.models.ssno_uni import SSNOUniConfig
from ssno.models.ssno_vm import SSNOVMConfig
from ssno.models.trivial import LinearConfig, PersistenceConfig
from ssno.models.unet import UNetConfig

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


def model_config(name: str) -> type[OperatorConfig]:
    """The configuration type of a model by name."""
    if name not in MODELS:
        raise ValueError(unknown_name(name, list(MODELS)))
    return MODELS[name]
