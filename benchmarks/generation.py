"""Entries: how fast Kuramoto-Sivashinsky trajectories are made, against exponax and against SciPy's Radau.

Every generator is a process of its own, pinned to its core, with the same initial states, step and frames
(`benchmarks.ks_case`); end states are compared first. Times are per trajectory.

exponax needs jax and lives in an environment of its own: `python -m venv E`, `E/bin/pip install exponax`, then set
SSNO_EXPONAX_PYTHON=E/bin/python. Without it that entry is skipped with a message.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.entry import Entry, Goal, TimedCall, Unavailable
from benchmarks.ks_case import BATCH
from benchmarks.serving import Server

VARIABLE = "SSNO_EXPONAX_PYTHON"
SIZES = {"n": 512, "steps": 500}


def entries() -> Iterator[Entry]:
    """Against exponax, then against Radau."""
    yield Entry(
        what="ks and exponax",
        sizes=SIZES,
        build=against_exponax,
        reference="exponax, 1 core",
        goals={"ssno, 1 core": Goal(at_least=1.5), "ssno, 2 cores": Goal(at_least=2.7)},
        tolerance=1e-5,
        threads=1,
        seconds=10.0,
    )
    yield Entry(
        what="ks and radau",
        sizes=SIZES,
        build=against_radau,
        reference="radau, 1 core",
        goals={"ssno, 2 cores": Goal(at_least=700.0)},
        tolerance=1e-5,
        threads=1,
    )


def against_exponax() -> dict[str, TimedCall]:
    """exponax on one core and on all, ssno on one and on two."""
    python = os.environ.get(VARIABLE, "")
    if not Path(python).is_file():
        raise Unavailable(
            f"exponax is not measured: {VARIABLE} is {python!r}, no Python with exponax. Make one with `python -m venv "
            f"E`, `E/bin/pip install exponax`, and set {VARIABLE}=E/bin/python."
        )
    pinned = Server("benchmarks.ks_exponax", python=python, cores=cores()[:1])
    free = Server("benchmarks.ks_exponax", python=python, variables={})
    return {
        "exponax, 1 core": TimedCall(pinned.run, amount=BATCH, close=pinned.close),
        "exponax, all cores": TimedCall(
            free.run, expected=pinned.answer, fetch=free.answer, amount=BATCH, close=free.close
        ),
        **ours(pinned.answer, count=BATCH),
    }


def against_radau() -> dict[str, TimedCall]:
    """Radau makes one trajectory per run; ssno 64 per core."""
    server = Server("benchmarks.ks_radau", cores=cores()[:1])
    return {"radau, 1 core": TimedCall(server.run, close=server.close), **ours(server.answer, count=1)}


def ours(expected: Callable[[], np.ndarray], *, count: int) -> dict[str, TimedCall]:
    """ssno on one core, and on two at the same time; the first `count` trajectories are compared."""
    team = [Server("benchmarks.ks_ssno", cores=[core]) for core in cores()[:2]]

    def together() -> None:
        for server in team:
            server.start()
        for server in team:
            server.finish()

    def compared(server: Server) -> Callable[[], np.ndarray]:
        return lambda: server.answer()[:count]

    single = TimedCall(team[0].run, expected=expected, fetch=compared(team[0]), amount=BATCH, close=team[0].close)
    if len(team) == 1:
        return {"ssno, 1 core": single}
    double = TimedCall(together, expected=expected, fetch=compared(team[1]), amount=2 * BATCH, close=team[1].close)
    return {"ssno, 1 core": single, "ssno, 2 cores": double}


def cores() -> list[int]:
    """Cores this process may use."""
    return sorted(os.sched_getaffinity(0))
