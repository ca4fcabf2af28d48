"""What jobs take by their work and by finished jobs, and what they would download."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from entropy_valley import files, results, tables
from entropy_valley.checking import checks
from entropy_valley.config import base_files, load_files
from entropy_valley.config.expand import overlay
from entropy_valley.config.load import load_merged, merge
from entropy_valley.results import Record, record_path
from entropy_valley.runs import plan
from entropy_valley.runs.audit import DONE, Audit
from entropy_valley.runs.inventory import Inventory
from entropy_valley.runs.plan import CHECKED, FINISHED, Plan
from entropy_valley.runs.work import Text, Work

ROOT = Path(__file__).parents[2]
BASE = merge([*base_files(ROOT), ROOT / "config/demo.yaml"])
MAIN = ["results/tables/main.csv"]
DIRECTIONS = ("en-zh", "zh-en", "en-de")
TEXTS = {(direction, "grammar"): Text(200, 7, 6) for direction in DIRECTIONS}
TEXTS |= {(direction, "train"): Text(20000, 7, 6) for direction in DIRECTIONS}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def experiment(**over):
    return load_merged(overlay(BASE, over), further=tables.problems)


def planned(config, *targets):
    """The plan of the jobs that are not done, of some files or of the whole config."""
    audit = Audit(Inventory(config))
    jobs = audit.inventory.behind(targets) if targets else audit.inventory.all()
    done = [job for job in jobs if audit.job(job).state == DONE]
    return Plan.of(audit, [job for job in jobs if job not in done], done)


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


def planned_paper():
    return planned(load_files([ROOT / "config/studies.yaml", ROOT / "config.yaml"], tables.problems))


def test_before_any_job_the_whole_matrix_takes_the_papers_hours():
    papers = planned_paper()
    used, reserved = papers.gpu_hours(papers.left)
    assert used == pytest.approx(420, rel=0.01) and used < reserved < 3 * used
    assert not papers.done and {"table", "figure"} < {job.rule for job in papers.left}
    assert 80e9 < sum(one.bytes for one in plan.downloads(papers.experiment, papers.left)) < 95e9


def test_the_other_speeds_on_a_gpu_are_those_that_are_published():
    """Six GPU-hours for a training, and 1.7 s for a sentence with EV."""
    papers = planned_paper()
    work = Work(papers.experiment)
    trainings = [job for job in papers.left if re.fullmatch(r"train/(en-zh|zh-en|en-de).llada-8b.seed.", job.name)]
    mean = fmean(work.of(trainings).values())
    assert len(trainings) == 9 and mean / plan.GPU_TRAINING / 3600 == pytest.approx(6, rel=0.01)
    (job,) = (job for job in papers.left if job.name == "translate/en-zh.llada-8b.seed1.matrix")
    (cell,) = (cell for cell in job.cells if cell.method == "ev")
    (one,) = work.of([dataclasses.replace(job, cells=(cell,))]).values()
    assert one / 2037 / plan.GPU_DECODER == pytest.approx(1.7, rel=0.01)
    low, high = papers.published(training=plan.GPU_TRAINING), papers.published(decoder=plan.GPU_DECODER)
    assert low < papers.published() < high


def test_passes_that_were_checked_here_say_how_fast_a_backbone_is():
    before = {job.name: took for job, took in planned_paper().seconds.items()}
    for rate in (970_000, 485_000):  # of two kinds of GPUs
        line = checks.Line("pass llada-8b", checks.OK, f"4080 tokens in 0.1 s, {rate:,} GFLOP/s (60 %)", 1.0)
        files.write_text(f"results/work/checks/{rate}.txt", f"{line}\n")
    after = planned_paper()
    backbones = {"translate": set(), "diagnose": set()}
    for job in after.left:
        speed, source = after.speed(job)
        if source == CHECKED:
            assert speed == 4.85e14
            assert 0.01 * before[job.name] < after.seconds[job] < 0.3 * before[job.name]
            backbones["translate" if job.rule == "shard" else job.rule].add(job.wildcards["backbone"])
    assert backbones == {"translate": {"llada-8b"}, "diagnose": {"llada-8b"}}
    text = " ".join(plan.totals(after))
    assert "translate, shard, diagnose from passes that `entropy-valley check` timed" in " ".join(text.split())
    assert after.published() == pytest.approx(420, rel=0.01)


def test_the_plan_counts_what_a_cluster_gives():
    papers = planned(load_files([ROOT / "config/studies.yaml", ROOT / "config.yaml"], tables.problems), *MAIN)
    rules = {job.rule for job in papers.allocated}
    assert rules == {"corpus", "train", "translate", "score"}
    on_gpu = [job for job in papers.allocated if papers.held(job)]
    assert papers.gpu_hours(papers.left) == papers.gpu_hours(on_gpu)
    limits = sum(papers.minutes(job) * papers.held(job) for job in on_gpu)
    assert papers.gpu_hours(on_gpu)[1] == pytest.approx(limits / 60)
    (cluster,) = (line for line in plan.totals(papers) if line.startswith("Cluster:"))
    assert cluster.startswith(
        f"Cluster:   {len(papers.allocated)} allocations, {len(on_gpu)} with GPUs; 72 GPU-hours ("
    )


def sets_of(config, rule="translate"):
    return [job for job in Inventory(config).all() if job.rule == rule and job.cells and job.cells[0].order]


def test_what_one_set_has_computed_costs_the_next_nothing():
    demo = experiment()
    job = next(job for job in sets_of(demo) if len(job.cells) > 2)
    (whole,) = Work(demo, TEXTS).of([job]).values()
    parts = [dataclasses.replace(job, cells=(cell,)) for cell in job.cells]
    assert sum(Work(demo, TEXTS).of(parts).values()) == pytest.approx(whole)
    assert sum(Work(demo, TEXTS).of([job, *parts]).values()) == pytest.approx(whole)
    assert sum(Work(experiment(store=False), TEXTS).of([job, *parts]).values()) == pytest.approx(2 * whole, rel=0.01)


def test_a_prompt_that_is_not_computed_in_every_pass_is_less_work():
    settings = [{"decoding": {"prompt_cache": {"refresh": refresh}}} for refresh in (1, 4, "never")]
    settings.append({"backbones": {"llada-tiny": {"attention": "prefix"}}})
    configs = [experiment(**over) for over in settings]
    exact, some, never, prefix = (sum(Work(one, TEXTS).of(sets_of(one)[:1]).values()) for one in configs)
    assert exact > some > never == prefix > 0.1 * exact


def test_padding_is_work_of_a_training():
    """So many EOS, or up to the longest pair of a micro-batch."""
    work = []
    for padding in (0, 4, "batch"):
        config = experiment(training={"loss": {"eos_padding": padding}})
        job = next(job for job in Inventory(config).all() if job.rule == "train")
        work += Work(config, TEXTS).of([job]).values()
    assert work[0] < work[1] < work[2] < 3 * work[0]


def test_one_finished_job_says_how_fast_the_others_of_its_rule_are():
    demo = experiment(results="results/demo")
    before = planned(demo)
    first, *others = (job for job in before.left if job.rule == "train")
    for job in Inventory(demo).behind(first.outputs):
        finish(job)
    benchmark(first.name, 3 * before.seconds[first])
    after = planned(demo)
    assert (
        after.speed(first)[1] == FINISHED
        and after.finished == {"train": 1}
        and first.name in [job.name for job in after.done]
    )
    (same,) = (job for job in after.left if job.name == others[0].name)
    assert after.seconds[same] == pytest.approx(3 * before.seconds[others[0]], rel=0.1)
    translation = next(job for job in before.left if job.rule == "translate")
    assert after.speed(translation) == before.speed(translation)  # none of it has finished, so it is three times usual
    table, same = (next(took for job, took in one.seconds.items() if job.rule == "table") for one in (before, after))
    assert after.slower == pytest.approx(3) and same == pytest.approx(3 * table)


def test_a_job_holds_the_gpus_of_its_rule():
    papers = merge([*base_files(ROOT)])
    plans = [planned(load_merged(overlay(papers, {"training": {"processes": count}}))) for count in (1, 4)]
    held = plans[1].gpus
    assert held["train"] == 4 and held["translate"] == held["score"] == 1 and not {"corpus", "table"} & held.keys()
    one, four = ({job.name: took for job, took in each.seconds.items()} for each in plans)
    assert all(4 * four[name] > one[name] > 3.8 * four[name] for name in one if name.startswith("train/"))
    assert all(one[name] == four[name] for name in one if not name.startswith("train/"))


@pytest.mark.parametrize("minutes", [60, 120, 240])
def test_every_job_on_a_gpu_fits_into_the_longest_time_limit(minutes):
    papers = planned(load_merged(overlay(merge([*base_files(ROOT)]), {"max_runtime": minutes})))
    on_gpu = [job for job in papers.left if papers.held(job)]
    assert {job.rule for job in on_gpu} == {"train", "translate", "shard", "score", "diagnose", "latency"}
    assert all(papers.minutes(job) <= minutes for job in on_gpu)
    assert all(papers.seconds[job] <= 60 * minutes for job in on_gpu if job.rule != "train")
    assert all(papers.minutes(job) > papers.seconds[job] / 60 for job in on_gpu if papers.minutes(job) < minutes)


def test_a_finished_job_makes_time_limits_longer_and_never_shorter():
    """It may have taken most of its results from the store."""
    papers = load_merged(merge([*base_files(ROOT)]))
    jobs = [job for job in Inventory(papers).all() if job.rule == "score"]
    limits = []
    for seconds in (None, 1, 36_000):
        if seconds:
            Path("results/benchmarks/score").mkdir(parents=True, exist_ok=True)
            Path(f"results/benchmarks/{jobs[0].name}.tsv").write_text(f"s\th:m:s\n{seconds}\t0:00:01\n")
        limits.append(Plan(papers, [], jobs).minutes(jobs[1]))
    assert limits[0] == limits[1] < limits[2] == papers.max_runtime


def test_the_number_of_shards_follows_from_the_config_alone(tmp_path):
    """Also where other jobs were much slower, and a checkpoint or a corpus exists by now."""
    papers = load_merged(merge([*base_files(ROOT)]))

    def counts():
        return {job.name: job.shards for job in Inventory(papers).all() if job.rule == "translate"}

    before = counts()
    assert max(before.values()) > 1 == min(before.values())
    whole = next(job for job in Inventory(papers).all() if job.shards > 1)
    Path("results/benchmarks/shard").mkdir(parents=True)
    Path(f"results/benchmarks/{whole.name}.tsv").write_text("s\th:m:s\n90000.0\t1 day\n")
    Path("models/llada-8b").mkdir(parents=True)
    Path("models/llada-8b/config.json").write_text(json.dumps({"model_type": "llada", "d_model": 64}))
    Path("results/corpus/en-zh/test").mkdir(parents=True)
    Path("results/corpus/en-zh/test/wmt22.jsonl").write_text('{"source": "a", "target": "b"}\n')
    assert counts() == before


def test_shards_share_the_work_of_their_set():
    papers = merge([*base_files(ROOT)])
    one, four = (planned(load_merged(overlay(papers, {"decoding": {"shards": count}}))) for count in (1, 4))
    assert four.gpu_hours(four.left)[0] == pytest.approx(one.gpu_hours(one.left)[0], rel=0.05)
    sets, shards = ([job for job in four.left if job.rule == rule] for rule in ("translate", "shard"))
    assert len(shards) == 4 * len(sets) and all(four.minutes(job) < 35 for job in sets)  # these put them together


def test_of_a_changed_set_only_the_cells_that_change_cost_anything():
    demo = experiment(results="results/demo")
    inventory = Inventory(demo)
    target = inventory.sets.all[0]
    whole = planned(demo, target.scores("results/demo"))
    for job in whole.left:
        finish(job, cells=[results.system_of(cell)._asdict() for cell in job.cells])
    changed = experiment(results="results/demo", length_methods={"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}})
    after = planned(changed, target.scores("results/demo"))
    assert [job.rule for job in after.left] == ["translate", "score"]
    for rule in ("translate", "score"):
        old, new = (next(took for job, took in each.seconds.items() if job.rule == rule) for each in (whole, after))
        assert 0 < new - plan.START < 0.6 * (old - plan.START)


def test_a_given_comet_has_the_size_of_its_file(tmp_path):
    checkpoint = tmp_path / "model/checkpoints/model.ckpt"
    demo = experiment()
    own = experiment(scoring={"comet": {"checkpoint": str(checkpoint), "training": None}})
    jobs = sets_of(demo, "score")
    work = sum(Work(demo, TEXTS).of(jobs).values())
    assert sum(Work(own, TEXTS).of(jobs).values()) > 500 * work
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(bytes(2_000_000))  # the toy COMET's
    assert sum(Work(own, TEXTS).of(jobs).values()) == pytest.approx(work)


def test_a_folder_that_does_not_exist_yet_counts_as_large_as_llada():
    mine = {"label": "mine", "family": "llada", "bos": False, "folder": "models/llada-tuned"}
    config = experiment(backbones={"mine": mine}, matrix={"backbones": ["mine"]}, tables={"backbone": "mine"})
    unknown = Plan(config, [job for job in Inventory(config).all() if job.rule == "train"])
    assert unknown.assumed == {"mine": "LLaDA-8B"}
    assert plan.totals(unknown)[-1].endswith("mine: does not exist; counts as large as LLaDA-8B until it does")


def test_large_and_unknown_downloads_need_a_word(monkeypatch):
    papers = load_files([ROOT / "config/studies.yaml", ROOT / "config.yaml"], tables.problems)
    inventory = Inventory(papers)
    jobs = [inventory.at("results/backbones/llada-8b.json"), *inventory.behind(["results/corpus/en-zh/train.jsonl"])]
    monkeypatch.setattr(plan.machine, "free", lambda folder: 10_000_000_000)
    assert " (10.0 GB free, 9.7 GB too little): GSAI-ML/" in plan.downloads_line(papers, jobs)
    monkeypatch.setattr(plan.machine, "free", lambda folder: 100_000_000_000)
    line = plan.downloads_line(papers, jobs)
    assert line.startswith(f"19.7 GB into {Path('models').absolute()} (")
    assert "free): GSAI-ML/LLaDA-8B-Base (16.0 GB), wmt/wmt19 zh-en train (3.6 GB). To agree" in line
    assert line.endswith("--config confirm=yes")
    assert "confirm" not in plan.downloads_line(papers.model_copy(update={"confirm": True}), jobs)
    (Path("models/llada-8b")).mkdir(parents=True)
    Path("models/llada-8b/config.json").write_text("{}")
    assert [str(one) for one in plan.downloads(papers, jobs)] == ["wmt/wmt19 zh-en train (3.6 GB)"]
    assert plan.downloads_line(papers, []) == "none"
