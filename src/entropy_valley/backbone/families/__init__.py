"""The families this project loads; a new one is one file and one line here."""

from entropy_valley.backbone.families.base import LORA_TARGETS, Family
from entropy_valley.backbone.families.diffullama import DIFFULLAMA
from entropy_valley.backbone.families.dream import DREAM
from entropy_valley.backbone.families.llada import LLADA

FAMILIES: dict[str, Family] = {family.name: family for family in (LLADA, DREAM, DIFFULLAMA)}

__all__ = ["FAMILIES", "LORA_TARGETS", "Family"]
