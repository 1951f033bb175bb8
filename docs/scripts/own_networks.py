"""Measure the table of docs/manual/own-networks.md:  python docs/scripts/own_networks.py  (five minutes on one core).

The same small network for one step of Kuramoto-Sivashinsky (viscosity 0.1, 64 points), trained by a plain loop, with
layers of SS-NO as they start by default, as the paper starts them, and with convolutions instead.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor, nn
from torch.nn import functional

from ssno import Trajectories, load_dataset
from ssno.base.json_io import write_json
from ssno.base.provenance import provenance
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.layers import BidirectionalScan, ModeOptions

ROOT = Path(__file__).parents[2]
CHANNELS, LAYERS, STEPS, BATCH, RATE, SEEDS = 32, 4, 800, 32, 3e-3, 3
COUNTS = {"train": 128, "valid": 0, "test": 32}


class Convolved(nn.Module):
    """A residual layer with a short circular kernel."""

    def __init__(self, channels: int, *, taps: int):
        super().__init__()
        self.near = nn.Conv1d(channels, channels, taps, padding=taps // 2, padding_mode="circular")
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mix(functional.gelu(self.near(x)))


def scan(**options: object) -> Callable[[], nn.Module]:
    """Makes a bidirectional scan."""
    return lambda: BidirectionalScan(CHANNELS, d_state=16, **options)  # type: ignore[arg-type]


LAYER = {
    "BidirectionalScan, boundary periodic": scan(boundary="periodic"),
    "BidirectionalScan": scan(),
    "BidirectionalScan, boundary periodic, the paper's start": scan(boundary="periodic", options=ModeOptions()),
    "BidirectionalScan, the paper's start": scan(options=ModeOptions()),
    "Conv1d, 5 taps": lambda: Convolved(CHANNELS, taps=5),
    "Conv1d, 7 taps": lambda: Convolved(CHANNELS, taps=7),
}


class Step(nn.Module):
    """The next frame: the last one and what a network of pointwise maps and layers adds."""

    def __init__(self, layer: Callable[[], nn.Module]):
        super().__init__()
        wide = nn.Conv1d(CHANNELS, CHANNELS, 1)
        self.net = nn.Sequential(
            nn.Conv1d(1, CHANNELS, 1), *(layer() for _ in range(LAYERS)), wide, nn.GELU(), nn.Conv1d(CHANNELS, 1, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.net(x)


def steps_of(data: Trajectories) -> tuple[Tensor, Tensor]:
    """Every frame but the last, and the frame after it."""
    frames = data.read(slice(None)).state
    return frames[:, :-1].flatten(0, 1), frames[:, 1:].flatten(0, 1)


def relative(found: Tensor, wanted: Tensor) -> Tensor:
    """The mean relative L2 error."""
    return ((found - wanted).flatten(1).norm(dim=1) / wanted.flatten(1).norm(dim=1)).mean()


def trained(name: str, seed: int, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> dict[str, object]:
    """One training, and its error on steps that it has not seen."""
    torch.manual_seed(seed)
    model, (x, y), began = Step(LAYER[name]), train, time.process_time()
    optimiser = torch.optim.AdamW(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS)
    for _ in range(STEPS):
        chosen = torch.randint(len(x), (BATCH,))
        loss = relative(model(x[chosen]), y[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        error = relative(model(test[0]), test[1]).item()
    parameters = sum(p.numel() for p in model.parameters())
    seconds = time.process_time() - began
    return {"layer": name, "seed": seed, "rel_l2_onestep": error, "parameters": parameters, "cpu_seconds": seconds}


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        generate(build_plan("ks", "small", counts=COUNTS, viscosity=0.1), Path(folder) / "ks")
        train, test = (steps_of(load_dataset(Path(folder) / "ks", split, resolution=64)) for split in ("train", "test"))
    size = train[0].std()
    train, test = ((x / size, y / size) for x, y in (train, test))
    rows = [trained(name, seed, train, test) for name in LAYER for seed in range(SEEDS)]
    for name in LAYER:
        print(f"{mean(row['rel_l2_onestep'] for row in rows if row['layer'] == name):.4f}  {name}")  # type: ignore[misc]
    rows.append({"layer": "nothing happens", "rel_l2_onestep": relative(*test).item(), "parameters": 0})
    settings = {"steps": STEPS, "batch_size": BATCH, "rate": RATE, "counts": COUNTS, "channels": CHANNELS}
    write_json(ROOT / "results" / "own-networks.json", {**settings, "rows": rows, "provenance": provenance()})


if __name__ == "__main__":
    main()
