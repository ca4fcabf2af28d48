"""The command `translate`: what it writes is what the jobs of the workflow write, line by line."""

import gzip
import io
import itertools
import json
import math
import sys
from pathlib import Path

import pytest
import yaml
from bench import Bench
from tiny_checkpoints import SOURCES

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.cli import configs
from entropy_valley.experiment.cli.translate import read_lines
from entropy_valley.translation.translator import Translation, Translator

LONG = "word " * 5000
GRID = [0.6, 0.8, 1.0]


PAIRS = [{"id": str(n), "source": s, "target": t} for n, (s, t) in enumerate(itertools.pairwise(SOURCES))]


@pytest.fixture(scope="module")
def config(tmp_path_factory, checkpoints):
    """A bare checkpoint in the paper's matrix: no adapter is needed."""
    mine = {"label": "mine", "family": "llada", "bos": False, "zero_shot": True, "folder": str(checkpoints / "llada")}
    cached = {"variant_of": "mine", "label": "cached", "decoding": {"prompt_cache": {"refresh": 3}}}
    path, results = tmp_path_factory.mktemp("config") / "mine.yaml", tmp_path_factory.mktemp("results")
    methods = {"ev": {"ratios": {"en-de": GRID}}, "ratio": {"ratios": {"en-de": 1.2}}}
    own = {
        "device": "cpu",
        "results": str(results),
        "backbones": {"mine": mine, "cached": cached},
        "length_methods": methods,
    }
    path.write_text(yaml.safe_dump({**own, "decoding": {"precision": "float32"}}))
    files.write_jsonl(results / "corpus/en-de/dev.jsonl", PAIRS[:40])
    loaded = configs.experiment([str(path)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configs, "experiment", lambda *_, **__: loaded)  # once for all tests
        yield path


@pytest.fixture
def translate(config, status_of, monkeypatch, capsysbinary):
    """The lines on stdout, the text on stderr and the exit status for the lines on stdin."""

    def run(lines, *options):
        asked = ["translate", "--configfile", config, "--direction", "en-de", "--backbone", "mine", "--steps", 4]
        text = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        status = status_of(*asked, *options)
        out, said = capsysbinary.readouterr()
        return out.decode().splitlines(), said.decode(), status

    return run


def test_the_translations_are_those_of_the_jobs(translate, tmp_path, checkpoints):
    """Of two methods on one loaded model, in batches, with an empty line and one that is too long between them."""
    texts = SOURCES[:7]
    options = ("--jsonl", "--batch", 3, "--length", "ev", "ratio")
    found, said, status = translate([*texts[:2], "", *texts[2:], LONG], *options)
    rows = [json.loads(line) for line in found]
    assert [(row["line"], row["method"]) for row in rows] == [(n, m) for n in range(1, 10) for m in ("ev", "ratio")]
    assert "stdin:9: ratio: skipped: prompt of" in said and "2 translations are missing" in said and status == 1
    testset = tmp_path / "test.jsonl"
    files.write_jsonl(testset, [{"id": text, "source": text, "target": text} for text in texts])
    bench = Bench(tmp_path, checkpoints, testset)
    bench.spec["prompt"] = said.partition("prompt: ")[2].partition("\n")[0].strip("'").replace("\\n", "\n")
    for method, ratios in (("ev", GRID), ("ratio", 1.2)):
        jobs_rows, _ = bench.decode(method, steps=4, chosen={"ratios": ratios})
        mine = [row for row in rows if row["method"] == method and row["source"] in texts]
        for row, made in zip(mine, jobs_rows, strict=True):
            canvas = made["canvas"]
            assert all(row[name] == made[name] for name in ("hypothesis", "length", "logprob"))
            assert row["canvas"] == canvas["length"] and list(row["scores"].values()) == canvas["scores"]
            assert str(row["canvas"]) in row["entropies"]


def test_a_method_is_fitted_to_the_corpus_of_its_run_once(translate, config):
    results = Path(yaml.safe_load(config.read_text())["results"])
    files.write_jsonl(results / "corpus/en-de/train.jsonl", PAIRS[:40])
    options = ("--length", "ev_fit", "--no-hints", "--jsonl")
    found, _, status = translate(SOURCES[:3], *options)
    kept = results / "store/en-de/mine/seed1/fits"
    first = sorted(path.read_bytes() for path in kept.glob("*.jsonl"))
    assert (len(found), status) == (3, 0) and first
    for row in map(json.loads, found):
        assert sum(math.exp(-score) for score in row["scores"].values()) == pytest.approx(1.0, abs=1e-4)
    assert translate(SOURCES[:3], *options)[0] == found
    assert sorted(path.read_bytes() for path in kept.glob("*.jsonl")) == first
    (results / "corpus/en-de/train.jsonl").unlink()


def test_a_file_is_read_as_stdin_is(translate, tmp_path):
    """And named in messages."""
    file = tmp_path / "in.txt"
    file.write_text(f"{SOURCES[0]}\n{LONG}\n")
    found, said, status = translate([], file, "--no-hints")
    assert found == [*translate([SOURCES[0]], "--no-hints")[0], ""]
    assert f"{file}:2: ev: skipped: prompt of" in said and status == 1


def test_a_line_stays_a_line(translate):
    """As text: a column for each method, empty lines empty, in the order of stdin."""
    options = ("--length", "ev", "ratio", "--ratios", 0.75, "--no-hints")
    found, said, status = translate([SOURCES[0], "", "  ", SOURCES[1]], *options)
    assert [line.count("\t") for line in found] == [1, 1, 1, 1] and found[1:3] == ["\t", "\t"]
    assert status == 0 and "development" not in said
    for part in ("mine", "prompt: ", "med, 4 steps", 'ev {"ratios": [0.75]', 'ratio {"ratios": 0.75'):
        assert part in said


def test_only_line_breaks_and_tabs_of_a_translation_change(translate, monkeypatch):
    """The hard space of French is text."""
    answer = Translation("Bonjour\u00a0!  Ici\tet\r\nlà\u2028bas")
    monkeypatch.setattr(Translator, "translate", lambda translator, texts, **_: [answer for _ in texts])
    monkeypatch.setattr(Translator, "seconds", lambda translator, source: 0.0)
    assert translate(["Hello"], "--no-hints")[0] == ["Bonjour\u00a0!  Ici et là bas"]


def test_a_slow_model_says_so_before_the_first_line(translate, monkeypatch):
    """Once, for all length methods together."""
    monkeypatch.setattr(Translator, "seconds", lambda translator, source: 20.0 * len(source.split()))
    _, said, _ = translate(["", "two words", "and three words"], "--batch", 2, "--length", "ev", "ratio")
    assert [line for line in said.splitlines() if "this CPU" in line] == ["about 80 s a sentence on this CPU"]


def test_an_order_that_compares_sentences_reads_all_of_them_first(translate):
    """The SIG against a distractor: with another one for each batch there would be other translations."""
    options = ("--order", "sig_first", "--length", "ratio", "--no-hints", "--jsonl")
    at_once, *_ = translate(SOURCES[:6], *options)
    assert translate(SOURCES[:6], *options, "--batch", 1)[0] == at_once


def test_a_variable_length_decoder_has_no_steps_to_say(translate):
    _, said, status = translate(SOURCES[:1], "--order", "confidence_threshold", "--no-hints")
    assert status == 0 and "\norder: confidence_threshold\n" in said


def test_a_variant_with_a_prompt_cache_says_that_it_is_approximate(translate):
    exact, said, _ = translate(SOURCES[:3], "--no-hints", "--jsonl")
    assert "approximate" not in said
    approximate, said, status = translate(SOURCES[:3], "--no-hints", "--jsonl", "--backbone", "cached")
    assert status == 0 and "\napproximate: prompt cache 3\n" in said
    assert approximate != exact and len(approximate) == 3


def test_a_class_of_the_users_own_needs_no_config(translate, users_class):
    """Its ratios are those of EV."""
    name = users_class("from entropy_valley.lengths.ev import EntropyValley\n\nclass Mine(EntropyValley):\n    pass\n")
    (line,), said, status = translate(SOURCES[:1], "--length", name, "ev")
    mine, ev = line.split("\t")
    assert (status, mine) == (0, ev) and f'length: mine:Mine {{"ratios": {GRID}' in said


def test_it_stops_at_a_line_that_is_no_text(translate):
    found, said, status = translate(f"{SOURCES[0]}\nna".encode() + b"\xefve\n", "--batch", 1)
    assert (len(found), status) == (1, 2) and "stdin:2: not UTF-8 (byte 0xef)" in said


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("one\n".encode("utf-16"), r"^stdin:1: not UTF-8 \(byte 0xff\)\. "),
        (gzip.compress(b"one", mtime=0), r"^stdin:1: not UTF-8 \(byte 0x8b\)\. Convert it.*unpack"),
        (b"one\nt\0wo\n", r"^stdin:2: character 2 is U\+0000"),
        (b"one\n\xff\xfe\n", r"^stdin:2: not UTF-8 \(byte 0xff\)"),
    ],
    ids=["utf-16", "gzip", "nul", "not utf-8"],
)
def test_a_file_that_is_no_text_is_named_by_its_kind(content, problem):
    with pytest.raises(InputError, match=problem):
        list(read_lines(io.BytesIO(content), "stdin"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--direction", "en-fr"], "--direction: the config has no 'en-fr'; did you mean "),
        (["--backbone", "llama3-8b"], "--backbone: llama3-8b is autoregressive"),
        (["--length", "evv"], "--length: the config has no 'evv'; did you mean ev? it has "),
        (["--length", "oracle"], "length method: Oracle needs the reference of each sentence"),
        (["--length", "ev_fit"], "train.jsonl: file not found. Make it: snakemake --cores 1 "),
        (["--adapter", "nowhere"], "--adapter: nowhere: there is no adapter_config.json. Give"),
        (["--length", "ev", "length_head", "--ratios", "0.5"], "--ratios: length_head has no ratios"),
        (["--length", "ev", __file__], "Write the file to translate before the options."),
        (["--ratios", "0.8", "in.txt"], "--ratios: invalid float value: 'in.txt'"),
        (["--batch", "0"], "argument --batch: '0' is not a number of 1 or more"),
        (["--prompt", "no place"], "is not a text with one {src}"),
        (["--order", "oracle_anchor"], "--order: oracle_anchor needs a gold alignment"),
    ],
)
def test_what_cannot_be_is_said_before_a_line_is_read(translate, options, message):
    found, said, status = translate([SOURCES[0]], *options)
    assert (found, status) == ([], 2) and message in said
    assert "backbone: mine" not in said  # which is said when the model is loaded
