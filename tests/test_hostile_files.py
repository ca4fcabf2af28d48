"""Files of others: forms, checkpoints, adapters and shards of a store. Whatever they are, reading them ends soon: with
their content, or with one error that names file, place, value and remedy. Nothing of them is executed."""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import zipfile
from pathlib import Path

import pytest
import tiny_checkpoints
import torch
from human_evaluation.conftest import SIZES, sentences
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_adapters import adapter_of
from tiny_checkpoints import run_model

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.human_evaluation import forms, pack
from entropy_valley.experiment.human_evaluation.intake import read_forms
from entropy_valley.experiment.human_evaluation.pack import Pack
from entropy_valley.model import adapters
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import find_checkpoint, load_backbone
from entropy_valley.store import Store
from entropy_valley.training import card
from entropy_valley.translation.translator import Translator

SECONDS = 30  # of CPU time for one reader; most need less than one
CSV, XLSX, WEIGHTS, TOKENS = "en-zh.A.csv", "en-zh.A.xlsx", "model.safetensors", "tokenizer.json"
MATRICES, SETTINGS = "adapter_model.safetensors", "adapter_config.json"
DEEP = "[" * 100_000
ROWS = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A folder of each kind whose files are in order."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("originals")
    family, modules = FAMILIES["llada"], [f"model.layers.{layer}.self_attn.q_proj" for layer in (0, 1)]
    tiny_checkpoints.write(root / "checkpoint", "llada", eos=4)
    generator = torch.Generator().manual_seed(0)
    pairs = {name: tuple(torch.randn(shape, generator=generator) for shape in ((3, 32), (32, 3))) for name in modules}
    (root / "adapter").mkdir()
    adapters.write_adapter(adapter_of(pairs, 6.0), root / "adapter", family)
    files.write_json(root / "adapter" / "adapter.json", {"family": "llada", "spec": {"direction": "en-zh"}})
    with Store(root / "store") as store:
        store.put("a", [1])
    next((root / "store").iterdir()).rename(root / "store" / "1.jsonl")
    paper, _ = pack.make(sentences(), "en-zh", SIZES, seed=1)
    (root / "forms").mkdir()
    paper.write(root / "pack.json")
    forms.write_csv(root / "forms" / CSV, paper, {row.id: ("1", "2", "3", "4", "Tie", "") for row in paper.rows})
    forms.write_xlsx(root / "forms" / XLSX, paper, "A")
    return root


class Readers:
    """Reads a folder of a kind."""

    def __init__(self, originals):
        self.originals = originals

    def checkpoint(self, folder):
        run_model(folder, find_checkpoint(folder)[1]).prompt.encode("a" * 60 + "!")
        return load_backbone(folder, "llada")

    def adapter(self, folder):
        Translator.load(self.originals / "checkpoint", folder, ratios=[1.0], prompt="{src}")
        adapters.export(folder, folder.with_name("exported"))
        card.write_card(folder.with_name("exported"))

    def forms(self, folder):
        sheets = sorted(folder.iterdir())
        return [read_forms([sheet], Pack.read(self.originals / "pack.json"), ["A"]) for sheet in sheets]

    def store(self, folder):
        with Store(folder) as store:
            return store.get("a")


@contextlib.contextmanager
def in_time():
    """Fail a reader that computes for too long, on a busy machine too; pytest's own timeout ends one that waits."""

    def late(*_):
        pytest.fail(f"not read within {SECONDS} seconds of CPU time")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- What is done to a file: each makes a function of its path.


def text(content):
    return lambda path: path.write_text(content)


def keys(**changes):
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def added_token(number):
    token = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)

    def change(path):
        content = json.loads(path.read_text())
        content["added_tokens"].append(token | {"id": number, "content": "a-token"})
        path.write_text(json.dumps(content))

    return change


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def larger(path):
    with path.open("ab") as file:
        file.truncate(2**36)  # of holes: it takes no room


def tensors(change):
    """``change`` of a tensor and its name gives those that the file has in its place."""
    return lambda path: save_file(
        {name: one for pair in load_file(path).items() for name, one in change(*pair).items()}, path
    )


def sheet(rows, compression=zipfile.ZIP_DEFLATED):
    """The XML of the sheet of ratings."""

    def change(path):
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        parts["xl/worksheets/sheet1.xml"] = f"{rows}</sheetData></worksheet>".encode()
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)

    return change


def laughs():
    """Entities of entities: a billion letters."""
    entities = "".join(f'<!ENTITY {one} "{f"&{before};" * 10}">' for before, one in itertools.pairwise("abcdefghij"))
    cell = '<row r="1"><c r="A1" t="inlineStr"><is><t>&j;</t></is></c></row>'
    return f'<!DOCTYPE x [<!ENTITY a "{"ha" * 50}">{entities}]>{ROWS}{cell}'


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
EXAMPLES = {
    "forms": [
        (XLSX, text("PK\3\4 no zip"), "not a spreadsheet that can be read .*Open it"),
        (XLSX, sheet(f"{ROWS}<row>{'<c/>' * 2**22}</row>"), "unpacks to more than 8,388,608 bytes"),
        (XLSX, sheet(ROWS, zipfile.ZIP_LZMA), "compressed in a way"),
        (XLSX, sheet(laughs()), "not a spreadsheet .*limit on input amplification"),
        (CSV, pipe, f"{CSV}: is a pipe, not a file"),
        (CSV, larger, "68,719,.* bytes, more than 8,388,608"),
        (CSV, text("hello"), "its first row does not begin with a column ID"),
    ],
    "checkpoint": [
        ("config.json", text("[1]"), "config.json: must be a block of keys"),
        ("config.json", text(DEEP), "config.json:1: not JSON .nested too deeply"),
        ("config.json", keys(rope_theta=float("nan")), "rope_theta = nan: must be a finite number"),
        ("config.json", keys(n_layers=10**9), "num_hidden_layers = 1000000000: must be less"),
        ("config.json", keys(n_kv_heads=3), "num_key_value_heads 3 does not divide 4 heads"),
        ("config.json", keys(n_heads=5), "the width of a head, 6.4, is not an even number"),
        ("config.json", keys(block_type="x" * 10**6), "block_type is 'x+…, not 'llama'"),
        ("checkpoint.json", keys(family="evil:FAMILY"), "checkpoint.json: its family is code of someone's own"),
        (TOKENS, added_token(10**6), "a token has id [0-9]+, but the model has [0-9]+ embeddings"),
        (TOKENS, text('{"version": "1.0"}'), "not a tokenizer that can be read"),
        (TOKENS, keys(pre_tokenizer=SPLIT | {"pattern": {"Regex": "(a+)+$"}}), "is not a tokenizer .*retry-limit"),
        (WEIGHTS, pipe, f"{WEIGHTS}: is a pipe"),
        (WEIGHTS, lambda path: path.write_bytes((2**62).to_bytes(8, "little")), "not a whole safetensors file"),
        (WEIGHTS, tensors(lambda name, one: {name: one.to(torch.int8)}), r"not in floating point: .*\(I8\)"),
    ],
    "adapter": [
        (SETTINGS, keys(lora_alpha="16"), "lora_alpha = '16': must be a valid number"),
        (SETTINGS, keys(use_dora="x" * 10**6), "use_dora = 'x+…"),
        (SETTINGS, keys(r=2**24), r"lora_A\.default\.weight: .*\[3, 32\].*\[16777216, 32\]"),
        (SETTINGS, keys(alpha_pattern={"(a+)+x": 1.0}), "must match pattern"),
        (MATRICES, larger, "not a whole safetensors file"),
        (MATRICES, tensors(lambda name, one: {"base_model.model." * 60_000 + "x": one}), "… is of no layer"),
        ("adapter.json", keys(spec={"attention": "x"}), "spec.attention = 'x': must be 'bidirectional'"),
        ("adapter.json", keys(family="evil:FAMILY"), "adapter.json: its family is code of someone's own, evil:FAMILY"),
    ],
    "store": [
        ("0.jsonl", os.mkfifo, None),
        ("0.jsonl", lambda path: path.symlink_to("nowhere"), None),
        ("2.jsonl", text(f'{{"key":"b","value":{DEEP}}}\n'), None),
    ],
}


@pytest.mark.parametrize(
    ("kind", "name", "change", "problem"),
    [pytest.param(kind, *one, id=f"{kind}-{place}") for kind in EXAMPLES for place, one in enumerate(EXAMPLES[kind])],
)
def test_a_hostile_file_is_one_error_in_time(originals, tmp_path, monkeypatch, kind, name, change, problem):
    place = shutil.copytree(originals / kind, tmp_path / kind)
    if kind == "forms":  # one of an annotator
        (place / ({CSV: XLSX, XLSX: CSV}[name])).unlink()
    change(place / name)
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    read = getattr(Readers(originals), kind)
    if problem is None:
        with in_time():
            assert read(place)
        return
    with in_time(), pytest.raises(InputError, match=problem) as caught:
        read(place)
    assert str(place) in str(caught.value) and caught.value.remedy and len(str(caught.value)) < 100_000


WORDS = (b"\0", b"\xff", b"{", b"[", b'"', b"null", b"-1", b"1e999", b"NaN", b"(", b"9" * 30, b"true", b"", b"<", b",,")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_is_one_error(originals, tmp_path, data):
    """Bytes of any file are lost or become others."""
    kind = data.draw(st.sampled_from(sorted(EXAMPLES)))
    names = sorted(path.name for path in (originals / kind).iterdir())
    shutil.rmtree(tmp_path / kind, ignore_errors=True)
    shutil.rmtree(tmp_path / "exported", ignore_errors=True)
    place = shutil.copytree(originals / kind, tmp_path / kind)
    path = place / data.draw(st.sampled_from(names))
    content = path.read_bytes()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        lost = data.draw(st.integers(0, 20) | st.just(len(content)))
        content = content[:start] + data.draw(st.sampled_from(WORDS) | st.binary(max_size=3)) + content[start + lost :]
    path.write_bytes(content)
    with in_time(), contextlib.suppress(InputError):
        getattr(Readers(originals), kind)(place)


def test_neither_remote_code_nor_a_pickle_is_loaded():
    root = Path(__file__).parents[1]
    paths = [path for top in ("src", "workflow") for kind in ("py", "smk") for path in (root / top).rglob(f"*.{kind}")]
    lines = [line for path in paths for line in path.read_text().splitlines()]
    # Without the argument transformers asks on a terminal.
    assert not [line for line in lines if "trust_remote_code" in line and "trust_remote_code=False" not in line]
    calls = [line for line in lines if re.search(r"(torch|pickle)\.load", line)]
    assert calls and not [line for line in calls if "weights_only=True" not in line]
