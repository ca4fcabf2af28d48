import csv
import math
import re

import pytest
import torch
from forging import Hostile
from run_rule import run_here
from safetensors.torch import load_file
from tiny_training import RUN, SETTINGS, batches_of, canvases_of, spec
from transformers import get_cosine_schedule_with_warmup

from entropy_valley import files, machine, results
from entropy_valley.errors import InputError
from entropy_valley.training import deepspeed, sft
from entropy_valley.training.adapter import attach_lora, trainable
from entropy_valley.training.loss import Passes, cross_entropies
from entropy_valley.training.settings import Training, warmup_steps


def history(folder):
    """The columns of ``losses.csv`` by name."""
    names, *rows = csv.reader((folder / "losses.csv").read_text().splitlines())
    return dict(zip(names, zip(*([float(value) for value in row] for row in rows), strict=True), strict=True))


def plain(backbone, settings, steps):
    """The same training by torch alone, each batch in one piece; losses and adapter."""
    model = attach_lora(backbone.model, backbone.family, settings.lora, seed=1).train()
    parameters, batches = trainable(model), batches_of(backbone)
    optimizer = torch.optim.AdamW(
        parameters, lr=settings.learning_rate, betas=settings.betas, weight_decay=settings.weight_decay
    )
    schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(settings.warmup * steps), steps)
    losses = []
    for step in range(steps):
        (batch,) = batches[step]
        loss = cross_entropies(model, batch, backbone.shifted) @ batch.weights
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, settings.clip)
        optimizer.step(), schedule.step(), optimizer.zero_grad()
        losses.append(loss.item())
    return losses, trainable(model)


@pytest.mark.parametrize(
    ("share", "steps", "warm"), [(0.05, 4689, 235), (0.05, 60, 3), (0.07, 100, 7), (0.07, 101, 8), (0, 100, 0)]
)
def test_the_warm_up_is_a_share_of_the_steps_rounded_up(share, steps, warm):
    """Of the decimal that the config says: in binary floating point, 0.07 of 100 steps are a little more than 7."""
    assert warmup_steps(share, steps) == warm


@pytest.mark.parametrize("family", ["llada", "llama3"])
def test_the_engine_follows_plain_torch(process_group, load, family):
    """Accumulation over more micro-batches in one step than in another, some of them empty, changes nothing."""
    settings = Training.model_validate(SETTINGS | RUN | {"precision": "float32"})
    expected, weights = plain(load(family), settings, steps := 8)
    backbone = load(family)
    model = attach_lora(backbone.model, backbone.family, settings.lora, seed=1)
    run = deepspeed.build(deepspeed.Objective(model, backbone.shifted).train(), settings, steps)
    batches = batches_of(backbone, passes=Passes(40, ranks=4))
    sizes = [[len(part) for part in batches[step]] for step in range(steps)]
    assert [1, 1, 0, 0] in sizes and {len(parts) for parts in sizes} == {4, 8}
    trainer = sft._Trainer(run, batches, rank=0, world=1)
    losses = [trainer.step(step)["loss"] for step in range(steps)]
    assert losses == pytest.approx(expected, rel=1e-4)
    for weight, other in zip(trainable(model), weights, strict=True):
        torch.testing.assert_close(weight, other, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(("family", "more"), [("llada", {}), ("dream", {"attention": "prefix"}), ("llama3", {})])
def test_the_history_is_that_of_plain_torch(finetune, load, family, more):
    folder = finetune(job := spec(family) | more)
    columns, steps = history(folder), SETTINGS["max_steps"]
    assert list(columns) == ["step", "loss", "cross_entropy", "learning_rate", "gradient_norm"]
    assert columns["step"] == tuple(range(1, steps + 1))
    settings = Training.model_validate(job["training"] | RUN | {"precision": "float32"})
    expected, _ = plain(load(family, **more), settings, steps)
    assert columns["loss"] == pytest.approx(expected, rel=1e-4)
    assert (columns["cross_entropy"] == columns["loss"]) == (family == "llama3")
    assert files.read_json(folder / "adapter.json")["spec"] == job
    assert columns["learning_rate"][0] == 0 < columns["learning_rate"][-1] < columns["learning_rate"][1] == 0.01
    assert min(columns["gradient_norm"]) > 0
    vocabulary = load(family).model.config.vocab_size
    assert files.read_json(folder / "adapter.json")["vocabulary"] == vocabulary


def test_a_finished_adapter_is_not_trained_again(finetune, monkeypatch):
    finetune(job := spec())
    monkeypatch.setattr(deepspeed, "build", lambda *_: pytest.fail("it was trained again"))
    finetune(job)


def test_what_does_not_fit_is_refused_before_training(finetune, monkeypatch):
    monkeypatch.setattr(deepspeed, "build", lambda *_: pytest.fail("it was trained"))
    monkeypatch.setattr(machine, "memory", lambda: 1000)
    with pytest.raises(InputError, match=r"llada: its weights need 0.1 MB in float32, the memory has 0.0 MB"):
        finetune(spec())


@pytest.mark.parametrize("shifted", [True, False])
def test_an_override_of_the_shift_changes_the_rows_read(finetune, load, shifted):
    backbone = load("dream")
    (batch,) = canvases_of(backbone)[0]
    with torch.inference_mode():
        one, other = (cross_entropies(backbone.model, batch, rows) @ batch.weights for rows in (shifted, not shifted))
    assert one.item() != pytest.approx(other.item(), rel=1e-2)
    first = history(finetune(spec("dream") | {"shifted": shifted}))["loss"][0]
    assert first == pytest.approx(one.item(), rel=1e-4)  # before the first update an adapter changes nothing


def assert_it_goes_on(finetune, job, begun):
    """To the same bytes as from nothing, even in less memory."""
    steps = job["training"]["max_steps"]
    assert 0 < files.read_json(begun / "work" / "last.json")["progress"]["step"] < steps
    assert not (begun / "adapter").exists()
    whole, resumed = finetune(job), finetune(job, begun, activation_checkpointing=True)
    names = sorted(path.name for path in whole.iterdir())
    assert names == ["adapter.json", "adapter_config.json", "adapter_model.safetensors", "losses.csv"]
    for name in names:
        assert (whole / name).read_bytes() == (resumed / name).read_bytes(), name
    assert not (begun / "work").exists()
    assert files.read_json(begun / "logs" / "run.json")["peak_memory_bytes"] > 0


@pytest.mark.parametrize("family", ["llada", "llama3"])
def test_broken_off_and_resumed_gives_the_same_bytes(finetune, broken_off, tmp_path, family):
    """Wherever it is killed: tests/faults."""
    job, begun = spec(family, dropout=0.3), tmp_path / "begun"
    broken_off(job, begun)
    assert_it_goes_on(finetune, job, begun)


def test_near_its_time_limit_a_training_saves_and_is_requeued(finetune, slurm_job, tmp_path):
    job, begun = spec(dropout=0.3, max_steps=3), tmp_path / "begun"
    slurm_job.ends_in(200)
    with pytest.raises(BaseException) as end:
        finetune(job, begun, checkpoint_every=100)
    assert end.typename == "Requeued" and slurm_job.calls() == ["show job 7", "requeue 7"]
    slurm_job.ends_in(3600)
    assert_it_goes_on(finetune, job, begun)


@pytest.mark.cluster  # of its quarter of a minute, most is what three processes import
def test_two_processes_train_what_one_does(checkpoints, corpus, finetune, tmp_path, monkeypatch):
    """Float32 adapters on a bfloat16 backbone, as on GPUs; a sequence a pass, so only sums of gradients are rounded."""
    job, out = {**spec(max_steps=3), "precision": "bfloat16"}, tmp_path / "adapter" / "adapter.json"
    folders = {"backbone": checkpoints / "llada", "work": tmp_path / "work", "logs": tmp_path / "logs"}
    passes = {"micro_tokens": 1, "processes": 2, "activation_checkpointing": True}
    two = {**folders, **passes, "check": None, "checkpoint_every": 2}
    run_here("train", job | {"made_from": {"corpus": "digest"}}, {"corpus": corpus}, out, two)
    facts = files.read_json(out)
    assert facts["spec"] == job and (facts["processes"], facts["micro_tokens"]) == (2, 1)
    assert facts["float32_products"] == "float32"
    assert re.fullmatch(r"cpu, (1 thread|\d+ threads)", results.record_of(out).facts["device"])
    # Of another number of processes it is as good; Snakemake has removed its outputs, and nothing is trained.
    written = out.read_bytes()
    for path in out.parent.iterdir():
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(sft, "finetune", lambda job: pytest.fail("it was trained again"))
        run_here("train", job | {"made_from": {"corpus": "another"}}, {"corpus": corpus}, out, two | RUN)
    assert out.read_bytes() == written
    assert results.record_of(out).params["made_from"] == {"corpus": "another"}
    alone = finetune(job, micro_tokens=1)
    one, other = (load_file(folder / "adapter_model.safetensors") for folder in (alone, tmp_path / "adapter"))
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, atol=1e-5, rtol=1e-4)
        assert not torch.equal(tensor, tensor.bfloat16().float()), name
    for column, values in history(alone).items():
        assert history(tmp_path / "adapter")[column] == pytest.approx(values, rel=1e-4), column


def test_deepspeed_rounds_neither_adapters_nor_sums_of_gradients(process_group, load):
    """It would with the key in its config that is usual for bfloat16."""
    backbone = load(dtype="bfloat16")
    settings = Training.model_validate(SETTINGS | RUN | {"precision": "bfloat16"})
    model = attach_lora(backbone.model, backbone.family, settings.lora, seed=1)
    engine = deepspeed.build(deepspeed.Objective(model, backbone.shifted).train(), settings, 8)
    dtypes = {parameter.dtype for parameter in trainable(engine.module)} | {engine.communication_data_type}
    assert dtypes == {torch.float32}


def test_a_training_that_diverges_ends_with_its_step(finetune, tmp_path):
    problem = r"adapter: the loss is not finite at step [2-4] of 8 \(loss (nan|inf), .*lower"
    with pytest.raises(InputError, match=problem):
        finetune(spec(learning_rate=1e30), tmp_path)
    assert not (tmp_path / "adapter").exists()


@pytest.mark.parametrize(("hidden", "problem"), [(True, "a file holds more than"), (False, "not as it was written")])
def test_a_checkpoint_that_would_run_code_or_is_damaged_is_refused(finetune, broken_off, tmp_path, hidden, problem):
    broken_off(spec(), tmp_path)
    (checkpoint,) = (tmp_path / "work").glob("step6/mp_rank_00_model_states.pt")
    torch.save({**torch.load(checkpoint, weights_only=False), "more": Hostile(tmp_path / "folder")}, checkpoint)
    if hidden:
        last = tmp_path / "work" / "last.json"
        files.write_json(last, files.read_json(last) | {"digests": files.digests(checkpoint.parent.iterdir())})
    with pytest.raises(InputError, match=f"step6: {problem}.* Remove {tmp_path / 'work'}: the training"):
        finetune(spec(), tmp_path)
    assert not (tmp_path / "folder").exists()


class Attribute:
    """Pickled, an attribute: as Python before 3.11.4 pickles the members of an enum."""

    def __init__(self, owner, name):
        self.parts = owner, name

    def __reduce__(self):
        return getattr, self.parts


def test_an_enum_of_deepspeed_is_read_as_any_python_writes_it_and_no_other_attribute(tmp_path):
    from deepspeed.runtime.fp16.loss_scaler import LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum

    checkpoint = tmp_path / "checkpoint.pt"
    torch.save({"stage": Attribute(ZeroStageEnum, "gradients")}, checkpoint)
    assert deepspeed._load(checkpoint) == {"stage": ZeroStageEnum.gradients}
    for owner, name in ((LossScaler, "__init__"), (ZeroStageEnum, "__class__")):
        torch.save({"stage": Attribute(owner, name)}, checkpoint)
        with pytest.raises(InputError, match="more than tensors"):
            deepspeed._load(checkpoint)


def test_another_job_starts_afresh(finetune, broken_off, tmp_path):
    broken_off(spec(max_steps=40), tmp_path)
    finetune(spec(), tmp_path)
    assert files.read_json(tmp_path / "adapter" / "adapter.json")["steps"] == 8
