"""All experiments by name: every table and figure of the paper that holds results."""

from ssno.base import unknown_name
from ssno.experiments.ablation import Ablation
from ssno.experiments.airfoils import Airfoils
from ssno.experiments.conditioning import ConditioningStudy
from ssno.experiments.context import Context
from ssno.experiments.cost import CostTable
from ssno.experiments.cost_2d import Cost2D
from ssno.experiments.damping import Damping
from ssno.experiments.discretisation import Discretisation
from ssno.experiments.experiment import Experiment
from ssno.experiments.factorised import Factorised
from ssno.experiments.field_of_view import FieldOfViewExperiment
from ssno.experiments.fluids import EulerTable, NavierStokes
from ssno.experiments.headline import Headline
from ssno.experiments.learning_rates import AirfoilRates, LearningRates, SphereRates
from ssno.experiments.precision import PrecisionStudy
from ssno.experiments.recipe import RecipeStudy
from ssno.experiments.recovery import FourierRecovery
from ssno.experiments.resolution import Resolution
from ssno.experiments.selective import Selective
from ssno.experiments.swe import ShallowWaterExperiment
from ssno.experiments.teacher_forcing import TeacherForcing
from ssno.experiments.teacher_forcing_2d import TeacherForcing2D
from ssno.experiments.training_budget import TrainingBudget
from ssno.experiments.transfer import Transfer
from ssno.experiments.trial import Scale
from ssno.experiments.unidirectional import Unidirectional, Unidirectional2D
from ssno.experiments.walls import Walls
from ssno.experiments.window import MemoryWindow

EXPERIMENTS: dict[str, type[Experiment]] = {
    kind.name: kind
    for kind in (
        RecipeStudy,
        Headline,
        TrainingBudget,
        Ablation,
        Damping,
        Unidirectional,
        Unidirectional2D,
        NavierStokes,
        LearningRates,
        EulerTable,
        Factorised,
        Context,
        TeacherForcing2D,
        MemoryWindow,
        TeacherForcing,
        Resolution,
        Transfer,
        Discretisation,
        CostTable,
        Cost2D,
        FourierRecovery,
        FieldOfViewExperiment,
        Airfoils,
        AirfoilRates,
        Selective,
        PrecisionStudy,
        Walls,
        ConditioningStudy,
        ShallowWaterExperiment,
        SphereRates,
    )
}


def find_experiment(name: str, *, scale: Scale = "cpu", seeds: int | None = None) -> Experiment:
    """The experiment of a name at a scale."""
    if name not in EXPERIMENTS:
        raise ValueError(unknown_name(name, list(EXPERIMENTS)))
    return EXPERIMENTS[name](scale=scale, seeds=seeds)
