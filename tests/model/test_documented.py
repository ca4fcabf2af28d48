"""docs/models_and_data.md says what the families say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from test_released_shapes import released_model

from entropy_valley.model.families import FAMILIES, LORA_TARGETS


def rows(heading):
    """The table under a heading: cells by the family that the first one names."""
    section = Path("docs/models_and_data.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [[cells[0].strip("`"), *cells[1:]] for cells in lines[2:]]


@pytest.fixture(params=sorted(FAMILIES))
def family(request):
    return FAMILIES[request.param]


def test_releases(family):
    documented = [cells for name, *cells in rows("Releases") if name == family.name]
    for release, (repository, licence, gated, commit) in zip(family.releases, documented, strict=True):
        assert (repository, licence) == (f"`{release.repository}`", release.licence)
        assert gated == ("yes" if release.gated else "no")
        assert commit.startswith(f"`{release.revision}`" if release.revision else "none pinned")


def test_what_they_are(family, tmp_path):
    release = family.releases[0]
    (cells,) = (cells for name, *cells in rows("What they are") if name == family.name)
    stock, parameters, *ids, bos, read, trainable = cells
    assert stock == f"`{family.architecture}`"
    assert ids == ["–" if value is None else str(value) for value in release.ids.values()]
    sections = yaml.safe_load(Path("config.yaml").read_text())["backbones"].values()  # those of the paper
    assert {section["bos"] for section in sections if section.get("family") == family.name} <= {bos == "yes"}
    assert family.bos == (bos == "yes")
    assert read == ("row i − 1" if family.shifted else "row i")
    model = released_model(release.repository, tmp_path)
    assert parameters == f"{sum(weight.numel() for weight in model.parameters()):,}"
    assert trainable == f"{64 * sum(map(sum, adapted_shapes(model))):,}"


def adapted_shapes(model):
    """(out, in) of every weight that LoRA adapts, with a row of A and of B for each rank."""
    named = {name: module for name, module in model.named_modules() if name.startswith("model.layers.")}
    return [module.weight.shape for name, module in named.items() if name.rpartition(".")[2] in LORA_TARGETS]
