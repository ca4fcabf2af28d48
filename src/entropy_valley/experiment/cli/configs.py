"""The config that a command looks at: that of `--configfile`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from entropy_valley.errors import InputError, listed
from entropy_valley.experiment.config import Experiment, base_files, load_files
from entropy_valley.experiment.config.load import INSTALLED, merge
from entropy_valley.results import differences
from entropy_valley.texts import counted

KEYS = 30  # most keys of a config that are listed


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


def experiment(configfiles: Sequence[str | Path], reports: bool = True) -> Experiment:
    """The config of :func:`paths`, checked; with ``reports`` also what its tables and figures need."""
    if not reports:
        return load_files(paths(configfiles))
    from entropy_valley.experiment import tables  # which a translation does without

    return load_files(paths(configfiles), tables.problems)


def compare(configfiles: list[str], over: list[str]) -> tuple[Experiment, Experiment]:
    """A config, and the same with further files laid over it; prints which files these are, and in which keys the two
    differ."""
    files = [paths(configfiles), paths([*configfiles, *over])]
    before, after = experiment(configfiles), experiment([*configfiles, *over])
    changes = [str(one) for one in differences(merge(files[0]), merge(files[1]))]
    print(f"Config:   {listed([*map(str, files[0])])}")
    print(f"Against:  the same{listed(['', *map(str, files[1][len(files[0]) :])])}")
    print(f"{counted(len(changes), 'key')} of the config differ{'s' * (len(changes) == 1)}")
    more = [f"… and {len(changes) - KEYS} more"] * (len(changes) > KEYS)
    print(*(f"  {change}" for change in [*changes[:KEYS], *more]), sep="\n")
    return before, after
