"""One of the processes of a training: ``python -m entropy_valley.training JOB THREADS``."""

import sys

from entropy_valley import errors
from entropy_valley.training import processes, sft

with errors.in_one_line():
    processes.use_threads(int(sys.argv[2]))
    sft.finetune(sft.Finetuning.read(sys.argv[1]))
