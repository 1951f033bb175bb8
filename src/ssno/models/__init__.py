"""SS-NO, its variants, the models it is compared with, and the registry that knows them by name."""

from ssno.models.baselines.cnext_unet import CNextUNet, CNextUNetConfig
from ssno.models.baselines.factformer import Factformer, FactformerConfig
from ssno.models.baselines.fno import FFNO, FNO, FFNOConfig, FNOConfig
from ssno.models.baselines.gkt import GKT, GKTConfig
from ssno.models.baselines.sfno import SFNO, SFNOConfig
from ssno.models.baselines.trivial import Linear, LinearConfig, Persistence, PersistenceConfig
from ssno.models.baselines.unet import UNet, UNetConfig
from ssno.models.config import GridConfig, ModelVariant, OperatorConfig
from ssno.models.frozen import FrozenOperator, freeze
from ssno.models.operator import (
    MemoryOperator,
    NeuralOperator,
    OperatorState,
    PrecomputedWeights,
    Spacing,
    count_parameters,
)
from ssno.models.pretrained import Pretrained, bundled_folders, load_weights, resolve_checkpoint
from ssno.models.reference import ReferenceSSNO
from ssno.models.registry import ALL_MODELS, MODELS, known_models, model_config, register_model
from ssno.models.slices import SSNOSlices, SSNOSlicesConfig, Transolver, TransolverConfig
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.models.ssno_sphere import SphereSSNO, SphereSSNOConfig
from ssno.models.wrapped import WrappedConfig, WrappedModule

__all__ = [
    "ALL_MODELS",
    "FFNO",
    "FNO",
    "GKT",
    "MODELS",
    "SFNO",
    "SSNO",
    "CNextUNet",
    "CNextUNetConfig",
    "FFNOConfig",
    "FNOConfig",
    "Factformer",
    "FactformerConfig",
    "FrozenOperator",
    "GKTConfig",
    "GridConfig",
    "Linear",
    "LinearConfig",
    "MemoryOperator",
    "ModelVariant",
    "NeuralOperator",
    "OperatorConfig",
    "OperatorState",
    "Persistence",
    "PersistenceConfig",
    "PrecomputedWeights",
    "Pretrained",
    "ReferenceSSNO",
    "SFNOConfig",
    "SSNOConfig",
    "SSNOSlices",
    "SSNOSlicesConfig",
    "Spacing",
    "SphereSSNO",
    "SphereSSNOConfig",
    "Transolver",
    "TransolverConfig",
    "UNet",
    "UNetConfig",
    "WrappedConfig",
    "WrappedModule",
    "bundled_folders",
    "count_parameters",
    "freeze",
    "known_models",
    "load_weights",
    "model_config",
    "register_model",
    "resolve_checkpoint",
]
