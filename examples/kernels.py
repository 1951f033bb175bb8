"""Plot learned kernels: an SS-NO fits advection-diffusion, whose solution operator is known exactly.

One step of u_t + c u_x = nu u_xx convolves with a Gaussian of width sqrt(2 nu dt), shifted by c dt. SS-NO's kernels
become similarly local, with more weight on the upwind side.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

from ssno import SSNO, SSNOConfig, Trajectories, train
from ssno.layers import Modes
from ssno.models import count_parameters
from ssno.pde import AdvectionDiffusion
from ssno.plots import look, save

DISTANCE = torch.arange(0, 32, 0.25)  # in grid points


def main() -> None:
    problem = AdvectionDiffusion()
    rng = np.random.default_rng(0)
    solution = problem.solve([problem.draw(rng) for _ in range(64)])
    length = problem.axes[0].length
    data = Trajectories.from_array(solution.state.astype(np.float32), lengths=[length]).select(resolution=64)
    torch.manual_seed(0)
    model = SSNO(SSNOConfig.tiny(boundary="periodic"))
    print(f"SS-NO with {count_parameters(model):,} parameters; the paper's has {count_parameters(SSNO()):,}")
    before = kernels(model)
    forecaster = train(model, data, epochs=20, learning_rate=1e-2, evaluate_every=5)
    after = kernels(forecaster.model)
    with look():
        figure = Figure(figsize=(9, 5))
        panels = figure.subplots(2, len(before), sharex=True, sharey="row", squeeze=False)
        for row, (when, values) in enumerate((("before", before), ("after", after))):
            for axes, (name, kernel) in zip(panels[row], values.items(), strict=True):
                axes.plot(DISTANCE, kernel.T, linewidth=1)
                axes.set(title=f"{name}, {when} training", ylabel="kernel" if axes is panels[row][0] else "")
        for axes in panels[-1]:
            axes.set_xlabel("distance in grid points")
        figure.suptitle("kernels of the first block, one line per channel")
    print("picture:", save(figure, "kernels.png"))


def kernels(model: SSNO) -> dict[str, torch.Tensor]:
    """The first block's kernels over distance, in both directions."""
    scan = model.blocks_before[0].scans[0]
    modes: dict[str, Modes] = {"forwards": scan.ahead.modes, "backwards": scan.back.modes}
    return {name: mode.impulse_response(DISTANCE).detach() for name, mode in modes.items()}


if __name__ == "__main__":
    main()
