"""The config: its models, and how it is read and checked."""

from entropy_valley.experiment.loading import base_files, load, load_files, near
from entropy_valley.experiment.schema import Experiment

__all__ = ["Experiment", "base_files", "load", "load_files", "near"]
