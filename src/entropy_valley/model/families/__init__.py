"""The families of checkpoints. A new one is one file and one entry here, or a user's own ``module:NAME``."""

from __future__ import annotations

import dataclasses

from entropy_valley import plugins
from entropy_valley.errors import InputError
from entropy_valley.model.families.base import Family, Release
from entropy_valley.model.families.diffullama import DIFFULLAMA
from entropy_valley.model.families.dream import DREAM, DREAM_INSTRUCT
from entropy_valley.model.families.llada import LLADA
from entropy_valley.model.families.llama3 import LLAMA3

FAMILIES: dict[str, Family] = {family.name: family for family in (LLADA, DREAM, DREAM_INSTRUCT, DIFFULLAMA, LLAMA3)}

__all__ = ["FAMILIES", "Family", "Release", "find_family"]


def find_family(name: str) -> Family:
    """The family of that name; a user's own is named ``module:NAME``. Raises InputError if there is none."""
    family = plugins.find("family", FAMILIES, name)
    if not isinstance(family, Family):
        raise InputError(f"family {name!r}", "is no Family", "Name an instance of backbone.families.Family.")
    return family if family.name == name else dataclasses.replace(family, name=name)
