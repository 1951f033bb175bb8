"""SS-NO, its variants, the models it is compared with, and the registry that knows them by name."""

from ssno.models.baselines.factformer import Factformer, FactformerConfig
from ssno.models.baselines.ffno import FFNO, FFNOConfig
from ssno.models.baselines.fno import FNO, FNOR, FNOConfig, FNORConfig
from ssno.models.baselines.gkt import GKT, GKTConfig
from ssno.models.baselines.sfno import SFNO, SFNOConfig
from ssno.models.baselines.transolver import Transolver, TransolverConfig
from ssno.models.baselines.trivial import Linear, LinearConfig, Persistence, PersistenceConfig
from ssno.models.baselines.unet import UNet, UNetConfig
from ssno.models.bundled import bundled_folders, resolve_checkpoint
from ssno.models.config import OperatorConfig
from ssno.models.count import count_parameters
from ssno.models.foreign import WrappedConfig, WrappedModule
from ssno.models.frozen import FrozenOperator, freeze
from ssno.models.history import FramesConfig, MemoryConfig
from ssno.models.operator import MemoryOperator, NeuralOperator, OperatorState, PrecomputedWeights, Spacing
from ssno.models.pretrained import Pretrained, load_weights
from ssno.models.reference import ReferenceSSNO
from ssno.models.registry import ALL_MODELS, MODELS, known_models, model_config, register_model
from ssno.models.ssno import SSNO, ScanConfig, ScanOperator, SSNOConfig
from ssno.models.ssno_product import SSNOProduct, SSNOProductConfig
from ssno.models.ssno_slices import SSNOSlices, SSNOSlicesConfig
from ssno.models.ssno_sphere import SphereSSNO, SphereSSNOConfig
from ssno.models.variants import (
    SSNOFF,
    SSNOVM,
    SSNOFFConfig,
    SSNOSelective,
    SSNOSelectiveConfig,
    SSNOUni,
    SSNOUniConfig,
    SSNOVMConfig,
)

__all__ = [
    "ALL_MODELS",
    "FFNO",
    "FNO",
    "FNOR",
    "GKT",
    "MODELS",
    "SFNO",
    "SSNO",
    "SSNOFF",
    "SSNOVM",
    "FFNOConfig",
    "FNOConfig",
    "FNORConfig",
    "Factformer",
    "FactformerConfig",
    "FramesConfig",
    "FrozenOperator",
    "GKTConfig",
    "Linear",
    "LinearConfig",
    "MemoryConfig",
    "MemoryOperator",
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
    "SSNOFFConfig",
    "SSNOProduct",
    "SSNOProductConfig",
    "SSNOSelective",
    "SSNOSelectiveConfig",
    "SSNOSlices",
    "SSNOSlicesConfig",
    "SSNOUni",
    "SSNOUniConfig",
    "SSNOVMConfig",
    "ScanConfig",
    "ScanOperator",
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
