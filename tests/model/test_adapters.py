"""Adapters in stock and in released names are one: read, merged as PEFT would, and exported for PEFT."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_adapters import AUTHORS_TARGETS, BLOCK, authors_model, peft_save, random_adapter, write

from entropy_valley import cli, files
from entropy_valley.errors import InputError
from entropy_valley.model import checkpoint
from entropy_valley.model.adapters import Adapter, adapter_digest, export, from_peft, read_adapter, to_peft
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone
from entropy_valley.translation.job import read_identity


def assert_equal(adapter, wanted):
    assert adapter.digest == wanted.digest
    for fact in ("alpha", "rslora", "dropout", "base"):
        assert getattr(adapter, fact) == getattr(wanted, fact), fact
    for module, pair in wanted.pairs.items():
        assert all(map(torch.equal, adapter.pairs[module], pair)), module


@pytest.fixture
def both(tiny, family, tmp_path):
    """One adapter in our layout and in the family's released one."""
    adapter = random_adapter(tiny[family.name][0], family)
    return adapter, write(adapter, tmp_path / "stock"), write(adapter, tmp_path / "released", family)


class TestLayouts:
    def test_both_merge_to_the_same_bits(self, tiny, family, both):
        _, folder = tiny[family.name]
        adapter, *folders = both
        ours, theirs = (load_backbone(folder, family.name, adapter=given).model.state_dict() for given in folders)
        bare = load_backbone(folder, family.name).model.state_dict()
        for name, tensor in bare.items():
            assert torch.equal(ours[name], theirs[name])
            assert torch.equal(ours[name], tensor) == (name.removesuffix(".weight") not in adapter.pairs)

    def test_lladas_own_names(self, tiny, tmp_path):
        family = FAMILIES["llada"]
        folder = write(random_adapter(tiny["llada"][0], family), tmp_path / "released", family)
        paths = sorted(f"model.transformer.blocks.{block}.{name}" for block in range(2) for name in BLOCK)
        names = {f"base_model.model.{path}.lora_{side}.weight" for path in paths for side in "AB"}
        assert load_file(folder / "adapter_model.safetensors").keys() == names
        assert files.read_json(folder / "adapter_config.json")["target_modules"] == paths

    @settings(max_examples=30)
    @given(st.data())
    def test_what_is_written_is_read(self, data):
        family = FAMILIES[data.draw(st.sampled_from(sorted(FAMILIES)))]
        modules = [f"model.layers.{i}.{name}" for i in (0, 1, 10) for name in ("self_attn.q_proj", "mlp.down_proj")]
        rank = data.draw(st.integers(1, 3))
        random = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
        pairs = {
            module: (torch.randn(rank, 5, generator=random), torch.randn(4, rank, generator=random))
            for module in sorted([*modules, "lm_head"])
        }
        alpha = data.draw(st.floats(0.5, 256, width=32))
        base, dropout = data.draw(st.sampled_from([None, "someone/base"])), data.draw(st.sampled_from([0.0, 0.05]))
        adapter = Adapter(pairs, alpha, data.draw(st.booleans()), dropout, base)
        tensors, config = to_peft(adapter, data.draw(st.sampled_from([None, family])))
        assert_equal(from_peft(tensors, json.loads(json.dumps(config)), family, place="drawn"), adapter)


class TestPeftsFiles:
    """What PEFT saved on the authors' class is merged as PEFT merges it."""

    @pytest.mark.parametrize(
        "config",
        [
            {"target_modules": AUTHORS_TARGETS, "lora_dropout": 0.05},
            {"target_modules": BLOCK, "use_rslora": True, "r": 3},
            {"target_modules": r"model\.transformer\.blocks\.\d+\.ff_out"},
        ],
        ids=["the authors' own", "rslora", "regex"],
    )
    def test_of_llada(self, tiny, tmp_path, config):
        folder = tiny["llada"][1]
        model = peft_save(folder, tmp_path, **config)
        ours = load_backbone(folder, "llada", adapter=tmp_path).model.state_dict()
        merged = model.merge_and_unload().state_dict()
        before = load_file(folder / "model.safetensors")
        assert any(not torch.equal(tensor, before[name]) for name, tensor in merged.items())
        for name, tensor in merged.items():
            torch.testing.assert_close(ours[FAMILIES["llada"].stock_name(name)], tensor, rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize(
        "rename",
        [
            lambda name: name.removeprefix("base_model.model."),
            lambda name: f"base_model.model.{name}",
            lambda name: name.replace(".weight", ".default.weight"),
        ],
        ids=["no prefix", "prefix twice", "adapter name"],
    )
    def test_other_tensor_names(self, both, family, rename):
        adapter, _, folder = both
        weights = load_file(folder / "adapter_model.safetensors")
        save_file({rename(name): tensor for name, tensor in weights.items()}, folder / "adapter_model.safetensors")
        assert read_adapter(folder, family).digest == adapter.digest

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_other_precisions(self, both, family, dtype):
        adapter, stock, _ = both
        path = stock / "adapter_model.safetensors"
        half = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
        save_file(half, path)
        adapter_read = read_adapter(stock, family)
        for module, pair in adapter.pairs.items():
            assert all(
                torch.equal(a, b.to(dtype).float()) for a, b in zip(adapter_read.pairs[module], pair, strict=True)
            )
        save_file({name: tensor.float() for name, tensor in half.items()}, path)
        assert read_adapter(stock, family).digest == adapter_read.digest


class TestExport:
    def test_peft_loads_it_on_the_authors_class(self, tiny, family, tmp_path):
        from peft import PeftModel

        stock, folder = tiny[family.name]
        adapter = random_adapter(stock, family, rank=3, alpha=5.0, rslora=True)
        export(write(adapter, tmp_path / "ours"), tmp_path / "theirs", family=family.name)
        model = PeftModel.from_pretrained(authors_model(folder), tmp_path / "theirs")
        adapted = {
            name: module.get_delta_weight("default")
            for name, module in model.base_model.model.named_modules()
            if hasattr(module, "get_delta_weight")
        }
        assert adapted.keys() == {family.released_name(module) for module in adapter.pairs}
        for module, (down, up) in adapter.pairs.items():
            delta = adapter.scaling * (up @ down)
            torch.testing.assert_close(adapted[family.released_name(module)], delta, rtol=1e-6, atol=1e-6)

    def test_there_and_back_is_the_same_bytes(self, both, family, tmp_path):
        _, ours, _ = both
        files.write_json(ours / "adapter.json", {"family": family.name, "backbone_digest": "b1"})
        export(ours, tmp_path / "theirs")
        export(tmp_path / "theirs", tmp_path / "back", "stock")
        for path in sorted(ours.iterdir()):
            assert path.read_bytes() == (tmp_path / "back" / path.name).read_bytes(), path.name

    def test_the_command(self, both, tmp_path, monkeypatch):
        _, ours, _ = both
        files.write_json(ours / "adapter.json", {"family": "llada"})
        monkeypatch.setattr(sys, "argv", ["entropy-valley", "export", str(ours), str(tmp_path / "out")])
        cli.main()
        exported = load_file(tmp_path / "out" / "adapter_model.safetensors")
        assert {FAMILIES["llada"].stock_name(name[17:]) for name in exported} == {
            name[17:] for name in load_file(ours / "adapter_model.safetensors")
        }

    def test_a_family_that_is_not_known_or_another(self, both, family, tmp_path):
        _, ours, _ = both
        with pytest.raises(InputError, match=r"no adapter\.json names its family.*--family"):
            export(ours, tmp_path / "out")
        with pytest.raises(InputError, match=r"is no adapter: it has no adapter_config\.json"):
            export(ours.parent, tmp_path / "out")
        files.write_json(ours / "adapter.json", {"family": "mine"})
        with pytest.raises(InputError, match=f"of family mine, not {family.name}"):
            export(ours, tmp_path / "out", family=family.name)
        assert not (tmp_path / "out").exists()

    def test_names_of_another_family(self, tiny, tmp_path):
        """Without a model to compare them with, LLaDA's names were kept as if they were Dream's."""
        peft_save(tiny["llada"][1], tmp_path / "theirs", target_modules=AUTHORS_TARGETS)
        with pytest.raises(InputError, match=r"fit no linear layer: model\.transformer\.blocks\.0\.\w+ has A .* dream"):
            export(tmp_path / "theirs", tmp_path / "out", family="dream")

    def test_a_family_of_the_users_own(self, both, family, tmp_path, monkeypatch):
        _, ours, _ = both
        files.write_json(ours / "adapter.json", {"family": "my_families:MINE"})
        monkeypatch.setitem(sys.modules, "my_families", SimpleNamespace(MINE=family))
        export(ours, tmp_path / "out")
        assert (tmp_path / "out" / "adapter.json").exists()

    def test_nothing_is_overwritten(self, both, family):
        _, ours, theirs = both
        with pytest.raises(InputError, match="exists already"):
            export(ours, theirs, family=family.name)


class TestForeignAdapters:
    """A folder without ``adapter.json`` is taken as it is; one with it says whose it is."""

    def test_its_digest_is_that_of_its_tensors(self, tiny, family, both):
        folder, (adapter, *given) = tiny[family.name][1], both
        cards = {read_identity(folder, place, family.name, "{src}", False).digest for place in (None, *given)}
        assert len(cards) == 2
        assert {adapter_digest(place, family, "any") for place in given} == {adapter.digest}

    def test_a_card_names_the_backbone(self, tiny, family, both):
        folder, (_, ours, _) = tiny[family.name][1], both
        digest = checkpoint.checkpoint_digest(folder)
        files.write_json(ours / "adapter.json", {"backbone_digest": digest, "adapter_digest": "a1"})
        assert adapter_digest(ours, family, digest) == "a1"
        for look in (
            lambda: adapter_digest(ours, family, "b2"),
            lambda: load_backbone(folder, family.name, adapter=ours),
        ):
            files.write_json(ours / "adapter.json", {"backbone_digest": "b1"})
            with pytest.raises(InputError, match="trained on backbone b1"):
                look()
