"""`check --thorough`, here on a CPU with a tiny model, and with small stand-ins for the decoders of others."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from entropy_valley import checking, cli, files
from entropy_valley.checking import checks, computations, peers, subject, thorough
from entropy_valley.checking.checks import FAILED, MEASURED, OK, SKIPPED
from entropy_valley.checking.subject import Subject
from entropy_valley.checking.thorough import Hour
from entropy_valley.decoding import reference
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.demo.settings import stock_config
from entropy_valley.errors import InputError
from entropy_valley.model.load import load_backbone

ROOT = Path(__file__).parents[2]

# A loop like those of the public decoders: of one canvas, the most probable masked slot at each step.
LOOP = """
import torch

def fill(model, x, mask_id, steps, entropy=False):
    for _ in range(steps):
        masked = x[0] == mask_id
        if not masked.any():
            break
        logits = model(x).logits[0].double()
        scores = logits.log_softmax(-1).max(-1).values
        if entropy:
            scores = -torch.special.entr(logits.softmax(-1)).sum(-1)
        place = scores.where(masked, -torch.inf).argmax()
        x[0, place] = logits[place].argmax()
    return x

def masks(prompt, length, mask_id):
    return torch.cat([prompt, torch.full((1, length), mask_id)], dim=1)
"""
GENERATE = """
def generate(model, prompt, steps=128, gen_length=128, block_length=128, temperature=0.0, mask_id=126336{more}):
    x = fill(model, masks(prompt.to(model.device), gen_length, mask_id), mask_id, steps)
    return x{also}
"""
TRANSLATE = """
def set_mask_token_id(number):
    global MASK
    MASK = number

def translate_single(model, tokenizer, source_text, target_length, num_steps=32, schedule_name="med", device="cuda"):
    prompt = tokenizer.encode(source_text, add_special_tokens=False, return_tensors="pt")[0][None]
    x = fill(model, masks(prompt, target_length, MASK), MASK, num_steps, entropy=True)[0, prompt.shape[1]:].tolist()
    return {"translation": tokenizer.decode(x[: x.index(tokenizer.eos_token_id)] if tokenizer.eos_token_id in x else x)}
"""
INFILL = """
from dataclasses import dataclass

@dataclass
class MDLMSamplerConfig:
    steps: int
    block_size: int | None
    temperature: float
    return_dict: bool

@dataclass
class MDLMSampler:
    model: object
    tokenizer: object

    def infill(self, inputs, config):
        longest, mask = max(map(len, inputs)), self.tokenizer.mask_token_id
        rows = [fill(self.model, torch.tensor([one]), mask, config.steps)[0].tolist() for one in inputs]
        return torch.tensor([row + [self.tokenizer.eos_token_id] * (longest - len(row)) for row in rows])
"""


@pytest.fixture
def checkouts(tmp_path, monkeypatch):
    """Folders with the files and signatures that the peers have."""
    code = {
        "authors": ("ladit/decoding/translate.py", TRANSLATE),
        "llada": ("generate.py", GENERATE.format(more="", also="")),
        "dllm": ("dllm/core/samplers/mdlm.py", INFILL),
        "fast-dllm": ("llada/generate.py", GENERATE.format(more=", threshold=None", also=", 7")),
    }
    for name, (path, text) in code.items():
        (tmp_path / name / path).parent.mkdir(parents=True)
        (tmp_path / name / path).write_text(LOOP + text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield {name: tmp_path / name for name in code}
    for name in {*sys.modules} - before:
        if name.split(".")[0] in ("ladit", "generate", "dllm", "llada"):
            del sys.modules[name]


def backbone():
    return Hour("cpu", "tiny", Path()).backbone()


def test_each_peer_decodes_the_texts_that_ours_does_in_its_order(checkouts):
    lines = list(peers.compare(backbone(), computations.drawn(8, peers.STEPS), checkouts))
    assert [line.name for line in lines] == [f"peer {name}" for name in checking.PEERS]
    assert {line.state for line in lines} == {MEASURED}, lines
    counts = [re.search(r"; (\d+) of (\d+) texts the same", line.text) for line in lines]
    assert all(int(found[1]) >= 0.9 * int(found[2]) and int(found[2]) > 3 for found in counts)
    passes = {line.name: int(re.search(r"(\d+) passes of", line.text)[1]) for line in lines}
    assert len({*passes.values()}) == 1  # each reveals a slot in a pass
    assert all(re.search(r"s by ours; \d+ passes of [\d,]+ tokens", line.expected) for line in lines)


def test_a_peer_in_another_order_has_other_texts(checkouts):
    file = checkouts["llada"] / "generate.py"
    file.write_text(file.read_text().replace("scores.where(masked, -torch.inf).argmax()", "masked.nonzero()[0, 0]"))
    line = peers.beside("llada", checkouts["llada"], backbone(), computations.drawn(12, peers.STEPS)[:6])
    assert int(re.search(r"; (\d+) of 6 texts", line.text)[1]) < 6


def test_a_peer_that_is_missing_or_broken_is_its_own_line(checkouts, tmp_path):
    (checkouts["llada"] / "generate.py").write_text("import a_package_of_theirs")
    (checkouts["fast-dllm"] / "llada/generate.py").write_text("raise ValueError('old')")
    del checkouts["dllm"]
    checkouts["authors"] = tmp_path / "elsewhere"
    lines = list(peers.compare(backbone(), computations.drawn(2, peers.STEPS), checkouts))
    assert [line.state for line in lines] == [SKIPPED, SKIPPED, FAILED]
    assert "not a clone of https://github.com/Entropy-Valley/Entropy-Valley" in lines[0].text
    assert lines[1].text == "a_package_of_theirs is not installed here"
    assert lines[2].text == "ValueError: old"
    with pytest.raises(InputError, match="no decoder 'lada'; did you mean llada"):
        peers.folders(["lada=/here"])
    for given in ("llada", "llada=", f"llada={tmp_path}/nowhere"):
        with pytest.raises(InputError, match=r"--peer: llada=.*: no such folder\. Write NAME=FOLDER"):
            peers.folders([given])
    assert peers.folders([f"llada={tmp_path}"]) == {"llada": tmp_path}


def test_the_model_of_peers_attends_to_all_and_never_predicts_the_mask():
    ours, canvas = backbone(), computations.drawn(1, 1)[0]
    ids = torch.tensor([[*canvas.prompt, *[ours.mask_id] * canvas.length]])
    model = peers.Stock(ours)
    with torch.inference_mode():
        logits = model(torch.cat([ids, ids.flip(1)])).logits[0, len(canvas.prompt) :]
    expected = reference.slot_logits(ours, canvas.prompt, [ours.mask_id] * canvas.length)
    torch.testing.assert_close(logits.double(), expected, atol=1e-4, rtol=1e-4)
    assert model.passes == 1 and model.tokens == 2 * ids.numel()
    assert all(count <= 1 for count in reveal_counts(peers.STEPS, peers.STEPS, "floors"))


def run(monkeypatch, tmp_path, *options):
    """Exit status, and the cells of the table: step, expected, measured, verdict."""
    out = tmp_path / "check.md"
    command = ["entropy-valley", "check", "--thorough", "--shape", "tiny", "--device", "cpu", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", [*command, *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    head, _, _, _, *rows = out.read_text().splitlines()
    assert head.startswith("tiny, float32, ") and "transformers" in head
    return ended.value.code, [row.strip("| ").split(" | ") for row in rows]


@pytest.mark.cluster
@pytest.mark.slow
def test_the_whole_hour_without_an_installation(tmp_path, monkeypatch):
    """As on a borrowed machine: from a clone, by ``python -m``."""
    command = [sys.executable, "-m", "entropy_valley", "check", "--thorough", "--out", str(tmp_path / "check.md")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [row[2:-2].split(" | ") for row in (tmp_path / "check.md").read_text().splitlines()[4:]]
    verdicts = {row[0]: row[-1] for row in rows}
    promised = ["COMET", "memory tiny", "float32 tiny", "bfloat16 tiny", "company tiny", "company tiny, compiled"]
    promised += ["pass tiny", "training, killed and resumed"]
    assert {verdicts[name] for name in promised} == {OK}
    assert {*verdicts.values()} <= {OK, MEASURED, SKIPPED}
    assert (tmp_path / "check.md").read_text().rstrip() in done.stdout
    assert not [*tmp_path.glob("**/*.safetensors")]


def test_a_step_that_fails_is_in_the_table_and_the_others_run(tmp_path, monkeypatch):
    (tmp_path / "test.jsonl").write_text("{}\n")
    monkeypatch.setattr(thorough, "SPAWN", multiprocessing.get_context("fork"))  # without a GPU: it has imported all
    status, rows = run(monkeypatch, tmp_path, "--only", "probes", "peers", "--testset", str(tmp_path / "test.jsonl"))
    assert status == 1 and [row[-1] for row in rows] == [FAILED, SKIPPED]
    assert "test.jsonl:1" in rows[0][2] and rows[1][2].startswith("give --peer NAME=FOLDER")


def test_what_is_missing_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(thorough.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as missing:
        next(thorough.resuming(Hour("cpu", "tiny", tmp_path)))
    assert checks.ending(missing.value, missing=SKIPPED) == (SKIPPED, "deepspeed is not installed here")


def test_a_step_ends_with_the_minutes(tmp_path):
    (line,) = thorough.step("decoding", Hour("cpu", "tiny", tmp_path), until=0.0)
    assert (line.text, line.state) == ("stopped: the minutes are over", FAILED)


def test_a_gpu_that_is_asked_for_must_be_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check", "--thorough", "--device", "cuda"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert "torch sees no GPU here. Give --shape tiny --device cpu" in capsys.readouterr().err


def test_probes_around_the_reference_say_when_a_canvas_is_too_long(tmp_path):
    """By the model that comes with the package, on the corpus that it knows."""
    rows = [
        {"id": str(n), "source": "Maria must clean my bag.", "target": "Maria muss meine Tasche reinigen."}
        for n in (1, 2)
    ]
    files.write_jsonl(tmp_path / "test.jsonl", rows)
    found = [line.text for line in thorough.probes(Hour("cpu", "tiny", tmp_path, tmp_path / "test.jsonl", "en-de"))]
    entropies = [float(re.search(r"entropy ([\d.]+) nats", text)[1]) for text in found]
    repeated = [float(re.search(r"repeats ([\d.]+), 2 pairs", text)[1]) for text in found]
    assert len(found) == 9 and entropies.index(min(entropies)) == 4  # at the reference
    assert repeated[4] == 0 and max(repeated[5:]) > 0


def test_a_training_step_is_timed(tmp_path):
    (line,) = thorough.training(Hour("cpu", "tiny", tmp_path))
    assert re.match(r"[\d,]+ tokens/s, × ", line.text) and line.expected.endswith("tokens/s")


@pytest.mark.parametrize("shape", [name for name in checking.SHAPES if name != "tiny"])
def test_the_shapes_are_those_of_the_releases(shape, tmp_path):
    hour = Hour("cuda", shape, tmp_path)
    assert subject.model_config(hour.described)["max_position_embeddings"] > 2000
    plan = computations.pass_plan(hour.described, hour.subject, 80 * 10**9, longest=120)
    assert plan.micro_tokens >= 4096 and plan.expected < 80 * 10**9
    assert 6e9 < computations.size_of(hour.described).parameters < 9e9
    job = thorough._finetuning(hour, "whole", 5)
    assert (job.settings.lora.rank, job.settings.global_batch, job.settings.precision) == (64, 128, "bfloat16")
    assert job.spec["family"] == checking.SHAPES[shape]


@pytest.mark.parametrize("family", ["llada", "dream", "diffullama"])
def test_the_checkpoint_of_a_training_is_one_of_its_family(family, tmp_path, monkeypatch):
    shape = stock_config(vocabulary=1200, width=32, ffn=64, layers=2, heads=4, kv_heads=2)
    described = {"family": family, "folder": os.devnull, "arguments": shape}
    monkeypatch.setattr(Hour, "described", described)
    thorough._write_checkpoint(Hour("cpu", "tiny", tmp_path), tmp_path / "checkpoint")
    loaded = load_backbone(tmp_path / "checkpoint", family)
    expected = computations.random_backbone(described, Subject(), vocab_size=1136).model.state_dict()
    assert all(torch.equal(weight, expected[name]) for name, weight in loaded.model.state_dict().items())


def test_a_disk_without_room_for_the_weights_of_a_training(tmp_path, monkeypatch):
    monkeypatch.setattr(thorough.machine, "free", lambda folder: 10**6)
    with pytest.raises(
        InputError, match=r"weights and checkpoints of a training need .*, 1.0 MB are free\. Set TMPDIR"
    ):
        next(thorough.resuming(Hour("cpu", "tiny", tmp_path)))
