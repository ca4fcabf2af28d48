from pathlib import Path
from typing import Any

import pytest
import yaml

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def load(tmp_path):
    """The paper's config with something laid over it."""

    def loaded(over: dict[str, Any], *between: str):
        mine = tmp_path / "mine.yaml"
        mine.write_text(yaml.safe_dump(over, allow_unicode=True))
        return load_files([*base_files(ROOT), *(ROOT / name for name in between), mine], tables.problems)

    return loaded
