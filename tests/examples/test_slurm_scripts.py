"""The scripts in examples/slurm: syntax, options, and what they do when a process ends, with stubs for SLURM."""

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ssno.cli.train import parse

FOLDER = Path(__file__).parents[2] / "examples" / "slurm"
SCRIPTS = sorted(FOLDER.glob("*.slurm"))
DIRECTIVES = {
    "job-name": r"[\w-]+",
    "time": r"\d\d:\d\d:\d\d",
    "nodes": r"\d+",
    "ntasks-per-node": r"\d+",
    "gpus": r"\d+",
    "gpus-per-node": r"\d+",
    "cpus-per-task": r"\d+",
    "requeue": "",
    "open-mode": "append",
}


def options(script: Path) -> dict[str, str]:
    """What a script asks of the scheduler."""
    found = re.findall(r"^#SBATCH --([\w-]+)(?:=(.*))?$", script.read_text(), flags=re.MULTILINE)
    assert len(found) == script.read_text().count("#SBATCH")
    return dict(found)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_asks_for_what_its_command_uses(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    asked = options(script)
    assert all(re.fullmatch(DIRECTIVES[name], value) for name, value in asked.items())
    (line,) = re.findall(r"\btrain (ks .*) &$", script.read_text(), flags=re.MULTILINE)
    command = parse(shlex.split(line)).command
    assert (command.name, command.resume, command.stop_at) == ("ks-ssno", "auto", "3h50m")
    per_node = int(re.search(r"--nproc-per-node (\d+)|$", script.read_text())[1] or command.nproc)
    assert per_node == int(asked.get("gpus-per-node") or asked["gpus"])
    nodes = int(re.search(r"--nnodes (\d+)|$", script.read_text())[1] or 1)
    assert nodes == int(asked.get("nodes", 1))


@pytest.fixture
def stubs(tmp_path: Path) -> dict[str, str]:
    """An environment in which srun runs two ranks, one after the other, and scontrol writes down its words."""
    tools = {
        "ssno": 'echo "trains $*"; exec sleep "${SECONDS_OF_SSNO:-0}"',
        "srun": 'codes=0; for RANK in 0 1; do export RANK; "$@" || codes=1; done; exit $codes',
        "torchrun": 'while [ "$1" != bash ]; do shift; done; WORLD_SIZE=2 exec "$@"',
        "scontrol": f'[ "$1" = show ] && echo node0 || echo "$*" >> {tmp_path}/told',
    }
    place = tmp_path / "bin"
    place.mkdir()
    for name, line in tools.items():
        (place / name).write_text(f"#!/bin/bash\n{line}\n")
        (place / name).chmod(0o755)
    (tmp_path / "rank.sh").write_text((FOLDER / "rank.sh").read_text())
    known = {"SLURM_JOB_ID": "17", "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_NODELIST": "node[0-3]"}
    return {**os.environ, **known, "PATH": f"{place}:{os.environ['PATH']}"}


@pytest.mark.parametrize(("code", "left", "told"), [(0, 0, ""), (75, 0, "requeue 17\n"), (70, 1, "")])
def test_four_nodes_end_with_every_rank_in_one_place_and_queue_again_if_interrupted(tmp_path, stubs, code, left, told):
    (tmp_path / "bin" / "ssno").write_text(f'#!/bin/bash\necho "trains $*"\nexit {code}\n')
    done = subprocess.run(["bash", FOLDER / "four-nodes.slurm"], env=stubs, capture_output=True, text=True, check=False)
    assert done.returncode == left, done.stderr
    logs = sorted((tmp_path / "ranks" / "17").iterdir())
    assert [log.name for log in logs] == ["rank-000.log", "rank-001.log"]
    first, said, last = logs[1].read_text().splitlines()
    assert "rank 1 of 2 on" in first
    assert said == "trains train ks --name ks-ssno --resume auto --stop-at 3h50m"
    assert last.endswith(f"rank 1: exit code {code}")
    assert done.stdout.count("exit code") == 2
    assert ((tmp_path / "told").read_text() if told else "") == told


def test_a_rank_passes_a_signal_on_and_writes_down_how_it_ended(tmp_path, stubs) -> None:
    environment = {**stubs, "RANKS": str(tmp_path), "RANK": "7", "WORLD_SIZE": "8", "SECONDS_OF_SSNO": "60"}
    rank = subprocess.Popen(["bash", FOLDER / "rank.sh", "train"], env=environment)
    log = tmp_path / "rank-007.log"
    while not (log.exists() and "trains" in log.read_text()):
        time.sleep(0.01)
    rank.send_signal(signal.SIGTERM)
    assert rank.wait(30) == 128 + signal.SIGTERM
    assert log.read_text().splitlines()[-1].endswith(f"exit code {128 + signal.SIGTERM}")
