"""Modules of transformers that the decoder does not compute: `Translator.of`, and backbones of the family `stock`."""

import json
import shutil

import pytest
import torch
import transformers  # its classes are imported where they are used: each takes a while
from bench import Bench
from tiny_checkpoints import SOURCES

from entropy_valley import InputError, Translator, choose_length, files, make_method
from entropy_valley.decoding.canvas import CachePolicy
from entropy_valley.model import load
from entropy_valley.model.load import load_backbone, stock_model
from entropy_valley.model.prompt import Prompt

GIVEN = {"prompt": "{src} = ", "ratios": [0.6, 0.8, 1.0], "steps": 3}


def small(name, **more):
    """A random model of this class with weights so wide that its distributions are not flat."""
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(1)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(vocab_size=300, max_position_embeddings=64, **shape, **more)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8 if weight.dim() == 2 else 1)
    return model


@pytest.fixture(scope="module")
def tokenizer(checkpoints):
    return transformers.PreTrainedTokenizerFast.from_pretrained(checkpoints / "llada", local_files_only=True)


@pytest.fixture(params=["bert", "a mixture of experts"])
def module(request):
    if request.param == "bert":  # layer norms, GELU, a head with a bias behind a layer of its own
        return small("BertForMaskedLM")
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_key_value_heads": 2}
    return small("Qwen3MoeForCausalLM", head_dim=16, **experts)


@torch.inference_mode()
def plain(module, prompt, length, steps, mask, eos):
    """The text of one canvas by minimum entropy, in a plain loop over logits of one sequence."""
    tokens = [mask] * length
    for step in range(steps):
        logits = logits_of(module)(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) :].double()
        logits[:, mask] = -torch.inf
        entropies = torch.special.entr(logits.softmax(-1)).sum(-1).tolist()
        masked = [slot for slot in range(length) if tokens[slot] == mask]
        count = length // steps + (step < length % steps)
        for slot in sorted(masked, key=lambda slot: (entropies[slot], slot))[:count]:
            tokens[slot] = int(logits[slot].argmax())
    return tokens[: tokens.index(eos)] if eos in tokens else tokens


def logits_of(module):
    if type(module).__name__.endswith("ForMaskedLM"):
        return lambda ids: module(input_ids=ids)
    return lambda ids: module(input_ids=ids, attention_mask=torch.zeros(1, 1, ids.shape[1], ids.shape[1]))


def test_a_module_translates_as_a_plain_loop_does(module, tokenizer):
    translator = Translator.of(module, tokenizer, mask="<|mdm_mask|>", eos="<|endoftext|>", **GIVEN)
    mask, eos = translator.backbone.mask_id, translator.backbone.eos_id
    for source, ours in zip(SOURCES[:4], translator.translate(SOURCES[:4]), strict=True):
        prompt = translator.prompt.encode(source)
        count = len(translator.prompt.tokens(source))
        alone = choose_length(
            logits_of(module), prompt, translator.method, mask_id=mask, eos_id=eos, source_tokens=count
        )
        assert ours.canvas == alone.canvas and ours.entropies == pytest.approx(alone.entropies, abs=1e-4)
        tokens = plain(module, prompt, ours.canvas, 3, mask, eos)
        assert ours.text == translator.prompt.text([token for token in tokens if token != mask])


def test_a_stock_class_translates_as_the_decoder_does(backbone):
    """By an order that looks at the SIG in each step, too."""
    tokenizer, module = backbone.tokenizer, stock_model(backbone.family, backbone.model)
    more = {"order": "sig_first", "order_settings": {"sig": "stepwise_kl"}}
    wrapped = Translator.of(
        module, tokenizer, mask=backbone.mask_id, eos=backbone.eos_id, shifted=backbone.shifted, **GIVEN, **more
    )
    ours = Translator(backbone, wrapped.prompt, wrapped.method, steps=3, **more).translate(SOURCES[:4])
    for one, other in zip(wrapped.translate(SOURCES[:4]), ours, strict=True):
        assert (one.canvas, one.text) == (other.canvas, other.text)
        assert one.entropies == pytest.approx(other.entropies, abs=1e-4)


def test_a_module_that_stays_causal_is_refused(tokenizer):
    module = small("GPT2LMHeadModel")
    forward = module.forward
    module.forward = lambda input_ids, **_: forward(input_ids)
    with pytest.raises(InputError, match="GPT2LMHeadModel: its rows do not see those behind them"):
        Translator.of(module, tokenizer, mask=3, eos=4, **GIVEN)
    with pytest.raises(InputError, match="mask: the tokenizer has no token <m>"):
        Translator.of(module, tokenizer, mask="<m>", eos=4, **GIVEN)


# --- A backbone of a config: `family: stock`.


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A checkpoint with layer norms, GELU and attention in windows."""
    folder = tmp_path_factory.mktemp("modernbert") / "stock"
    windows = {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0}
    small("ModernBertForMaskedLM", **windows).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_stock_class_goes_through_a_job_of_the_workflow(folder, testset, tmp_path):
    bench = Bench(tmp_path, folder.parent, testset, "stock")
    rows, _ = bench.decode("ev", steps=3)
    backbone = load_backbone(folder, "stock")
    module = transformers.ModernBertForMaskedLM.from_pretrained(folder).eval()
    prompt = Prompt(bench.spec["prompt"], backbone.tokenizer)
    sources = [row["source"] for row in files.read_jsonl(testset)]
    for row, source in zip(rows, sources, strict=True):
        tokens = plain(module, prompt.encode(source), row["canvas"]["length"], 3, backbone.mask_id, backbone.eos_id)
        assert row["hypothesis"] == prompt.text(tokens)
    assert len({row["hypothesis"] for row in rows}) > 3


def changed(folder, tmp_path, **config):
    """The checkpoint with other fields in its `config.json`."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    content = json.loads((copy / "config.json").read_text()) | config
    (copy / "config.json").write_text(json.dumps(content))
    return copy


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["TheirsForMaskedLM"]}, r"no class 'TheirsForMaskedLM' that gives logits of tokens"),
        ({"architectures": ["AutoModel"]}, r"no class 'AutoModel' that gives logits of tokens"),
        ({"num_hidden_layers": 3}, r"\.2\.\S+ is missing"),
        ({"model_type": "theirs", "auto_map": {"AutoConfig": "theirs.Config"}}, r"not a config that can be read"),
    ],
)
def test_what_is_no_class_of_transformers_is_refused(folder, tmp_path, config, message):
    with pytest.raises(InputError, match=message):
        load_backbone(changed(folder, tmp_path, **config), "stock")


def test_it_is_checked_without_its_weights(folder, tmp_path, monkeypatch):
    spec = {"backbone": "mine", "family": "stock"}
    monkeypatch.setattr(load, "Wrapped", lambda module: pytest.fail("it was run"))
    assert load.fetch(spec, folder, own=True, agreed=True)["digest"]
    with pytest.raises(InputError, match=r"\.2\.\S+ is missing"):
        load.fetch(spec, changed(folder, tmp_path, num_hidden_layers=3), own=True, agreed=True)


def test_what_a_stock_class_lacks_is_said(folder):
    for given in ({"adapter": "mine"}, {"dtype": "nf4"}, {"attention": "prefix"}):
        with pytest.raises(InputError, match="without an adapter, the precision nf4 and prefix attention"):
            load_backbone(folder, "stock", **given)
    with pytest.raises(InputError, match="cache: a stock class keeps no prompts"):
        Translator.load(folder, family="stock", cache=CachePolicy(4), **GIVEN)


# --- A length for anybody's model: by a function from ids to logits, the canvases of the engine.

RATIOS = {"ratios": [0.6, 0.8, 1.0, 1.2]}


def chosen(backbone, logits_of, prompt, source, method):
    return choose_length(
        logits_of,
        prompt.encode(source),
        method,
        mask_id=backbone.mask_id,
        eos_id=backbone.eos_id,
        shifted=backbone.shifted,
        source_tokens=len(prompt.tokens(source)),
    )


@pytest.mark.parametrize("method", ["ev", "ratio"])
def test_the_choices_are_the_translators(backbone, method):
    prompt = Prompt("{src} = ", backbone.tokenizer)
    method = make_method(method, RATIOS if method == "ev" else {"ratios": 0.8})
    logits_of_stock = logits_of(stock_model(backbone.family, backbone.model))
    for source, ours in zip(
        SOURCES, Translator(backbone, prompt, method, steps=1).translate(SOURCES[:6]), strict=False
    ):
        mine = chosen(backbone, logits_of_stock, prompt, source, method)
        assert (mine.canvas, mine.scores.keys()) == (ours.canvas, ours.scores.keys())
        for slots, reading in ours.readings.items():
            assert mine.readings[slots].tokens == reading.tokens
            assert mine.readings[slots].entropies == pytest.approx(reading.entropies, abs=1e-4)


def test_candidate_lengths_are_enough(llada):
    prompt = Prompt("{src} = ", llada.tokenizer)
    mine = chosen(llada, logits_of(stock_model(llada.family, llada.model)), prompt, SOURCES[0], [5, 7, 9])
    assert [*mine.entropies] == [5, 7, 9] and mine.canvas == min(mine.entropies, key=mine.entropies.get)


@pytest.mark.parametrize(
    ("logits_of", "method", "problem"),
    [
        (lambda ids: torch.zeros(ids.shape[1], 9), [], "lengths = .* at least 1 item"),
        (lambda ids: torch.zeros(ids.shape[1], 9), [1, 4], "lengths.0 = 1: must be greater than or equal to 2"),
        (lambda ids: torch.zeros(3, 9), [4], r"returns \(3, 9\) for 6 ids"),
        (lambda ids: torch.full((1, ids.shape[1], 9), torch.nan), [4], "returns NaN"),
        (None, make_method("oracle", {}), "needs the reference"),
        (None, make_method("ev", {"ratios": [0.8, 1.0]}), "source_tokens: not given, but EntropyValley"),
        (None, make_method("length_line", {}), "source_tokens: not given, but ExpectedLength"),
    ],
)
def test_what_cannot_be_read_is_named(logits_of, method, problem):
    with pytest.raises(InputError, match=problem):
        choose_length(logits_of, [1, 2], method, mask_id=3, eos_id=4)


def test_a_token_may_be_ruled_out(llada):
    """By a logit of -inf, as by a very low one."""
    prompt, logits = Prompt("{src} = ", llada.tokenizer), logits_of(stock_model(llada.family, llada.model))

    def without(value):
        def read(ids):
            given = logits(ids).logits.clone()
            given[..., 7:20] = value
            return given

        return read

    never, hardly = (chosen(llada, without(value), prompt, SOURCES[0], [5, 7]) for value in (-torch.inf, -1e30))
    assert (never.canvas, never.readings) == (hardly.canvas, hardly.readings)
