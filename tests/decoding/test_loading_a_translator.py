"""`Translator.load`: checkpoints and adapters in their authors' layouts, from folders and from a hub."""

import dataclasses
import re
import shutil
from pathlib import Path

import peers
import pytest
import torch
from fake_hub import contents, serve
from tiny_adapters import AUTHORS_TARGETS, peft_save
from tiny_checkpoints import SOURCES
from transformers import PreTrainedTokenizerFast

from entropy_valley import InputError, Translator, files, hub, make_method
from entropy_valley.lengths.ev import EntropyValley
from entropy_valley.model import adapters, checkpoint
from entropy_valley.model.families import FAMILIES, Release
from entropy_valley.model.load import load_backbone, stock_model
from entropy_valley.model.prompt import Prompt

PROMPT, RATIOS = "English: {src}\nGerman: ", [0.6, 0.8, 1.0]
OLD, NEW = "a" * 40, "b" * 40


@pytest.fixture(scope="module")
def released(checkpoints, tmp_path_factory):
    """A LLaDA as its authors released it, and an adapter as PEFT saves it on their class: the head is adapted, too."""
    root = tmp_path_factory.mktemp("released")
    shutil.copytree(checkpoints / "llada", root / "llada", ignore=shutil.ignore_patterns(checkpoint.MANIFEST))
    peft_save(root / "llada", root / "adapter", target_modules=AUTHORS_TARGETS)
    assert not (root / "adapter" / adapters.FACTS).exists()
    return root


@pytest.fixture(autouse=True)
def own_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))


def texts(translator):
    return [one.text for one in translator.translate(SOURCES[:4])]


def by_hand(released, family="llada", bos=None, adapter="adapter"):
    loaded = load_backbone(released / "llada", family, adapter=adapter and released / adapter)
    prompt = Prompt(PROMPT, loaded.tokenizer, bos and loaded.bos_id)
    return texts(Translator(loaded, prompt, make_method("ev", {"ratios": RATIOS}), steps=4))


def test_from_folders_with_a_prompt_and_ratios(released):
    given = {"prompt": PROMPT, "ratios": RATIOS, "steps": 4}
    translator = Translator.load(released / "llada", released / "adapter", **given)
    assert texts(translator) == by_hand(released)
    bare = Translator.load(released / "llada", dtype=torch.float32, **given)
    assert texts(bare) == by_hand(released, adapter=None) != by_hand(released)
    with_bos = Translator.load(released / "llada", released / "adapter", bos=True, **given)
    assert texts(with_bos) == by_hand(released, bos=True)


@pytest.mark.parametrize("checkpoint", ["llada_instruct", "a2d_qwen2", "a2d_qwen3"])
def test_a_prompt_in_the_familys_chat(checkpoints, checkpoint):
    """A text ends with the turn under the base's name, too."""
    given = {"prompt": PROMPT, "ratios": RATIOS, "steps": 4}
    folder, kind = checkpoints / checkpoint, FAMILIES[checkpoint]
    chat = Translator.load(folder, chat=True, **given)
    assert chat.backbone.family == kind and chat.prompt.template == kind.chat.replace("{prompt}", PROMPT)
    assert texts(chat) != texts(Translator.load(folder, **given))
    if checkpoint == "llada_instruct":
        end = chat.backbone.tokenizer.get_vocab()["<|eot_id|>"]
        base = Translator.load(folder, family="llada", **given)
        assert base._turn_end == chat._turn_end == end
        with pytest.raises(InputError, match="chat: the family llada has no chat template"):
            Translator.load(folder, family="llada", chat=True, **given)


def test_a_bos_that_the_family_does_not_have(released, monkeypatch):
    monkeypatch.setitem(FAMILIES, "llada", dataclasses.replace(FAMILIES["llada"], bos_token=None))
    with pytest.raises(InputError, match=r"bos: the tokenizer has no BOS token\. Set"):
        Translator.load(released / "llada", prompt=PROMPT, ratios=RATIOS, bos=True)


def test_a_release_is_fetched_once_at_its_pinned_commit(released, reach, monkeypatch, capsys):
    family = FAMILIES["llada"]
    release = Release("someone/model", "Licence X", config={}, ids={}, revision=OLD)
    monkeypatch.setitem(FAMILIES, "llada", dataclasses.replace(family, releases=(release,)))
    given = {"prompt": PROMPT, "ratios": RATIOS, "steps": 4}
    with serve({OLD: contents(released / "llada"), NEW: {"README.md": b"moved on"}}) as server:
        reach(server.url)
        translator = Translator.load("someone/model", released / "adapter", **given)
        assert server.served["model.safetensors"]
    assert texts(translator) == by_hand(released)
    log = capsys.readouterr().err
    assert f"someone/model at {OLD}: " in log and "licence Licence X" in log  # the call itself is the agreement
    assert texts(Translator.load("someone/model", released / "adapter", **given)) == by_hand(released)  # hub is gone


def test_an_adapter_is_fetched_once(released, reach):
    given = {"prompt": PROMPT, "ratios": RATIOS, "steps": 4}
    with serve({OLD: contents(released / "adapter"), NEW: {"adapter_model.bin": b"a pickle"}}) as server:
        reach(server.url)
        with pytest.raises(InputError, match="pickled weights only"):
            Translator.load(released / "llada", "someone/model", **given)
        translator = Translator.load(released / "llada", f"someone/model@{OLD}", **given)
    assert texts(translator) == by_hand(released)
    assert texts(Translator.load(released / "llada", f"someone/model@{OLD}", **given)) == by_hand(released)
    assert {path.name for path in hub.place("someone/model", OLD).glob("adapter*")} == {*adapters.FILES} - {
        adapters.FACTS
    }


def test_what_an_adapter_of_ours_says_of_its_training_is_not_asked_for(released, tmp_path):
    ours = shutil.copytree(released / "adapter", tmp_path / "adapter")
    spec = {"family": "llada", "prompt": PROMPT, "bos": True, "shifted": False}
    files.write_json(ours / adapters.FACTS, {"spec": spec})
    translator = Translator.load(released / "llada", ours, make_method("ev", {"ratios": RATIOS}), steps=4)
    assert texts(translator) == by_hand(released, bos=True)


def test_a_class_is_made_with_the_ratios(released, monkeypatch):
    """As with ``**tiny(…)``; folders may be in the user's home."""
    monkeypatch.setenv("HOME", str(released))
    given = {"adapter": "~/adapter", "prompt": PROMPT, "ratios": RATIOS}
    translator = Translator.load("~/llada", **given, method=EntropyValley)
    assert translator.method == make_method("ev", {"ratios": RATIOS})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ratios": None}, "'ev': needs ratios: .* entropy_valley.released"),
        ({"method": make_method("ratio", {"ratios": 1.0})}, "ratios: the length method has its own"),
        ({"method": "fixed"}, "length method 'fixed': ratios = .*: unknown key"),
        ({"ratios": [0.8, 0]}, "'ev': ratios.1 = 0: must be greater than 0. `entropy-valley schema`"),
        *(({"steps": steps}, f"steps: {steps!r}, not a number from 1 to 65,536") for steps in (0, True)),
        ({"prompt": 5}, "prompt: '5' is not a text with one {src}"),
        ({"prompt": "\ud800 {src}"}, "prompt: character 1 is U\\+D800, which no text has"),
        ({"schedule": "linear"}, "schedule 'linear': unknown"),
        ({"order": "medd"}, "reveal order 'medd': unknown"),
        ({"method": "oracle", "ratios": None}, "length method: Oracle needs the reference"),
        ({"method": "ev_fit"}, r"'ev_fit': is fitted to training pairs\..* \.fitted\('ev_fit', train, dev\)"),
        ({"prompt": None}, "adapter: no prompt is given"),
        ({"backbone": "./nowhere"}, "nowhere: no such folder. Give a folder, or OWNER/NAME"),
        ({"backbone": "someone/model"}, "model: nothing here says of which family it is, and there is no such folder"),
        ({"adapter": "adapters/mine"}, r"mine: cannot be .*`adapter` \(there is no such folder here\)"),
        ({"backbone": "{}/dream_instruct"}, "model_type 'Dream' is that of several families.* dream, dream_instruct"),
        ({"backbone": "{}/llama3", "family": "llama3"}, "is autoregressive"),
        ({"device": "cuda"}, "device: cuda, but torch sees no GPU"),
        ({"device": "gpu"}, "device: 'gpu' is neither cpu nor cuda"),
        ({"dtype": "bf16"}, "dtype: 'bf16' is unknown; did you mean bfloat16"),
    ],
    ids=str,
)
def test_what_cannot_be_is_an_error(released, checkpoints, tmp_path, monkeypatch, reach, arguments, message):
    reach("http://127.0.0.1:9")  # nothing answers there
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("entropy_valley.model.load.load_backbone", lambda *_, **more: pytest.fail("it was loaded"))
    for name in ("dream_instruct", "llama3"):
        ignore = shutil.ignore_patterns(checkpoint.MANIFEST)
        shutil.copytree(checkpoints / name, tmp_path / name, ignore=ignore)
    given = {"backbone": released / "llada", "adapter": released / "adapter", "prompt": PROMPT, "ratios": RATIOS}
    given |= arguments
    with pytest.raises(InputError, match=message):
        if isinstance(given["backbone"], str):
            given["backbone"] = given["backbone"].format(tmp_path)
        Translator.load(**given)


def test_the_lines_of_the_page_work(released, monkeypatch, capsys):
    """With stand-ins for the repositories that they name, on a CPU; not the lines for other samplers."""
    folders = {"GSAI-ML/LLaDA-8B-Base": "llada", "YanZhanPKU/Entropy-Valley-LLaDA-8B-En2Zh": "adapter"}

    def listing(repository, revision, key):
        names = [path.name for path in (released / folders[repository]).iterdir()]
        return hub.Listing(repository, revision or NEW, "mit", tuple(hub.File(name, 0, None) for name in names))

    monkeypatch.setattr(hub, "listing", listing)
    monkeypatch.setattr(
        hub, "fetch", lambda source, work, *_: shutil.copytree(released / folders[source.repository], work)
    )
    family = FAMILIES["llada"]
    (release,) = family.releases
    tiny = dataclasses.replace(release, config={}, ids={})
    monkeypatch.setitem(FAMILIES, "llada", dataclasses.replace(family, releases=(tiny,)))
    pairs = list(zip(SOURCES, SOURCES[::-1], strict=True))
    text, names = Path("docs/translate.md").read_text(), {"train": pairs, "dev": pairs}
    *blocks, of, choose, _, _ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        exec(block.replace("cuda", "cpu"), names)
        first, second = names["translator"].translate(SOURCES[:2])
        assert (first, second) == tuple(names.setdefault("translations", [first, second]))
    assert len(capsys.readouterr().out.splitlines()) == 2 + 9  # translations, and the steps of a canvas of nine slots
    backbone = load_backbone(released / "llada", "llada")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(released / "llada")
    given = {"module": stock_model(family, backbone.model), "tokenizer": tokenizer, "prompt_ids": [5, 6, 7]}
    exec(of, given)
    assert "Translation(" in capsys.readouterr().out
    model, ids = peers.Stock(backbone), {"mask_id": backbone.mask_id, "eos_id": backbone.eos_id}
    given |= {"model": model, **ids}
    exec(choose, given)
    shown = capsys.readouterr().out
    assert shown.startswith(f"{given['slots']} {{5: ") and given["slots"] in (5, 7, 9, 11)


def test_what_other_programs_have_downloaded_is_enough_without_a_hub(released, reach, tmp_path, monkeypatch, capsys):
    """The commit in Hugging Face's own cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "theirs"))
    family = {"family": "llada", "prompt": PROMPT, "ratios": RATIOS, "steps": 4}
    reach("http://127.0.0.1:9")  # where nothing listens
    with pytest.raises(hub.UnreachableError, match="no answer"):
        Translator.load("someone/model", **family)
    repository = tmp_path / "theirs/models--someone--model"
    shutil.copytree(released / "llada", repository / "snapshots" / NEW)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(NEW)
    assert texts(Translator.load("someone/model", **family)) == by_hand(released, adapter=None)
    assert "the hub cannot be reached" in capsys.readouterr().err
    with pytest.raises(hub.UnreachableError):
        Translator.load(f"someone/model@{OLD}", **family)
