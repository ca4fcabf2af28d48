"""What jobs import, once for all of them: see children.py."""

import importlib
import os

os.environ["DS_ACCELERATOR"] = "cpu"  # chosen when deepspeed is imported

for name in (
    *("comet", "deepspeed", "run_rule", "matplotlib.pyplot", "peft", "scipy.stats", "torch.utils.tensorboard"),
    "entropy_valley.experiment.checking.computations",
    "entropy_valley.experiment.demo.toy_comet",
    "entropy_valley.decoding.engine",
    "entropy_valley.experiment.tables",
    "entropy_valley.experiment.runs.job",
    "entropy_valley.training.sft",
):
    importlib.import_module(name)
