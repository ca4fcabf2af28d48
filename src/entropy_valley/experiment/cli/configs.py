"""The config that a command looks at: that of `--configfile`."""

from collections.abc import Sequence
from pathlib import Path

from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment, base_files, load_files
from entropy_valley.experiment.config.load import INSTALLED


def root() -> Path:
    """The folder with the config.yaml that all others are laid over: this one, else what is installed."""
    return Path() if Path("config.yaml").exists() else INSTALLED


def paths(configfiles: Sequence[str | Path]) -> list[Path]:
    """The config files below all others, and above them those that are named.

    Raises InputError where none is named and this folder has none.
    """
    if not configfiles and root() == INSTALLED:
        remedy = "Go to the root of the repository, or name a config by --configfile FILE; translate has --tiny, too."
        raise InputError("config.yaml", "not in this folder", remedy)
    base = [path for path in base_files(root()) if path.exists()]
    return list(dict.fromkeys([*base, *map(Path, configfiles)]))


def experiment(configfiles: Sequence[str | Path]) -> Experiment:
    """The config of :func:`paths`, checked, also for what its tables and figures need."""
    from entropy_valley.experiment import tables  # which a translation does without

    return load_files(paths(configfiles), tables.problems)
