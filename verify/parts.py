"""The parts of `make verify`."""

from verify import commands, crafted, disturbances, endurance, hostile, kills, native, stress, system_calls, tests
from verify.campaign import Part


def parts() -> list[Part]:
    """All of them, in the order in which they are run."""
    return [
        Part(
            "kills",
            "SIGKILL at random moments over every command that writes, which is then given again. A failure: a file "
            "that cannot be read, a byte that differs at the end, a `*.partial` left behind, another log.",
            kills.trial,
            goal=500,
            unit="kills",
            seconds=900.0,
            prepare=kills.prepare,
        ),
        Part(
            "power-cuts",
            "Commands killed with whatever was not synced to the disk: files cut to their synced size, renames undone. "
            "The same failures as for kills.",
            disturbances.power_cut,
            goal=100,
            unit="power cuts",
            seconds=600.0,
            prepare=kills.prepare,
        ),
        Part(
            "full-disks",
            "Commands on a small disk that becomes full at a random write; it is then enlarged, and they are given "
            "again. A failure also: an error that does not name the disk.",
            disturbances.full_disk,
            goal=120,
            seconds=600.0,
            prepare=kills.prepare,
        ),
        Part(
            "clocks",
            "Commands killed, their files dated to the future, and given again under a clock that is set back.",
            disturbances.clock_back,
            goal=60,
            seconds=600.0,
            prepare=kills.prepare,
        ),
        Part(
            "two-at-once",
            "The same command twice on one folder at the same time: each succeeds or is refused in words.",
            disturbances.two_at_once,
            goal=60,
            seconds=600.0,
            prepare=kills.prepare,
        ),
        Part(
            "mutations",
            "Files of every kind that is read, damaged: bits, lengths, cuts, splices, repeated blocks, values, words. "
            "A failure: anything but data or one of our own errors, more than 5 s of computing, 1 GiB above the "
            "limits, a file opened for writing or outside the named folder, a program started, a class that a pickle "
            "names.",
            hostile.mutation,
            goal=20_000,
            batch=100,
            seconds=120.0,
            prepare=hostile.prepare,
        ),
        Part(
            "crafted",
            "Files made by hand to do harm: deep nesting, huge shapes, bombs, links, pickles, external storage, names "
            "that look like paths or markup, sizes that are no numbers, keys that occur twice. The same failures.",
            crafted.trial,
            goal=crafted.FILES,
            batch=10,
            seconds=120.0,
            prepare=crafted.prepare,
        ),
        Part(
            "system-calls",
            "Crafted files that libraries in C open, in a process whose system calls strace notes. A failure: a file "
            "opened outside the named folder, anything written, a program started, a connection.",
            system_calls.trial,
            goal=100,
            seconds=900.0,
            prepare=crafted.prepare,
        ),
        Part(
            "native",
            "Native code built with address and undefined-behaviour sanitizers, on sizes from 0 to 5 and larger, odd "
            "strides, misaligned and overlapping tensors, float32, float64 and bf16, 1 to 4 threads; results and "
            "gradients against plain PyTorch. A failure: a report of a sanitizer, a wrong number.",
            native.trial,
            goal=5_000,
            unit="cases",
            seconds=3600.0,
        ),
        Part(
            "stress",
            "Magnitudes from 1e-40 to 1e37, constant and empty fields, one trajectory, one frame, axes of 1 to 5 "
            "points, NaN and infinity anywhere; inspect, train, resume, evaluate, predict. A failure: a traceback, a "
            "refusal without words, a checkpoint that is not finite.",
            stress.trial,
            goal=len(stress.cases()),
            seconds=900.0,
            prepare=commands.warm_up,
        ),
        Part(
            "forecast",
            "A forecast of a million steps. A failure: memory that grows by more than 1 % or a descriptor left open.",
            endurance.forecast,
            goal=1_000_000,
            unit="steps",
            seconds=3600.0,
        ),
        Part(
            "training",
            "A training of 100,000 steps, resumed every 2,000. A failure: as for the forecast.",
            endurance.training,
            goal=100_000,
            unit="steps",
            seconds=3600.0,
        ),
        Part(
            "marked",
            "The files of tests marked `verify`, one process each: solvers' moments, every model learning, the "
            "compiler, browsers, clean installations, two machines.",
            tests.run_marked,
            goal=len(tests.marked()),
            seconds=7200.0,
        ),
        Part(
            "floors",
            "All tests of eleven folders with the lowest versions of NumPy, SciPy, h5py and the others that are "
            "allowed (PyTorch's is tried by hand, CONTRIBUTING.md).",
            tests.run_at_floors,
            goal=len(tests.FLOOR_FOLDERS),
            seconds=3600.0,
        ),
    ]
