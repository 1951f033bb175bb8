"""SS-NO, its variants, the models it is compared with, and the registry that knows them by name."""

from ssno.models.baselines.factformer import Factformer, FactformerConfig
from ssno.models.baselines.ffno import FFNO, FFNOConfig
from ssno.models.baselines.fno import FNO, FNOR, FNOConfig, FNORConfig
from ssno.models.baselines.gkt import GKT, GKTConfig
from ssno.models.baselines.trivial import Linear, LinearConfig, Persistence, PersistenceConfig
from ssno.models.baselines.unet import UNet, UNetConfig
from ssno.models.bundled import bundled_folders, locate
from ssno.models.config import OperatorConfig
from ssno.models.count import count_parameters
from ssno.models.foreign import ForeignConfig, ForeignOperator
from ssno.models.frozen import FrozenOperator, freeze
from ssno.models.history import FramesConfig, MemoryConfig
from ssno.models.operator import GridWeights, MemoryOperator, NeuralOperator, OperatorState, Spacing
from ssno.models.pretrained import Pretrained, load_weights
from ssno.models.reference import Reference
from ssno.models.registry import MODELS, known_models, model_config, register_model
from ssno.models.ssno import SSNO, ScanConfig, ScanOperator, SSNOConfig
from ssno.models.ssno_product import SSNOProduct, SSNOProductConfig
from ssno.models.variants import SSNOFF, SSNOVM, SSNOFFConfig, SSNOUni, SSNOUniConfig, SSNOVMConfig

__all__ = [
    "FFNO",
    "FNO",
    "FNOR",
    "GKT",
    "MODELS",
    "SSNO",
    "SSNOFF",
    "SSNOVM",
    "FFNOConfig",
    "FNOConfig",
    "FNORConfig",
    "Factformer",
    "FactformerConfig",
    "ForeignConfig",
    "ForeignOperator",
    "FramesConfig",
    "FrozenOperator",
    "GKTConfig",
    "GridWeights",
    "Linear",
    "LinearConfig",
    "MemoryConfig",
    "MemoryOperator",
    "NeuralOperator",
    "OperatorConfig",
    "OperatorState",
    "Persistence",
    "PersistenceConfig",
    "Pretrained",
    "Reference",
    "SSNOConfig",
    "SSNOFFConfig",
    "SSNOProduct",
    "SSNOProductConfig",
    "SSNOUni",
    "SSNOUniConfig",
    "SSNOVMConfig",
    "ScanConfig",
    "ScanOperator",
    "Spacing",
    "UNet",
    "UNetConfig",
    "bundled_folders",
    "count_parameters",
    "freeze",
    "known_models",
    "load_weights",
    "locate",
    "model_config",
    "register_model",
]
