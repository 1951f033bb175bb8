"""Start the processes of one training on this machine, through PyTorch's own launcher: `ssno train ... --nproc 2`.

As torchrun does, with two differences: an interrupted and saved training exits with code 75 instead of 1, and what the
training says is not followed by the launcher's own traceback.
"""

import logging
import os
from collections.abc import Sequence

from ssno.base import available_cores
from ssno.training.interruption import EXIT_INTERRUPTED


def launch(words: Sequence[str], *, processes: int) -> int:
    """Run `python -m WORDS` in so many processes that find each other; the exit code."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    if processes < 1:
        raise ValueError(f"`processes` must be at least 1, got {processes}.")
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // processes)))
    for chatty in ("torch.distributed", "torch.distributed.elastic.agent.server.api", "torch.multiprocessing"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    here = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    try:
        run(parse_args([*here, "--nproc-per-node", str(processes), "-m", *words]))
    except SignalException:  # the launcher has passed the signal on and waited for the processes to save
        return EXIT_INTERRUPTED
    except ChildFailedError as failed:
        return next((failure.exitcode for failure in failed.failures.values() if failure.exitcode > 0), 1)
    return 0
