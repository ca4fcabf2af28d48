"""Adapters in stock and in released names are one: read, merged by PEFT, and exported for PEFT."""

import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_adapters import AUTHORS_TARGETS, BLOCK, adapter_of, authors_model, peft_save, random_adapter, write

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.adapters import export, read_adapter, write_adapter
from entropy_valley.model.attention import pack
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone, stock_model


@pytest.fixture(scope="module", params=["dream", "llada"])
def family(request):
    """Stock names, and names of its own; those of all families: test_released_shapes.py."""
    return FAMILIES[request.param]


@pytest.fixture
def both(tiny, family, tmp_path):
    """One adapter in our layout and in the family's released one."""
    adapter = random_adapter(tiny[family.name][0])
    return adapter, write(adapter, tmp_path / "stock"), write(adapter, tmp_path / "released", family)


class TestLayouts:
    def test_both_merge_to_the_same_bits(self, tiny, family, both):
        _, folder = tiny[family.name]
        adapter, *folders = both
        ours, theirs = (load_backbone(folder, family.name, adapter=given).model.state_dict() for given in folders)
        bare = load_backbone(folder, family.name).model.state_dict()
        for name, tensor in bare.items():
            assert torch.equal(ours[name], theirs[name])
            assert torch.equal(ours[name], tensor) == (name.removesuffix(".weight") not in adapter.modules)

    @settings(max_examples=30)
    @given(data=st.data())
    def test_what_is_written_is_read(self, data, tmp_path_factory):
        family = FAMILIES[data.draw(st.sampled_from(sorted(FAMILIES)))]
        modules = [f"model.layers.{i}.{name}" for i in (0, 1, 10) for name in ("self_attn.q_proj", "mlp.down_proj")]
        rank = data.draw(st.integers(1, 3))
        random = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
        pairs = {
            module: (torch.randn(rank, 5, generator=random), torch.randn(4, rank, generator=random))
            for module in sorted([*modules, "lm_head"])
        }
        adapter = adapter_of(
            pairs,
            data.draw(st.floats(0.5, 256, width=32)),
            use_rslora=data.draw(st.booleans()),
            lora_dropout=data.draw(st.sampled_from([0.0, 0.05])),
            base_model_name_or_path=data.draw(st.sampled_from([None, "someone/base"])),
            alpha_pattern=data.draw(st.sampled_from([{}, {"model.layers.1.mlp.down_proj": 0.25}])),
            init_lora_weights=data.draw(st.sampled_from([None, "pissa"])),
        )
        folder = tmp_path_factory.mktemp("written")
        write_adapter(adapter, folder, data.draw(st.sampled_from([None, family])))
        again = read_adapter(folder, family)
        assert (again.digest, again.settings) == (adapter.digest, adapter.settings)
        assert all(torch.equal(again.weights[name], tensor) for name, tensor in adapter.weights.items())


def test_the_digest_of_an_adapter_stays(tiny):
    """That of version 0.2.0 as it was first released: results name it."""
    pairs = {"model.layers.0.mlp.up_proj": (torch.arange(6.0).view(2, 3), torch.ones(4, 2))}
    assert adapter_of(pairs, 4).digest == "2ba74d12788f122e12f7df8fc15db337"
    assert adapter_of(pairs, 4).digest != adapter_of(pairs, 4, use_rslora=True).digest
    assert adapter_of(pairs, 4).digest != adapter_of(pairs, 4, init_lora_weights="olora").digest


class TestPeftsFiles:
    """What PEFT saved on the authors' class is merged as PEFT merges it."""

    @pytest.mark.parametrize(
        "config",
        [
            {"target_modules": AUTHORS_TARGETS, "lora_dropout": 0.05},
            {"target_modules": r"model\.transformer\.blocks\.\d+\.ff_out"},
            {"target_modules": BLOCK, "rank_pattern": {"ff_out": 2, r"^model.transformer.blocks.\d.q_proj": 3}},
            {"target_modules": BLOCK, "alpha_pattern": {"blocks.1.ff_out": 5}, "use_dora": True},
        ],
        ids=["the authors' own", "regex", "ranks", "alphas and DoRA"],
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

    def test_in_half_precision(self, tiny, tmp_path):
        """Its tensors are read in float32, and so is the digest."""
        folder = write(random_adapter(tiny["llada"][0]), tmp_path / "half")
        path, digests = folder / "adapter_model.safetensors", []
        half = {name: tensor.bfloat16() for name, tensor in load_file(path).items()}
        for tensors in (half, {name: tensor.float() for name, tensor in half.items()}):
            save_file(tensors, path)
            read = read_adapter(folder, FAMILIES["llada"])
            assert all(torch.equal(one, half[f"base_model.model.{name}"].float()) for name, one in read.weights.items())
            digests.append(read.digest)
        assert digests[0] == digests[1]


QKV = ["q_proj", "k_proj", "v_proj"]
KINDS = {
    "rsLoRA": {"target_modules": QKV, "use_rslora": True, "r": 3},
    "DoRA": {"target_modules": [*QKV, "down_proj"], "use_dora": True},
    "PiSSA": {"target_modules": [*QKV, "up_proj"], "init_lora_weights": "pissa"},
    "OLoRA": {"target_modules": [*QKV, "up_proj"], "init_lora_weights": "olora"},
    "ranks, alphas": {"target_modules": QKV, "rank_pattern": {"q_proj": 2}, "alpha_pattern": {"1.self_attn.k_proj": 3}},
    "biases of LoRA": {"target_modules": QKV, "lora_bias": True},
    "biases of layers": {"target_modules": QKV, "bias": "all"},
    "embeddings and head saved": {"target_modules": QKV, "modules_to_save": ["embed_tokens", "lm_head"]},
    "orthogonal": {"target_modules": QKV, "init_lora_weights": "orthogonal"},
    "the head": {"target_modules": [*QKV, "lm_head"]},
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tiny, tmp_path_factory):
    """An adapter of PEFT on the stock class of Dream, whose q, k and v have biases; its logits, by precision."""
    from peft import LoraConfig, PeftModel, get_peft_model

    def stock(dtype):
        model = load_backbone(tiny["dream"][1], "dream", dtype=dtype).model
        return stock_model(FAMILIES["dream"], model)

    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("kind")
    model = get_peft_model(stock("float32"), LoraConfig(**{"r": 4, "lora_alpha": 8, **KINDS[request.param]}))
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(name)))
            parameter.data += 0.1 * noise
    model.save_pretrained(out)
    logits = {}
    for dtype in ("float32", "bfloat16"):
        loaded = PeftModel.from_pretrained(stock(dtype), out).eval()
        everything = torch.zeros(1, 1, 4, 4, dtype=loaded.dtype)
        with torch.inference_mode():
            logits[dtype] = loaded(input_ids=torch.tensor([[5, 6, 7, 8]]), attention_mask=everything).logits[0].float()
    with torch.inference_mode():
        trained = model.eval()(input_ids=torch.tensor([[5, 6, 7, 8]]), attention_mask=torch.zeros(1, 1, 4, 4)).logits[0]
    torch.testing.assert_close(logits["float32"], trained, rtol=1e-4, atol=1e-4)  # PEFT loads what it saved
    return out, logits


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("merge", [True, False], ids=["merged", "beside"])
@torch.inference_mode()
def test_every_kind_is_pefts_on_the_stock_class(tiny, kind, merge, dtype):
    """The tolerance in bfloat16 is that of its rounding: without the adapter the logits are far off."""
    folder, logits = kind

    def ours(**given):
        model = load_backbone(tiny["dream"][1], "dream", dtype=dtype, **given).model
        assert {one.dtype for name, one in model.named_parameters() if "lora_A" in name} <= {torch.float32}
        return model.lm_head(model.hidden_states(pack([[5, 6, 7, 8]]))).float()

    adapted, scale = ours(adapter=folder, merge=merge), logits[dtype].abs().max()
    off = (adapted - logits[dtype]).abs().max() / scale
    assert off < (1e-5 if dtype == "float32" else 0.05)
    assert (ours() - logits[dtype]).abs().max() / scale > 0.1


@pytest.mark.parametrize("layout", ["released", "stock"])
def test_every_kind_is_exported(kind, tmp_path, layout):
    folder, _ = kind
    export(folder, tmp_path / "out", layout, family="dream")
    assert read_adapter(tmp_path / "out", FAMILIES["dream"]).digest == read_adapter(folder, FAMILIES["dream"]).digest


class TestExport:
    def test_peft_loads_it_on_the_authors_class(self, tiny, family, tmp_path):
        from peft import PeftModel

        stock, folder = tiny[family.name]
        adapter = random_adapter(stock, rank=3, alpha=5.0, use_rslora=True)
        export(write(adapter, tmp_path / "ours"), tmp_path / "theirs", family=family.name)
        model = PeftModel.from_pretrained(authors_model(folder), tmp_path / "theirs")
        adapted = {
            name: module.get_delta_weight("default")
            for name, module in model.base_model.model.named_modules()
            if hasattr(module, "get_delta_weight")
        }
        assert adapted.keys() == {family.released_name(module) for module in adapter.modules}
        for module in adapter.modules:
            down, up = (adapter.weights[f"{module}.lora_{side}.weight"] for side in "AB")
            delta = 5.0 / 3**0.5 * (up @ down)
            torch.testing.assert_close(adapted[family.released_name(module)], delta, rtol=1e-6, atol=1e-6)

    def test_a_family_that_is_not_known_or_another(self, both, family, tmp_path):
        _, ours, _ = both
        with pytest.raises(InputError, match=r"no adapter\.json names its family.*--family"):
            export(ours, tmp_path / "out")
        with pytest.raises(InputError, match="no safetensors files"):
            export(ours.parent, tmp_path / "out", family=family.name)
        assert not (tmp_path / "out").exists()

    def test_names_of_another_family(self, tiny, tmp_path):
        """Without a model to compare them with, LLaDA's names were kept as if they were Dream's."""
        peft_save(tiny["llada"][1], tmp_path / "theirs", target_modules=AUTHORS_TARGETS)
        with pytest.raises(InputError, match=r"blocks\.0\.\w+\.lora_A\.weight is of no layer.* dream"):
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


@torch.inference_mode()
def test_an_adapter_of_a_tied_head_leaves_the_embeddings(tiny, tmp_path):
    """Merged or beside the weights, the same logits, which are not those of the bare model."""
    _, folder = tiny["a2d_qwen3"]
    random, vocabulary = torch.Generator().manual_seed(3), load_backbone(folder, "a2d_qwen3").model.config.vocab_size
    pair = torch.randn(2, 32, generator=random), torch.randn(vocabulary, 2, generator=random)
    write_adapter(adapter_of({"lm_head": pair}, 4.0), tmp_path, FAMILIES["a2d_qwen3"])

    def logits(**given):
        model = load_backbone(folder, "a2d_qwen3", **given).model
        return model.lm_head(model.hidden_states(pack([[5, 6, 7]])))

    merged = logits(adapter=tmp_path)
    torch.testing.assert_close(merged, logits(adapter=tmp_path, merge=False), rtol=1e-4, atol=1e-4)
    assert (merged - logits()).abs().max() > 0.1
