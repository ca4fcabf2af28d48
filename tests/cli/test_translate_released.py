"""`translate` in a folder without the repository: with LLaDA-tiny, and with adapters from a hub with the authors'
layouts."""

import shutil
from pathlib import Path

import pytest
import yaml
from fake_hub import contents, serve
from tiny_adapters import AUTHORS_TARGETS, peft_save
from tiny_checkpoints import SOURCES

from entropy_valley import Translator, hub, released
from entropy_valley.model import checkpoint

RATIOS = {"en-zh": [0.6, 0.8, 1.0]}
COMMIT = "a" * 40
MINE = {
    "device": "cpu",
    "matrix": {"backbones": ["mine"], "directions": ["en-zh"], "steps": [4]},
    "tables": {"backbone": "mine", "steps": 4, "studies": []},
    "backbones": {"mine": {"label": "mine", "family": "llada", "bos": False, "hub": {"repository": "someone/model"}}},
    "released": {"mine": {"en-zh": {1: {"repository": "someone/model", "subfolder": "adapter"}}}},
    "length_methods": {"ev": {"ratios": RATIOS}},
    "decoding": {"precision": "float32"},
    "autoregressive": {"backbones": []},
    "instruct": {"backbones": []},
}


@pytest.fixture(scope="module")
def authors(checkpoints, tmp_path_factory):
    """A checkpoint as its authors released it, and an adapter in a folder of it."""
    root = tmp_path_factory.mktemp("authors")
    shutil.copytree(checkpoints / "llada", root / "all", ignore=shutil.ignore_patterns(checkpoint.MANIFEST))
    peft_save(root / "all", root / "all/adapter", target_modules=AUTHORS_TARGETS)
    return root / "all"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder that is no repository, with a config and sentences."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    Path("mine.yaml").write_text(yaml.safe_dump(MINE))
    Path("in.txt").write_text("".join(f"{source}\n" for source in SOURCES[:3]))


@pytest.fixture
def run(status_of, capfd):
    def run(*options):
        status = status_of("translate", *options)
        out, log = capfd.readouterr()
        return out.splitlines(), log, status

    return run


def test_the_authors_adapter_in_any_folder(authors, elsewhere, reach, run, monkeypatch):
    monkeypatch.setattr(hub, "SMALL", 1000)
    command = ("in.txt", "--released", "en-zh", "--configfile", "mine.yaml")
    with serve({COMMIT: contents(authors)}) as server:
        reach(server.url)
        lines, log, status = run(*command)
        assert (lines, status) == ([], 2) and not server.served
        assert "someone/model: this would download" in log and "To agree, add at the end of the command: --yes" in log
        lines, log, status = run(*command, "--yes")
    assert (len(lines), status) == (3, 0)
    again, log, _ = run(*command)  # the hub is gone
    assert again == lines and "licence" not in log
    translator = Translator.load(
        authors, authors / "adapter", ratios=RATIOS["en-zh"], prompt=released("en-zh")["prompt"], steps=4
    )
    assert lines == [" ".join(one.text.split()) for one in translator.translate(SOURCES[:3])]
    assert {path.name for path in Path().iterdir()} == {"mine.yaml", "in.txt", "cache"}


def test_in_the_repository_the_checkpoint_is_where_the_workflow_keeps_it(authors, elsewhere, reach, run):
    root = Path(__file__).parents[2]
    shutil.copy(root / "config.yaml", ".")
    shutil.copytree(root / "config", "config")
    with serve({COMMIT: contents(authors)}) as server:
        reach(server.url)
        lines, *_ = run("in.txt", "--released", "en-zh", "--configfile", "mine.yaml")
    assert len(lines) == 3 and Path("models/mine/config.json").is_file()


def test_llada_tiny_needs_no_config(elsewhere, run):
    Path("in.txt").write_text("We are going home.\n")
    lines, log, status = run("in.txt", "--tiny", "en-de", "--length", "ratio_eos", "ev")
    assert (lines, status) == (["Wir gehen nach nach Hause.\tWir gehen nach Hause."], 0) and "not there" not in log
    lines, log, status = run("in.txt", "--tiny", "en-de", "--length", "ev_fit")
    assert "file not found. Go to the root of the repository. Make it: snakemake --cores 1 results/human/corpus/" in log
    assert log.endswith("/en-de/train.jsonl --configfile config/human.yaml\n") and status == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["in.txt", "--released", "zh-en"], "no adapter of mine for zh-en, seed 1. Of mine it has en-zh seed 1"),
        (["in.txt", "--released", "en-fr"], "--direction: the config has no 'en-fr'; did you mean "),
        (["in.txt", "--tiny", "en-de", "--backbone", "llada-8b"], "--backbone: not with --tiny, which is one model"),
        (["in.txt", "--released", "en-zh", "--device", "cuda"], "device: cuda, but torch sees no GPU"),
    ],
)
def test_what_cannot_be_is_said_before_a_download(elsewhere, run, monkeypatch, options, message):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    lines, log, status = run(*options, "--configfile", "mine.yaml")
    assert (lines, status) == ([], 2) and message in log
