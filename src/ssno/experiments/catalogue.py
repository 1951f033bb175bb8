"""All experiments by name. Those of the 2D tables join here."""

from ssno.base import unknown_name
from ssno.experiments.ablation import Ablation
from ssno.experiments.airfoils import Airfoils
from ssno.experiments.cost import Cost
from ssno.experiments.damping import Damping
from ssno.experiments.experiment import Experiment
from ssno.experiments.field_of_view import FieldOfViewExperiment
from ssno.experiments.headline import Headline
from ssno.experiments.recipe import RecipeStudy
from ssno.experiments.recovery import FourierRecovery
from ssno.experiments.resolution import Resolution
from ssno.experiments.teacher_forcing import TeacherForcing
from ssno.experiments.trial import Scale
from ssno.experiments.unidirectional import Unidirectional
from ssno.experiments.window import MemoryWindow

EXPERIMENTS: dict[str, type[Experiment]] = {
    kind.name: kind
    for kind in (
        RecipeStudy,
        Headline,
        Ablation,
        Damping,
        Unidirectional,
        MemoryWindow,
        TeacherForcing,
        Resolution,
        Cost,
        FourierRecovery,
        FieldOfViewExperiment,
        Airfoils,
    )
}


def find_experiment(name: str, *, scale: Scale = "cpu", seeds: int | None = None) -> Experiment:
    """The experiment of a name at a scale."""
    if name not in EXPERIMENTS:
        raise ValueError(unknown_name(name, list(EXPERIMENTS)))
    return EXPERIMENTS[name](scale=scale, seeds=seeds)
