"""The run-time type checks of tests/conftest.py see what jaxtyping's own see."""

from collections.abc import Callable
from dataclasses import dataclass

import jaxtyping
import pytest
import torch
from beartype import beartype
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from ssno.forecasting.metrics import frame_errors
from ssno.runs.options import TrainOptions


@jaxtyping.jaxtyped(typechecker=beartype)
@dataclass
class Node:
    value: int
    next: "Node | None" = None


def outer(scale: float) -> Callable[[Tensor], Tensor]:
    """A function inside a function, decorated as the import hook does it."""

    @jaxtyping.jaxtyped(typechecker=beartype)
    def inner(x: Float[Tensor, " n"], y: Float[Tensor, " n"] | None = None) -> Float[Tensor, " n"]:
        return scale * x if y is None else y.new_zeros(3)

    return inner


def test_shapes_of_one_call_must_agree() -> None:
    with pytest.raises(TypeCheckError):
        frame_errors(torch.zeros(2, 3, 1, 8), torch.zeros(2, 3, 1, 9))
    assert frame_errors(torch.ones(2, 3, 1, 9), torch.ones(2, 3, 1, 9)).shape == (2, 3)  # another call, other sizes


def test_fields_of_dataclasses_are_checked() -> None:
    with pytest.raises(TypeCheckError, match="epochs"):
        TrainOptions(epochs="three")


def test_functions_inside_functions_share_their_checks_and_nothing_else() -> None:
    double, triple = outer(2.0), outer(3.0)
    assert (double(torch.ones(1)).item(), triple(torch.ones(2))[0].item(), double(torch.ones(3))[0].item()) == (2, 3, 2)
    with pytest.raises(TypeCheckError, match="parameters"):
        double(torch.ones(2), torch.ones(3))
    with pytest.raises(TypeCheckError, match="return value"):
        triple(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeCheckError, match="parameters"):
        double(3)


@pytest.mark.usefixtures("as_users_call_it")
def test_switched_off_nothing_is_checked() -> None:
    assert outer(2.0)(3) == 6


def test_a_type_that_is_made_later_is_not_checked_and_a_known_one_is() -> None:
    assert Node(1, Node(2)).next.value == 2
    with pytest.raises(TypeCheckError, match="value"):
        Node("one")
