"""docs/models_and_data.md says what the families say."""

import re
from pathlib import Path

import pytest
import yaml

from entropy_valley.model.families import FAMILIES

PAGE = Path("docs/models_and_data.md").read_text(encoding="utf-8")


def rows(family):
    """The rows of the page's table of releases that begin with a family's name, without it."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    return [cells for name, *cells in lines if name == f"`{family}`"]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_releases(family):
    for release, (repository, licence, mask, eos, read) in zip(family.releases, rows(family.name), strict=True):
        assert repository == f"`{release.repository}`"
        assert licence == release.licence + " (gated)" * release.gated
        ids = [release.ids["mask"], release.ids["eos"]]
        assert [mask, eos] == ["–" if value is None else str(value) for value in ids]
        assert read == ("row i − 1" if family.shifted else "row i")


def test_which_prompts_begin_with_the_bos():
    (sentence,) = re.findall(r"\*\*BOS:\*\* prompts of (.*?) begin", PAGE)
    assert set(re.findall("`(.*?)`", sentence)) == {name for name, family in FAMILIES.items() if family.bos}
    sections = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))["backbones"].values()  # of the paper
    named = [section for section in sections if section.get("family")]
    assert all(section["bos"] == FAMILIES[section["family"]].bos for section in named) and named
