from __future__ import annotations

import pytest
import torch

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.adapters import read_adapter
from entropy_valley.model.attention import hidden_states, pack
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone


@pytest.fixture(scope="module")
def adapted(llada, checkpoints, tmp_path_factory):
    """An adapter folder as training writes it, and PEFT's own model of it."""
    from peft import LoraConfig, get_peft_model

    model = load_backbone(checkpoints / "llada", "llada").model
    peft = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=list(FAMILIES["llada"].lora_targets)))
    torch.manual_seed(0)
    for name, parameter in peft.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    folder = tmp_path_factory.mktemp("adapter")
    peft.save_pretrained(folder)
    digest = read_adapter(folder, FAMILIES["llada"]).digest
    files.write_json(folder / "adapter.json", {"backbone_digest": llada.digest, "adapter_digest": digest})
    return folder, peft.eval()


@torch.inference_mode()
def test_the_merged_adapter_is_pefts_merge(adapted, llada, checkpoints):
    folder, peft = adapted
    ours = load_backbone(checkpoints / "llada", "llada", adapter=folder).model
    packed = pack([[5, 6, 7, 8], [9, 10, 11]])
    unmerged = hidden_states(peft.base_model.model, packed)
    torch.testing.assert_close(hidden_states(ours, packed), unmerged, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(hidden_states(llada.model, packed), unmerged, atol=1e-2)
    merged = dict(peft.merge_and_unload().named_parameters())
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter, merged[name], rtol=1e-6, atol=1e-6)


def test_an_adapter_of_another_backbone_is_refused(adapted, checkpoints):
    with pytest.raises(InputError, match="trained on backbone"):
        load_backbone(checkpoints / "diffullama", "diffullama", adapter=adapted[0])
