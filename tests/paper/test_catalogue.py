"""Every experiment lists its runs at every scale; the `paper` ones are the published settings."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ssno.models.baselines.fno import FNOConfig
from ssno.models.operator import count_parameters
from ssno.models.ssno import SSNOConfig
from ssno.paper.catalogue import PUBLISHED as RESULTS
from ssno.paper.catalogue import experiments, find_experiment, load_studies
from ssno.paper.trial import KS, PAPER, Benchmark, Trial, trial

PUBLISHED_PARAMETERS = {  # the paper's ablation table
    "All, 64": 203_713,
    "Damping only, 64": 187_329,
    "Frequency only, 64": 187_329,
    "Fixed, 64": 170_945,
    "All, 32": 154_561,
    "Damping only, 32": 146_369,
    "Frequency only, 32": 146_369,
    "Fixed, 32": 138_177,
    "All, 16": 129_985,
    "Damping only, 16": 125_889,
    "Frequency only, 16": 125_889,
    "Fixed, 16": 121_793,
}


PUBLISHED = [name for name, one in RESULTS.items() if name not in ("airfoils", "swe") and one.cpu is not None]


@pytest.mark.parametrize("name", experiments())
@pytest.mark.parametrize("scale", ["tiny", "cpu", "tenth", "paper"])
def test_trials_have_names_of_their_own(name: str, scale: str) -> None:
    trials = find_experiment(name, scale=scale, seeds=2).trials()[:60]  # type: ignore[arg-type]
    assert len({trial.name for trial in trials}) == len(trials)
    recipes = ((trial.label, trial.case, trial.seed, trial.run.train.schedule) for trial in trials)
    assert name == "recipe" or len(set(recipes)) == len(trials)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_paper_scale_trains_as_published(name: str) -> None:
    assert len(find_experiment(name, scale="paper").seed_range()) == 5
    for each in find_experiment(name, scale="paper", seeds=1).trials():
        options = each.run.train
        assert (options.epochs, options.learning_rate, options.schedule) == (500, 1e-3, "cosine")
        batch = {1: 32, 2: 8}[each.run.model.n_dims]
        assert (options.normalisation, options.predict_increment, options.batch_size) == ("minmax", False, batch)
        assert (each.run.data.preset, each.run.data.train, each.run.data.valid) == ("paper", None, None)
        assert getattr(each.run.model, "boundary", "zero") == "zero"


@pytest.mark.parametrize("name", PUBLISHED)
def test_scale_tenth_is_a_tenth_of_the_published_training_with_both_recipes(name: str) -> None:
    trials = find_experiment(name, scale="tenth").trials()
    assert {(t.run.train.epochs, t.run.data.preset, t.run.data.train) for t in trials} == {(50, "paper", None)}
    assert {t.run.train.schedule for t in trials} == {"one-cycle", "cosine"}
    assert [t.seed for t in trials] == sorted(t.seed for t in trials)


def test_scale_tenth_compares_ssno_with_ffno_and_with_the_papers_start() -> None:
    trials = find_experiment("headline", scale="tenth").trials()
    ours = [t for t in trials if t.case == "KS 0.1" and t.run.train.schedule == "one-cycle"]
    assert [t.label for t in ours if t.seed == 2] == ["SS-NO", "FFNO", "SS-NO, the paper's start and boundary"]
    assert [getattr(t.run.model, "boundary", None) for t in ours if t.seed == 2] == ["periodic", None, "zero"]
    assert {t.seed for t in trials if t.case == "KS 0.075"} == {0}


def test_the_ablation_has_the_published_models() -> None:
    trials = find_experiment("ablation", scale="paper", seeds=1).trials()
    with torch.device("meta"):
        counts = {each.label: count_parameters(each.run.model.build(), learnable_only=True) for each in trials}
    assert counts == PUBLISHED_PARAMETERS
    assert {each.run.data.resolution for each in trials} == {128}


def test_the_resolution_figure_keeps_all_modes() -> None:
    trials = find_experiment("resolution", scale="paper", seeds=1).trials()
    kept = {(t.label, t.run.data.resolution): t.run.model.n_modes for t in trials if hasattr(t.run.model, "n_modes")}
    assert kept == {(name, points): points // 2 for name in ("FFNO", "GKT") for points in (32, 64, 128, 256, 512)}
    with torch.device("meta"):
        counts = {t.label: count_parameters(t.run.model.build()) for t in trials if t.case == "KS 0.1, 128"}
    assert (counts["FFNO"], counts["GKT"]) == (2_192_833, 291_521)


def test_the_fluids_have_the_published_models_on_the_published_grid() -> None:
    trials = find_experiment("navier-stokes", scale="paper", seeds=1).trials()
    assert {t.run.data.resolution for t in trials} == {64}
    assert {t.run.context_time for t in trials if t.case == "TorusVis"} == {"target"}
    with torch.device("meta"):
        counts = {t.label: count_parameters(t.run.model.build()) for t in trials if t.case == "TorusLi"}
    printed = {"SS-NO": 369_665, "FFNO": 2_192_897, "U-Net": 7_783_777, "GKT": 8_418_049, "Factformer": 1_006_433}
    assert counts == {**printed, "FNO2D": 4_282_113}  # 8 modes; the printed 67,197,700 are of CE-RM
    gas = {t.label: t.run.model for t in find_experiment("euler", scale="paper", seeds=1).trials() if t.case == "CE-RM"}
    with torch.device("meta"):
        assert count_parameters(gas["FNO2D"].build()) == 67_197_700


def test_context_is_dropped_by_name() -> None:
    trials = find_experiment("context", scale="paper", seeds=1).trials()
    chosen = {(t.case, t.run.data.context, t.run.model.in_channels) for t in trials if "Force" not in t.case}
    assert chosen == {
        ("TorusVis, all context", (), 3),
        ("TorusVis, only force", ("force",), 2),
        ("TorusVis, no context", ("none",), 1),
    }


def test_no_run_asks_for_more_trajectories_than_there_are() -> None:
    burgers = [t for t in find_experiment("headline", scale="cpu").trials() if t.case == "Burgers"]
    assert max(t.run.data.train for t in burgers) == 1844  # of 2048, the last tenth validates


def test_fno_keeps_eight_modes_on_torus_li() -> None:
    experiment = find_experiment("headline", scale="paper")
    config = experiment.with_modes(FNOConfig(n_dims=2), Benchmark("TorusLi", "torus-li", n_dims=2), [64, 64])
    assert config.n_modes == 8
    assert experiment.with_modes(FNOConfig(n_dims=2), Benchmark("CE-RM", "ce-rm"), [64, 64]).n_modes == 32


def test_damping_looks_into_runs_of_the_ablation() -> None:
    for scale in ("tiny", "cpu", "paper"):
        looked_into = {each.name for each in find_experiment("damping", scale=scale, seeds=1).trials()}  # type: ignore[arg-type]
        assert looked_into < {each.name for each in find_experiment("ablation", scale=scale, seeds=1).trials()}  # type: ignore[arg-type]


def some_trial(seed: int = 0, label: str = "a") -> Trial:
    return trial(label, KS[0.1], SSNOConfig.tiny(), points=32, seed=seed, budget=PAPER)  # type: ignore[arg-type]


def test_the_name_of_a_run_is_its_description() -> None:
    first = some_trial()
    assert first.name.startswith("ks-0.1-32-ssno-")
    assert first.name.endswith("-seed0")
    assert some_trial(label="another row").name == first.name
    assert some_trial(seed=1).name == first.name.replace("seed0", "seed1")
    longer = replace(first, run=replace(first.run, train=replace(first.run.train, epochs=7)))
    assert longer.name != first.name


def test_studies_come_from_the_checkout_of_the_package_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"walls", "transfer"} <= set(experiments())
    assert not {"walls", "transfer"} & set(RESULTS)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "__init__.py").write_text("raise RuntimeError('a file of the working directory was run')")
    monkeypatch.chdir(tmp_path)
    load_studies.cache_clear()
    assert "walls" in experiments()
    assert load_studies(tmp_path) == {}


def test_without_a_checkout_the_error_says_where_studies_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssno.paper.catalogue.load_studies", lambda root: {})
    with pytest.raises(ValueError, match=r"Unknown name `walls`.* Our own studies are in `studies/` of the repository"):
        find_experiment("walls")


def test_unknown_names_and_senseless_sizes_are_refused(as_users_call_it: None) -> None:
    with pytest.raises(ValueError, match="Unknown name `ablatoin`. Did you mean `ablation`"):
        find_experiment("ablatoin")
    with pytest.raises(ValueError, match="`scale` must be one of tiny, cpu, tenth, paper, got 'huge'"):
        find_experiment("ablation", scale="huge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`seeds` must be at least 1, got 0"):
        find_experiment("ablation", seeds=0)
