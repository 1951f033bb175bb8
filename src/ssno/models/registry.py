"""Every model by name: what the command line offers and what files may name."""

from ssno.models.config import OperatorConfig, unknown_name
from ssno.models.ssno import SSNOConfig

MODELS: dict[str, type[OperatorConfig]] = {config.name: config for config in (SSNOConfig,)}


def model_config(name: str) -> type[OperatorConfig]:
    """The configuration type of a model by name."""
    if name not in MODELS:
        raise ValueError(unknown_name(name, list(MODELS)))
    return MODELS[name]
