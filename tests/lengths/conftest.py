from __future__ import annotations

import pytest

from entropy_valley.model.checkpoint import write_checkpoint
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import new_model
from entropy_valley.model.prompt import train_tokenizer

TEXTS = ["the small cat saw 12 dogs", "die kleine Katze sah 12 Hunde", "那只小猫看见了狗", "#PRS_ORG# costs 5 %"]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A folder with a tiny DiffuLLaMA, the family whose prompt has a BOS."""
    folder, family = tmp_path_factory.mktemp("diffullama"), FAMILIES["diffullama"]
    tokenizer = train_tokenizer(TEXTS, 320, family)
    model = new_model(
        "diffullama",
        vocabulary=len(tokenizer),
        width=16,
        layers=1,
        heads=2,
        kv_heads=2,
        ffn=16,
        context=40,
        seed=0,
    )
    write_checkpoint(model, family, tokenizer, folder)
    return folder
