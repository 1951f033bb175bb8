"""Our own studies: what the paper has nothing about. `ssno reproduce NAME` runs them from a checkout.

They are experiments as those of `ssno.paper`, but not part of the package.
"""

from ssno.paper.experiment import Experiment
from studies.box import BOX
from studies.conditioning import CONDITIONING
from studies.discretisation import DISCRETISATION
from studies.horizon import HORIZON
from studies.learning_rates import AIRFOIL_RATES, LEARNING_RATES, SPHERE_RATES
from studies.precision import PRECISION
from studies.recipe import RECIPE
from studies.selective import SELECTIVE
from studies.training_budget import BUDGET
from studies.transfer import TRANSFER
from studies.walls import WALLS

STUDIES: dict[str, Experiment] = {
    study.name: study
    for study in (
        RECIPE,
        BUDGET,
        LEARNING_RATES,
        TRANSFER,
        DISCRETISATION,
        AIRFOIL_RATES,
        SELECTIVE,
        PRECISION,
        WALLS,
        CONDITIONING,
        SPHERE_RATES,
        HORIZON,
        BOX,
    )
}
