import shutil

import pytest
import torch

from entropy_valley.experiment.demo.pretraining import new_model, train_tokenizer
from entropy_valley.model.checkpoint import write_checkpoint
from entropy_valley.model.families import FAMILIES

TEXTS = ["Tap Reset now.", "点击现在。", "Löschen Sie die Nachricht."] * 3


@pytest.fixture(scope="session", params=sorted(FAMILIES))
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A tiny checkpoint of each family in its released layout: (stock model, folder) by family name."""
    torch.set_num_threads(1)
    root, pairs = tmp_path_factory.mktemp("checkpoints"), {}
    for name, family in FAMILIES.items():
        tokenizer = train_tokenizer(TEXTS, 300, family)
        shape = dict(vocabulary=len(tokenizer), width=32, layers=2, heads=4, kv_heads=2, ffn=48, context=64)
        wider = {"head_dim": 16} if "head_dim" in family.defaults else {}  # than width / heads, as in the release
        model = new_model(name, seed=1, **shape, **wider).eval()
        write_checkpoint(model, family, tokenizer, root / name)
        pairs[name] = model, root / name
    return pairs


@pytest.fixture
def folder(tiny, family, tmp_path):
    """A copy of the family's checkpoint to spoil."""
    return shutil.copytree(tiny[family.name][1], tmp_path / family.name)
