"""Numbered trials, counted and stored: a campaign may be stopped anywhere and goes on where it was.

    results/verify/PART.json    trials done and wanted, counts, failures with their numbers, and every piece of work
                                with its date, commit, seconds and machine

A trial is a function of its number and of an empty folder. It returns counts, or raises: then the number and the error
are stored, and `python -m verify PART --numbers 17` repeats it. Trials run in forked processes, so that a crash, a hang
or memory without end is the failure of one trial and of nothing else; this process never computes, so that it may fork.
"""

import fcntl
import json
import os
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance

RESULTS = Path(__file__).parents[1] / "results" / "verify"
STORED_EVERY = 20.0  # seconds
MOST_FAILURES = 100  # whose errors are stored; all are counted

Counts = Mapping[str, int]
Trial = Callable[[int, Path], Counts]


class Unavailable(Exception):
    """This machine cannot do what a trial needs; it is counted as left out, with the reason."""


@dataclass(frozen=True)
class Part:
    """A campaign: what one trial does, and how much of it is wanted in all."""

    name: str
    about: str
    """One sentence for the page: what is done, and what counts as a failure."""
    trial: Trial
    goal: int
    unit: str = "trials"
    """What the goal counts: trials, or one of the counts that they return."""
    batch: int = 1
    """Trials in one process."""
    seconds: float = 300.0
    """Patience with one trial, by the clock."""
    prepare: Callable[[], object] = lambda: None
    """Called once, in the process from which all trials are forked."""


@dataclass
class Record:
    """What is known of a part."""

    part: str
    unit: str
    goal: int
    trials: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    pieces: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> int:
        return self.trials if self.unit == "trials" else self.counts[self.unit]

    @property
    def complete(self) -> bool:
        return self.done >= self.goal


def read_record(part: Part, results: Path) -> Record:
    """What is stored of a part, its goal at that time included, or an empty record."""
    path = results / f"{part.name}.json"
    record = Record(part.name, part.unit, part.goal)
    if path.exists():
        values = json.loads(path.read_text())
        record.goal, record.trials, record.counts = values["goal"], values["trials"], Counter(values["counts"])
        record.failures, record.pieces = values["failures"], values["pieces"]
    return record


def write_record(record: Record, results: Path) -> None:
    """Store it, whole or not at all."""
    results.mkdir(parents=True, exist_ok=True)
    values = {
        "part": record.part,
        "unit": record.unit,
        "goal": record.goal,
        "done": record.done,
        "complete": record.complete,
        "trials": record.trials,
        "counts": dict(sorted(record.counts.items())),
        "failures": record.failures,
        "pieces": record.pieces,
    }
    write_whole(results / f"{record.part}.json", (json.dumps(values, indent=1) + "\n").encode())


def run_part(
    part: Part, *, results: Path = RESULTS, seconds: float = float("inf"), numbers: Sequence[int] | None = None
) -> Record:
    """Go on with a part for so long; or repeat some trials, whose earlier failures are then replaced."""
    with only_one(part, results):
        record = replace(read_record(part, results), goal=part.goal)
        end, piece = time.monotonic() + seconds, new_piece()
        record.pieces.append(piece)
        began = stored = time.monotonic()

        def store() -> None:
            piece["seconds"] = round(time.monotonic() - began, 1)
            write_record(record, results)

        part.prepare()
        for chosen in batches(part, record, numbers):
            for number, found in in_a_fork(part, chosen):
                piece["trials"] += 1
                settle(record, number, found, repeated=numbers is not None)
            if time.monotonic() - stored > STORED_EVERY:
                store()
                stored = time.monotonic()
            if time.monotonic() > end:
                break
        if piece["trials"]:
            store()
        return record


def batches(part: Part, record: Record, numbers: Sequence[int] | None) -> Iterator[list[int]]:
    """The numbers of the next trials, until the goal is reached."""
    if numbers is not None:
        yield from ([number] for number in numbers)
        return
    while not record.complete:
        first = record.trials
        last = min(first + part.batch, part.goal) if part.unit == "trials" else first + part.batch
        yield list(range(first, last))


def settle(record: Record, number: int, found: dict[str, Any], *, repeated: bool) -> None:
    """Add what a trial gave."""
    if repeated:
        earlier = [failure for failure in record.failures if failure["number"] == number]
        record.failures = [failure for failure in record.failures if failure["number"] != number]
        record.counts["failed"] -= len(earlier)
        record.counts["failed, then mended"] += bool(earlier) and "error" not in found
    else:
        record.trials = number + 1
    if "error" in found:
        record.counts["failed"] += 1
        known = {"number": number, "error": found["error"], "commit": provenance()["commit"]}
        record.failures = [*record.failures, known][:MOST_FAILURES]
        print(f"{record.part} {number}: {found['error']}", flush=True)
    elif not repeated or found.get("counts", {}).get(record.unit) is None:
        record.counts.update(found["counts"])
    record.counts += Counter()  # zeros are not shown


def new_piece() -> dict[str, Any]:
    """When, where and with what a piece of work is done."""
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return {"date": now, "trials": 0, "seconds": 0.0, **provenance()}


@contextmanager
def only_one(part: Part, results: Path) -> Iterator[None]:
    """Two processes would count trials twice."""
    lock = Path(tempfile.gettempdir()) / f"ssno-verify-{abs(hash(str(results.resolve()))) % 10**6}-{part.name}.lock"
    with open(lock, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"verify: another process is working on {part.name}.") from None
        yield


def in_a_fork(part: Part, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Try some numbers, one after the other, in one forked process; after a crash, the rest in another."""
    left = list(numbers)
    while left:
        for found in _one_fork(part, left):
            yield left.pop(0), found
            if "error" in found and not found.get("goes_on"):
                break


def _one_fork(part: Part, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(part, numbers, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        try:
            for _ in numbers:
                ready, _, _ = select.select([answers], [], [], part.seconds)
                line = answers.readline() if ready else b""
                if line:
                    yield json.loads(line)
                    continue
                with_code = "" if not ready else f" (wait status {os.waitpid(child, 0)[1]})"
                yield {"error": "its process ended without a word" + with_code if ready else "took too long"}
                return
        finally:
            _end(child)


def _end(child: int) -> None:
    """Nothing that a trial started stays."""
    for target in (os.killpg, os.kill):
        try:
            target(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def _work(part: Part, numbers: Sequence[int], writing: int) -> None:
    """What the forked process does; it never returns."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        place = Path(tempfile.mkdtemp(prefix=f"ssno-verify-{part.name}-"))
        try:
            found: dict[str, Any] = {"counts": dict(part.trial(number, place))}
        except Unavailable as reason:
            found = {"counts": {f"left out: {reason}": 1}}
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            found = {"error": f"{type(error).__name__} at {where}: {error}"[:2000], "goes_on": True}
        shutil.rmtree(place, ignore_errors=True)
        os.write(writing, json.dumps(found).encode() + b"\n")
    os._exit(0)
