"""What jobs take by their work and by finished jobs, and what they would download."""

import dataclasses
import json
import re
from pathlib import Path
from statistics import fmean

import pytest
from job_lists import config_of, jobs_of

from entropy_valley import files, results
from entropy_valley.experiment.config import params
from entropy_valley.experiment.config.load import load_merged
from entropy_valley.experiment.config.matrix import sets_of
from entropy_valley.experiment.runs import cause_of, downloads, plan
from entropy_valley.experiment.runs.audit import Audit
from entropy_valley.experiment.runs.jobs import finished
from entropy_valley.experiment.runs.plan import Plan
from entropy_valley.experiment.runs.work import Work, shards
from entropy_valley.results import Record, read_record, record_path

MAIN, DEMO = ["results/tables/main.csv"], "config/demo.yaml"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def demo(**over):
    """The jobs of the demo with something laid over its config."""
    return jobs_of(over, DEMO)


def demo_config(**over):
    """The config of the demo with something laid over it, for jobs that are listed already."""
    return load_merged(config_of(over, DEMO))


def paper(**over):
    """The jobs of the paper's matrix."""
    return jobs_of(over)


def planned(jobs, *targets):
    """The plan of the jobs that are not done, of some files or of the whole config."""
    listed = jobs.behind(map(jobs.by_output.get, targets)) if targets else jobs.all
    return Plan(Audit(jobs), [job for job in listed if not is_done(job)])


def is_done(job):
    """Whether its outputs are there, and were made with its params as far as a header says."""
    record = read_record(record_path(job.outputs[0]))
    return all(Path(path).exists() for path in job.outputs) and (record is None or record.params == job.params)


def benchmark(name, seconds):
    """What Snakemake leaves of a finished job."""
    path = Path("results/demo/benchmarks", f"{name}.tsv")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{seconds:.4f}\t0:00:01\t120.2\tNA\n")


def finish(job, **facts):
    """The outputs of a job and its record."""
    for path in map(Path, job.outputs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    record = Record(job.rule, job.outputs[0], json.loads(job.spec), {}, {}, facts)
    record.write(record_path(job.outputs[0]))


def test_before_any_job_the_whole_matrix_takes_the_papers_hours():
    papers = planned(paper())
    assert papers.gpu_hours(papers.left) == pytest.approx(420, rel=0.01)
    assert not papers.done and {"table", "figure"} < {job.rule for job in papers.left}
    assert 80e9 < sum(one.bytes for one in downloads.downloads(papers.experiment, papers.left)) < 95e9


def test_the_other_speeds_on_a_gpu_are_those_that_are_published():
    """Six GPU-hours for a training, and 1.7 s for a sentence with EV."""
    papers = planned(paper())
    work = Work(papers.experiment)
    trainings = [job for job in papers.left if re.fullmatch(r"train/(en-zh|zh-en|en-de).llada-8b.seed.", job.name)]
    mean = fmean(work.of(trainings).values())
    assert len(trainings) == 9 and mean / plan.GPU_TRAINING / 3600 == pytest.approx(6, rel=0.01)
    (job,) = (job for job in papers.left if job.name == "translate/en-zh.llada-8b.seed1.matrix")
    (cell,) = (cell for cell in job.cells if cell.method == "ev")
    (one,) = work.of([job], {job: [cell]}).values()
    assert one / 2037 / plan.GPU_DECODER == pytest.approx(1.7, rel=0.01)
    low, high = papers.published(training=plan.GPU_TRAINING), papers.published(decoder=plan.GPU_DECODER)
    assert low < papers.published() < high


def test_the_plan_counts_what_a_cluster_gives():
    papers = planned(paper(), *MAIN)
    rules = {job.rule for job in papers.allocated}
    assert rules == {"corpus", "train", "translate", "score"}
    on_gpu = [job for job in papers.allocated if papers.held(job)]
    assert papers.gpu_hours(papers.left) == papers.gpu_hours(on_gpu)
    (cluster,) = (line for line in plan.totals(papers) if line.startswith("Cluster:"))
    assert cluster.startswith(
        f"Cluster:   {len(papers.allocated)} jobs, {len(on_gpu)} with GPUs; 77 GPU-hours; on 8 GPUs "
    )


def denoised(jobs, rule="translate"):
    return [job for job in jobs.all if job.rule == rule and job.cells and job.cells[0].order]


def test_what_one_set_has_computed_costs_the_next_nothing():
    job = next(job for job in denoised(demo()) if len(job.cells) > 2)
    config, again = job.experiment, dataclasses.replace(job)
    (whole,) = Work(config).of([job]).values()
    parts = [Work(config).of([job], {job: [cell]})[job] for cell in job.cells]
    assert whole == pytest.approx(sum(parts))
    assert Work(config).of([job, again])[again] == 0
    unstored = demo_config(store=False)
    assert Work(unstored).of([job, again])[again] == pytest.approx(whole, rel=0.01)


def work_under(config, job, spec=params.translation):
    """The work of a job of another config."""
    job = dataclasses.replace(job, experiment=config, spec=params.spec_of(config, spec, job.wildcards))
    return Work(config).of([job])[job]


def test_padding_is_work_of_a_training():
    """So many EOS, or up to the longest pair of a micro-batch."""
    job = next(job for job in demo().all if job.rule == "train")
    configs = (demo_config(training={"loss": {"eos_padding": padding}}) for padding in (0, 4, "batch"))
    work = [work_under(config, job, params.training) for config in configs]
    assert work[0] < work[1] < work[2] < 3 * work[0]


def test_one_finished_job_says_how_fast_the_others_of_its_rule_are():
    before = planned(demo())
    first, *others = (job for job in before.left if job.rule == "train")
    for job in demo().behind([first]):
        finish(job)
    benchmark(first.name, 3 * before.seconds[first])
    after = planned(demo())
    assert after.finished == {"train": 1} and first.name in [job.name for job in after.done]
    assert plan.speeds(after) == "of train (1) from finished jobs here; of the others as on two quiet cores"
    (same,) = (job for job in after.left if job.name == others[0].name)
    assert after.seconds[same] == pytest.approx(3 * before.seconds[others[0]], rel=0.1)
    translation = next(job for job in before.left if job.rule == "translate")
    assert after.speed(translation) == before.speed(translation)  # none of it has finished


def test_finished_jobs_are_known_by_names_that_have_dots():
    backbone, run = {"variant_of": "llada-tiny", "label": "tiny"}, "en-zh.tiny-1.5.seed1"
    names = [f"train/{run}", f"translate/{run}.matrix", f"score/{run}.grammar.ev-med-T32", f"shard/{run}.matrix.0of2"]
    for name in [*names, "train/en-zh.gone.seed1", f"translate/{run}.gone"]:
        benchmark(name, 1)
    config = config_of({"backbones": {"tiny-1.5": backbone}, "matrix": {"backbones": ["llada-tiny", "tiny-1.5"]}}, DEMO)
    jobs = finished(load_merged(config))
    assert [job.rule for job in jobs] == ["score", "shard", "train", "translate"]
    assert {job.wildcards["backbone"] for job in jobs} == {"tiny-1.5"}
    assert next(iter(jobs)).cells[0].method == "ev"


def test_fewer_gpus_of_a_training_and_more_shards_are_the_same_work():
    """A job holds the GPUs of its rule."""
    small = {"matrix": {"seeds": [1]}, "tables": {"studies": []}}
    eight, four = planned(paper(**small)), planned(paper(**small, training={"processes": 4}, decoding={"shards": 4}))
    assert four.gpus["train"] == 4 and four.gpus["shard"] == four.gpus["score"] == 1
    assert not {"corpus", "table"} & four.gpus.keys()
    before, after = ({job.name: took for job, took in each.seconds.items()} for each in (eight, four))
    assert all(2 * before[name] > after[name] > 1.9 * before[name] for name in before if name.startswith("train/"))
    assert four.gpu_hours(four.left) == pytest.approx(eight.gpu_hours(eight.left), rel=0.05)
    rules = [job.rule for job in four.left]
    assert rules.count("shard") == 4 * rules.count("merge") > 0 and "translate" not in rules
    assert not any(four.held(job) for job in four.left if job.rule == "merge")


def test_the_number_of_shards_follows_from_the_config_alone():
    """Also where a checkpoint and a corpus exist by now."""

    def counts():
        config = paper().experiment.model_copy()  # of which nothing is cached
        return {(one.run, one.name): shards(config, one) for one in sets_of(config).all}

    before = counts()
    assert max(before.values()) > 1 == min(before.values())
    files.write_json(Path("models/llada-8b/config.json"), {"model_type": "llada", "d_model": 64})
    files.write_jsonl(Path("results/corpus/en-zh/test/wmt22.jsonl"), [{"source": "a", "target": "b"}])
    assert counts() == before


def test_of_a_changed_set_only_the_cells_that_change_cost_anything():
    target = sets_of(demo().experiment).all[0].scores("results/demo")
    whole = planned(demo(), target)
    for job in whole.left:
        finish(job, cells=[results.system_of(cell)._asdict() for cell in job.cells])
    changed = demo(length_methods={"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}})
    after = planned(changed, target)
    assert [job.rule for job in after.left] == ["translate", "score"]
    for rule in ("translate", "score"):
        old, new = (next(took for job, took in each.seconds.items() if job.rule == rule) for each in (whole, after))
        assert 0 < new - plan.START < 0.6 * (old - plan.START)


def test_a_given_comet_counts_as_comet_22():
    own = demo_config(scoring={"comet": {"checkpoint": "model.ckpt", "training": None}})
    jobs = denoised(demo(), "score")
    work = sum(Work(demo().experiment).of(jobs).values())
    assert sum(Work(own).of(jobs).values()) > 500 * work


def test_large_and_unknown_downloads_need_a_word(monkeypatch):
    papers, made = paper().experiment, paper().by_output
    jobs = [made["results/backbones/llada-8b.json"], *paper().behind([made["results/corpus/en-zh/train.jsonl"]])]
    monkeypatch.setattr(downloads.machine, "free", lambda folder: 100_000_000_000)
    line = downloads.downloads_line(papers, jobs)
    assert line.startswith(f"19.7 GB into {Path('models').absolute()} (")
    assert "free): GSAI-ML/LLaDA-8B-Base (16.0 GB), wmt/wmt19 zh-en train (3.6 GB). To agree" in line
    assert line.endswith("--config confirm=yes")
    assert "confirm" not in downloads.downloads_line(papers.model_copy(update={"confirm": True}), jobs)
    (Path("models/llada-8b")).mkdir(parents=True)
    Path("models/llada-8b/config.json").write_text("{}")
    assert [str(one) for one in downloads.downloads(papers, jobs)] == ["wmt/wmt19 zh-en train (3.6 GB)"]
    assert downloads.downloads_line(papers, []) == "none"


def test_files_of_the_users_own_that_are_not_there_are_named():
    pairs = {"name": "tsv", "columns": {"en": 1, "de": 2}}
    methods = ["oracle", "ratio", "ev", "ev_fit"]  # the last is fitted to training pairs
    own = {
        "results": "results/given",
        "valley": {"backbones": []},
        "adapters": "released",
        "matrix": {"backbones": ["mine"], "directions": ["en-de"], "seeds": [1], "methods": methods},
        "tables": {"backbone": "mine"},
        "backbones": {"mine": {"label": "mine", "family": "llada", "bos": False, "folder": "my-llada"}},
        "released": {"mine": {"en-de": {1: {"folder": "my-adapter"}}}},
        "sources": {"my-train": pairs | {"file": "train.tsv"}, "my-test": pairs | {"file": "test.tsv"}},
        "directions": {"en-de": {"train": "my-train", "tests": ["my-test"]}},
        "scoring": {"comet": {"checkpoint": "model.ckpt", "training": None}},
    }
    jobs = demo(**own)
    everything = {"my-llada", "my-adapter", "train.tsv", "test.tsv", "model.ckpt"}
    assert set(downloads.missing(jobs.experiment, jobs.all)) == everything
    assert downloads.missing(demo().experiment, demo().all) == []
    assert plan.totals(planned(jobs))[-1].startswith("Not there: ")
    Path("test.tsv").write_text("a\tb\n")
    assert set(downloads.missing(jobs.experiment, jobs.all)) == everything - {"test.tsv"}


def test_a_jobs_name_is_that_of_its_benchmark_and_its_log():
    for job in paper().all:
        for folder, path in (("benchmarks", job.benchmark), ("logs", job.log)):
            told = f"results/{folder}/{job.name}"
            assert not path or path in (f"{told}.tsv", f"{told}.log")


LUCK, WRAPPER = "RuntimeError: no luck", "srun: error: node7: task 0: Exited with exit code 1"
FRAME = '  File "/x/model.py", line 8, in forward\n    return self.forward(states)\n'
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=14.0. Some of the step tasks have been OOM Killed."
SIGNAL = "traceback : Signal 9 (SIGKILL) received by PID 3745"  # as torchrun reports it, in a frame


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["Traceback (most recent call last):", FRAME * 1000 + LUCK, WRAPPER], LUCK),
        (["step 1", OOM, WRAPPER], OOM),
        (["Traceback (most recent call last):", "ChildFailedError:", "=" * 54, f"  {SIGNAL}", "=" * 54], SIGNAL),
    ],
    ids=["an exception", "out of memory", "a signal"],
)
def test_the_cause_is_no_frame_and_no_word_of_a_wrapper(lines, cause):
    files.write_text(Path("train.log"), "\n".join([*lines, ""]))
    assert cause_of(Path("train.log")) == cause
