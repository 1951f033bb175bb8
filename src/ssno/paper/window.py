"""How many frames the memory should hold: K = 0 ... 20 on KS 0.075, unrolled in training and with teacher forcing.

Every run starts from one given frame and its memory grows to K (MemNO's protocol): all forecast the same frames.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, Verdict
from ssno.paper.trial import CPU, KS, Budget, Trial, trial
from ssno.plots.summary import learning_curves, seed_lines

MODES = {"unrolled": 0.0, "teacher forcing": 1.0}
"""How a run is trained: the share of true frames it sees."""


@dataclass(frozen=True, kw_only=True)
class MemoryWindow(Experiment):
    """Error against the memory's window."""

    name: ClassVar[str] = "window"
    title: ClassVar[str] = "Memory windows, KS 0.075"
    paper_location: ClassVar[str] = "Appendix, figures of memory windows"
    published: ClassVar[str] = (
        "Two figures: K = 0 far worse, gains until about K = 8, flat beyond; teacher forcing less stable and higher."
    )
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU, train=256, epochs=4, precision="bf16")

    def windows(self) -> tuple[int, ...]:
        return self.by_scale(tiny=(0, 4), cpu=(0, 1, 4, 8), paper=(0, 1, 2, 4, 8, 12, 16, 20))

    def runs(self) -> list[Trial]:
        model = self.model(SSNOConfig, **self.narrow())
        return [
            trial(
                f"K = {window}",
                KS[0.075],
                self.recommended(replace(model, memory=replace(model.memory, window=window))),
                points=self.points(self.by_scale(cpu=64, paper=128)),
                seed=seed,
                budget=self.budget,
                case=mode,
                protocol="memno",
                unroll=self.unrolling(forcing),
            )
            for seed in self.seed_range()
            for mode, forcing in MODES.items()
            for window in self.windows()
        ]

    def judge(self, results: Results) -> Finding:
        sheets = tuple(
            results.sheet(f"{metric} of 25 frames from one given frame", metric=metric)
            for metric in ("rel_l2", "rel_l2_onestep")
        )
        lines = {
            mode: {"SS-NO": results.there({float(k): (f"K = {k}", mode) for k in self.windows()})} for mode in MODES
        }
        labels = [f"K = {k}" for k in self.windows()]
        curves = {
            mode: {label: found[0][1].curve for label in labels if (found := results.find(label, mode))}
            for mode in MODES
        }
        return Finding(
            sheets,
            tuple(self.verdicts(results)),
            {
                "window": lambda: seed_lines(lines, xlabel="memory window K", ylabel="rel_l2 of rollouts"),
                "window-curves": lambda: learning_curves(curves, ylabel="validation rel_l2"),
            },
            tuple(results.records()),
        )

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """Memory helps; more than eight frames do not."""
        for mode in MODES:
            cells = ((f"K = {k}", mode) for k in (4, 0))
            yield from results.below(f"{mode}: memory (K = 4) below none (K = 0)", *cells)
        cells = ((f"K = {k}", "unrolled") for k in (20, 8))
        yield from results.below("unrolled: K = 20 still better than K = 8 (the paper says no)", *cells)
        for k in self.windows():
            cells = ((f"K = {k}", mode) for mode in ("unrolled", "teacher forcing"))
            yield from results.below(f"K = {k}: unrolled below teacher forcing", *cells)
