"""Which evaluations may be compared, and which are seeds of one model."""

from dataclasses import replace

import pytest

from ssno.evaluation.record import Evaluation
from ssno.evaluation.seeds import group_by_seed
from ssno.forecasting.scores import Scores


def evaluation(name: str, error: float, *, model: str = "ssno", seed: int | None = 0, **changes) -> Evaluation:
    width = changes.pop("width", 8)
    described = {"config": {"model": model, "width": width}, "run": {"train": {"seed": seed, "epochs": 2}}}
    known = {
        "name": name,
        "model": model,
        "parameters": 10,
        "seed": seed,
        "dataset": "ks",
        "split": "test",
        "points": (64,),
        "trajectories": 2,
        "given_until": 0.3,
        "times": (0.4, 0.5),
        "fields": ("u",),
        "fingerprint": "abc",
        "scores": Scores({"rel_l2": error, "valid_time": 1 / error}, (error, error), (error, error)),
        "config": described,
    }
    return Evaluation(**{**known, **changes})


def test_runs_that_differ_in_their_seed_only_are_one_group() -> None:
    runs = [evaluation(f"run{seed}", 0.1 * (seed + 1), seed=seed) for seed in range(3)]
    runs.append(evaluation("ffno0", 0.5, model="ffno"))
    ours, other = group_by_seed(runs, ["rel_l2"])
    assert (ours.name, ours.runs) == ("ssno", ("run0", "run1", "run2"))
    assert ours.summaries["rel_l2"].values == pytest.approx((0.1, 0.2, 0.3))
    assert (other.name, other.runs) == ("ffno", ("ffno0",))


def test_two_sizes_of_one_model_are_two_groups_named_after_their_runs() -> None:
    groups = group_by_seed([evaluation("small", 0.2), evaluation("large", 0.1, width=64)], ["rel_l2"])
    assert [group.name for group in groups] == ["small", "large"]


def test_an_ensemble_is_not_one_more_seed_of_its_members() -> None:
    runs = [evaluation(f"run{seed}", 0.1, seed=seed) for seed in range(2)]
    ensemble = evaluation("ensemble of 2", 0.05, seed=None)
    ensemble = replace(ensemble, config={**runs[0].config, "members": ["run0", "run1"]})
    groups = group_by_seed([*runs, ensemble], ["rel_l2"])
    assert [(group.name, group.runs) for group in groups] == [
        ("ssno", ("run0", "run1")),
        ("ensemble of 2", ("ensemble of 2",)),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dataset": "burgers"}, r"different dataset \(ks and burgers\)"),
        ({"split": "valid"}, r"different split \(test and valid\)"),
        ({"points": (128,)}, r"different points \(\(64,\) and \(128,\)\)"),
        ({"times": (0.5, 0.6)}, "different times, so"),
        ({"fingerprint": "xyz"}, "different true frames, so their errors cannot be compared"),
    ],
)
def test_runs_evaluated_on_different_data_are_not_compared(change, told) -> None:
    with pytest.raises(ValueError, match=told):
        group_by_seed([evaluation("a", 0.1), evaluation("b", 0.2, seed=1, **change)], ["rel_l2"])


def test_the_same_seed_twice_is_not_two_samples() -> None:
    with pytest.raises(ValueError, match="a and b are one model trained with the same seed"):
        group_by_seed([evaluation("a", 0.1), evaluation("b", 0.2)], ["rel_l2"])


def test_an_unknown_metric_and_an_empty_list_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no 'mse' in the evaluation of a; it has rel_l2, valid_time"):
        group_by_seed([evaluation("a", 0.1)], ["mse"])
    with pytest.raises(ValueError, match="There is nothing to compare"):
        group_by_seed([], ["rel_l2"])
