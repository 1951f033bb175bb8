"""Saves checkpoints without end, for `test_kill_campaigns`: each holds its own step in every number."""

import sys
from pathlib import Path

import torch

from ssno.training.checkpoint import Progress, save_checkpoint

step = 0
while True:
    step += 1
    tensors = {f"model/{index}": torch.full((200, 300), float(step)) for index in range(4)}
    save_checkpoint(Path(sys.argv[1]), tensors, Progress(step=step))
