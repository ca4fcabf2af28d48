"""The families of checkpoints. A new one is one file and one entry here, or a user's own ``module:NAME``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from entropy_valley import plugins
from entropy_valley.errors import InputError, brief
from entropy_valley.model.families.base import Family, Release
from entropy_valley.model.families.diffullama import DIFFULLAMA
from entropy_valley.model.families.dream import DREAM, DREAM_INSTRUCT
from entropy_valley.model.families.llada import LLADA
from entropy_valley.model.families.llama3 import LLAMA3

FAMILIES: dict[str, Family] = {family.name: family for family in (LLADA, DREAM, DREAM_INSTRUCT, DIFFULLAMA, LLAMA3)}

__all__ = ["FAMILIES", "Family", "Release", "find_family"]


def find_family(name: str, file: Path | None = None) -> Family:
    """The family of that name; a user's own is named ``module:NAME``. Raises InputError if there is none. A ``file``
    that names it may be another's: it runs no code that this process has not imported before."""
    if file and ":" in name and name.partition(":")[0] not in sys.modules:
        remedy = "If you trust it, name it yourself: by --family, or in the config; or import its module first."
        raise InputError(file, f"its family is code of someone's own, {brief(name)}", remedy)
    if name in FAMILIES:
        return FAMILIES[name]
    family = plugins.find("family", FAMILIES, name)
    if not isinstance(family, Family):
        raise InputError(f"family {name!r}", "is not a Family", f"Name an instance of {Family.__module__}.Family.")
    return family if family.name == name else dataclasses.replace(family, name=name)
