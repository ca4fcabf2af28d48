"""The config: its models, and how it is read and checked."""

from entropy_valley.experiment.loading import load, load_files
from entropy_valley.experiment.schema import Experiment

__all__ = ["Experiment", "load", "load_files"]
