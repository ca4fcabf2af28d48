"""The config: its models, and how it is read and checked."""

from entropy_valley.experiment.config.load import base_files, load_files, load_merged
from entropy_valley.experiment.config.schema import Experiment

__all__ = ["Experiment", "base_files", "load_files", "load_merged"]
