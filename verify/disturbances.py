"""What else happens to commands that write: power cuts, full disks, clocks set back, two processes on one folder.

A power cut is a kill after which only that is on the disk which was synced: files are cut to the size that they had
when they were last synced, and renames and deletions in a folder that was not synced since are undone, from a random
one on.
"""

import ctypes
import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verify.campaign import Counts, Unavailable
from verify.commands import (
    COMMANDS,
    ORDER,
    Command,
    assert_nothing_was_lost,
    ended,
    finish,
    finish_well,
    in_processes,
    kill,
    own_files,
    supply,
    unreadable,
    whole,
)

ALONE = [name for name in ORDER if COMMANDS[name].processes == 1]
REFUSED = 2  # exit code of a command that says in one line why not
NEW_NAMESPACE = 0x00020000


def turn(number: int) -> tuple[str, Command]:
    """The command of a trial; those of several processes are killed in `verify.kills`."""
    name = ALONE[number % len(ALONE)]
    return name, COMMANDS[name]


def killed_somewhere(
    name: str, place: Path, told: Path, moment: random.Random, before: Callable[[], object] = lambda: None
) -> bool:
    """Kill a command after a random part of the time it takes; False if it had ended."""
    child = in_processes(COMMANDS[name], place, told=told, before=before)[0]
    if ended(child, moment.uniform(0.2, 1.0) * whole(name).seconds) is not None:
        return False
    kill(child)
    ended(child, 10.0)
    return True


# Power cuts.


def power_cut(number: int, place: Path) -> Counts:
    """A command whose machine loses power, then the same command again."""
    name, command = turn(number)
    moment, told, journal = random.Random(number), place.with_suffix(".txt"), place.with_suffix(".journal")
    supply(command, place)
    kept = place.with_suffix(".kept")
    kept.mkdir()
    cut = killed_somewhere(name, place, told, moment, before=lambda: keep_journal(journal, kept))
    lost = lose(place, journal, moment) if cut and journal.exists() else Counter[str]()
    assert not (bad := unreadable(place)), f"unreadable after a power cut of {name!r}: {bad[:3]}"
    finish_well(command, place, told)
    assert_nothing_was_lost(place, whole(name).folder, notes=[f"power cut of {name!r}", str(dict(lost))])
    subprocess.run(["rm", "-rf", str(kept), str(journal), str(told)], check=False)
    return Counter({"power cuts": int(cut), name: int(cut)}) + lost


def keep_journal(path: Path, kept: Path) -> None:
    """From now on this process writes down what it syncs, renames and deletes, and keeps what it replaces."""
    journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def note(**entry: Any) -> None:
        os.write(journal, json.dumps(entry).encode() + b"\n")

    def keep(name: Any) -> str | None:
        if not os.path.isfile(name) or os.path.islink(name):
            return None
        copy = str(kept / f"{time.monotonic_ns()}")
        os.link(name, copy)
        return copy

    def noted_fsync(handle: Any) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        fsync(number)
        status, name = os.fstat(number), os.readlink(f"/proc/self/fd/{number}")
        note(did="sync", inode=status.st_ino, size=status.st_size, folder=name if os.path.isdir(name) else None)

    def noted_replace(source: Any, target: Any, **more: Any) -> None:
        copy = keep(target)
        replace(source, target, **more)
        note(did="replace", source=os.path.abspath(source), target=os.path.abspath(target), kept=copy)

    def noted_unlink(name: Any, **more: Any) -> None:
        copy = None if more else keep(name)
        unlink(name, **more)
        if not more:
            note(did="unlink", target=os.path.abspath(name), kept=copy)

    os.fsync, os.replace, os.rename = noted_fsync, noted_replace, noted_replace  # type: ignore[assignment]
    os.unlink = os.remove = noted_unlink  # type: ignore[assignment]


def lose(place: Path, journal: Path, moment: random.Random) -> Counter[str]:
    """Leave on the disk what was synced."""
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    synced = {entry["inode"]: entry["size"] for entry in entries if entry["did"] == "sync" and not entry["folder"]}
    flushed: dict[str, int] = {}
    for at, entry in enumerate(entries):
        if entry["did"] == "sync" and entry["folder"]:
            flushed[entry["folder"]] = at
    done = [(at, entry) for at, entry in enumerate(entries) if entry["did"] != "sync"]
    loose = [entry for at, entry in done if flushed.get(os.path.dirname(entry["target"]), -1) < at]
    lost: Counter[str] = Counter()
    for entry in reversed(loose[moment.randint(0, len(loose)) :]):
        target = Path(entry["target"])
        if entry["did"] == "replace" and target.exists():
            target.rename(entry["source"])
        if entry["kept"] and target.parent.exists():
            Path(entry["kept"]).rename(target)
        lost["renames and deletions undone"] += 1
    for path in own_files(place):
        size = synced.get(path.stat().st_ino, 0)
        if path.stat().st_size > size:
            os.truncate(path, size)
            lost["files cut"] += 1
    return lost


# Full disks.


def full_disk(number: int, place: Path) -> Counts:
    """A command on a disk that becomes full at a random write; it says so, and goes on when there is room."""
    name, command = turn(number)
    told, moment = place.with_suffix(".txt"), random.Random(number)
    needed = sum(path.stat().st_size for path in own_files(whole(name).folder))
    size = int(moment.uniform(0.05, 2.5) * needed) // 4096 * 4096 + 32768  # a file and its successor are there at once
    disk = mounted(place / "disk", size)
    supply(command, disk)
    code = finish(command, disk, told=told)[0]
    said = told.read_text()
    assert code in (0, REFUSED), f"{name!r} on a disk of {size} bytes ended with {code}: {said[-600:]}"
    if code == REFUSED:
        assert "room" in said or "space" in said or "free" in said, f"{name!r} did not name the disk: {said[-300:]}"
    assert not (bad := unreadable(disk)), f"unreadable on a full disk: {bad[:3]}"
    subprocess.run(["mount", "-o", f"remount,size={needed * 20 + 2**24}", str(disk)], check=True, capture_output=True)
    finish_well(command, disk, told)
    assert_nothing_was_lost(disk, whole(name).folder, notes=[f"{name!r} on a disk of {size} bytes"])
    told.unlink()
    return {"full": int(code == REFUSED), "large enough": int(code == 0), name: 1}


def mounted(folder: Path, size: int) -> Path:
    """A small disk that only this process and its children see; it is gone with them."""
    folder.mkdir()
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACE) != 0:
        raise Unavailable("mounting a small disk needs root")
    for words in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]):
        if subprocess.run(["mount", *words], capture_output=True).returncode:
            raise Unavailable("mounting a small disk needs root")
    return folder


# Clocks and neighbours.


def clock_back(number: int, place: Path) -> Counts:
    """A command killed on a machine whose clock is then set back: its files are of the future."""
    name, command = turn(number)
    told, moment = place.with_suffix(".txt"), random.Random(number)
    supply(command, place)
    back = 10 ** moment.uniform(2, 8.5)  # minutes to ten years
    cut = killed_somewhere(name, place, told, moment)
    future = time.time() + back
    for path in own_files(place):
        os.utime(path, (future, future))
    finish_well(command, place, told, before=lambda: set_back(back, jumps=number % 4 == 0))
    assert_nothing_was_lost(place, whole(name).folder, notes=[f"{name!r}, clock set back by {back:.0f} s"])
    told.unlink()
    return {"set back": 1, "after a kill": int(cut), name: 1}


def set_back(seconds: float, *, jumps: bool) -> None:
    """The clock of this process shows an earlier time; or it does so from its tenth question on."""
    now, asked = time.time, iter(range(10**9))

    def clock() -> float:
        return now() - (seconds if not jumps or next(asked) > 10 else 0.0)

    time.time, time.time_ns = clock, lambda: int(clock() * 1e9)


def two_at_once(number: int, place: Path) -> Counts:
    """The same command twice on one folder: each succeeds or is refused in words, one succeeds, nothing is lost."""
    name, command = turn(number)
    told, moment = place.with_suffix(".txt"), random.Random(number)
    supply(command, place)
    children = in_processes(command, place, told=told)
    time.sleep(moment.uniform(0.0, 0.7) * whole(name).seconds)
    children += in_processes(command, place, told=told)
    codes = [ended(child, command.limit) for child in children]
    said = told.read_text()
    assert set(codes) <= {0, REFUSED}, f"two of {name!r} at once ended with {codes}: {said[-600:]}"
    assert 0 in codes, f"neither of two {name!r} succeeded: {said[-600:]}"
    finish_well(command, place, told)
    assert_nothing_was_lost(place, whole(name).folder, notes=[f"two of {name!r} at once"])
    told.unlink()
    return {"both succeeded": int(codes == [0, 0]), "one was refused": int(REFUSED in codes), name: 1}
