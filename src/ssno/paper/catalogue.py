"""All experiments by name: every table and figure of the paper that holds results."""

from ssno.base import unknown_name
from ssno.paper.ablation import Ablation
from ssno.paper.airfoils import Airfoils
from ssno.paper.conditioning import ConditioningStudy
from ssno.paper.context import Context
from ssno.paper.cost import Cost2D, CostTable
from ssno.paper.damping import Damping
from ssno.paper.discretisation import Discretisation
from ssno.paper.experiment import Experiment
from ssno.paper.factorised import Factorised
from ssno.paper.field_of_view import FieldOfViewExperiment
from ssno.paper.fluids import EulerTable, NavierStokes
from ssno.paper.learning_rates import AirfoilRates, LearningRates, SphereRates
from ssno.paper.precision import PrecisionStudy
from ssno.paper.recipe import RecipeStudy
from ssno.paper.recovery import FourierRecovery
from ssno.paper.resolution import Resolution
from ssno.paper.selective import Selective
from ssno.paper.swe import ShallowWaterExperiment
from ssno.paper.table_1d import Headline
from ssno.paper.teacher_forcing import TeacherForcing, TeacherForcing2D
from ssno.paper.training_budget import TrainingBudget
from ssno.paper.transfer import Transfer
from ssno.paper.trial import Scale
from ssno.paper.unidirectional import Unidirectional, Unidirectional2D
from ssno.paper.walls import Walls
from ssno.paper.window import MemoryWindow

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
