"""What is left to run, what it takes on several GPUs, and what it would download."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.findings import MISSING, Findings
from entropy_valley.experiment.loading import load, merge, overlay
from entropy_valley.experiment.result import Result
from entropy_valley.experiment.written import Written
from entropy_valley.forecast import downloads, rates
from entropy_valley.forecast.downloads import Download
from entropy_valley.forecast.forecast import Forecast
from entropy_valley.forecast.remaining import remaining
from entropy_valley.forecast.schedule import wall_clock
from entropy_valley.forecast.tasks import Task, Tasks
from entropy_valley.forecast.texts import Texts
from entropy_valley.forecast.work import Work
from entropy_valley.reporting import against, forecast, reports
from entropy_valley.usage import COLUMNS

ROOT = Path(__file__).parents[2]
BASE = merge([*base_files(ROOT), ROOT / "config/demo.yaml"])


def experiment(**over):
    return load(overlay(BASE, over), further=reports.problems)


def record(folder, key, *attempts):
    """The record of a job: seconds and status of each attempt."""
    path = folder / "results/demo/benchmarks" / f"{key}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [COLUMNS, *(("now", seconds, "0", "1", "0", "", "", status, "here") for seconds, status in attempts)]
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def test_times_of_attempts_and_sessions_are_added_and_unfinished_jobs_left_out(tmp_path):
    record(tmp_path, "train/en-zh.a.seed1", (30, 1), (20, 0))
    record(tmp_path, "train/en-zh.a.seed2", (30, 137))
    record(tmp_path, "inference/en-zh.a.seed1.0of1.20261122-113041-69d0f24b", (5, 0))
    record(tmp_path, "inference/en-zh.a.seed1.0of1.20261122-132627-a0af5aa4", (6, 0))
    record(tmp_path, "score/en-zh.a.seed1.grammar.ev/med-T32", (1, 0))
    record(tmp_path, "train_comet", (40, 0))
    assert rates.measured(tmp_path / "results/demo") == {
        "train/en-zh.a.seed1": 50,
        "inference/en-zh.a.seed1": 11,
        "score/en-zh.a.seed1.grammar.ev/med-T32": 1,
        "train_comet": 40,
    }


def test_only_what_is_missing_or_follows_from_it_is_left(tmp_path):
    def job(rule, *needs):
        return Result("dev_as_testset", {"direction": rule}, str(tmp_path), (f"{rule}.json",), "", needs=needs)

    corpus = job("corpus")
    adapter = job("adapter", corpus)
    scores = [job(name, adapter) for name in ("one", "two")]
    for name in ("adapter", "one"):
        (tmp_path / f"{name}.json").write_text("{}")
    left = remaining(Findings(Written(tmp_path)), [corpus, adapter, *scores], scores)
    assert {one.wildcards["direction"]: found.state for one, found in left.items()} == {"two": MISSING}
    (tmp_path / "adapter.json").write_text("")  # damaged: all that follows is made again, from a corpus made anew
    assert len(remaining(Findings(Written(tmp_path)), [corpus, adapter, *scores], scores)) == 4


RUN = "inference/en-zh.llada-tiny.seed2"


def work_of_a_run(demo):
    """Its jobs, and what tells the tasks that they are."""
    known = {f"{direction}/{name}": (200, 7, 6) for direction in ("en-zh", "zh-en", "en-de") for name in ("grammar",)}
    known |= {f"{direction}/train": (20000, 7, 6) for direction in ("en-zh", "zh-en", "en-de")}
    run = [one for one in against.jobs(demo).values() if "seed" in one.wildcards and one.wildcards["seed"] == "2"]
    return run, Tasks(Work(demo, Texts(demo, known)))


def test_shared_work_is_less_than_its_sum_and_what_is_there_is_left_out():
    run, tasks = work_of_a_run(experiment())
    whole = tasks.of(run)[RUN].work
    methods = [[one for one in run if one.wildcards.get("method", name) == name] for name in ("oracle", "ratio", "ev")]
    alone = [tasks.of(jobs)[RUN].work for jobs in methods]
    assert max(alone) < whole < 1.1 * sum(alone)
    rest = tasks.of([one for one in run if one not in methods[0]], there=methods[0])
    assert rest[RUN].work == pytest.approx(whole - alone[0])


def test_a_prompt_that_is_not_computed_in_every_pass_is_less_work():
    settings = [{"decoding": {"prompt_cache": {"refresh": refresh}}} for refresh in (1, 4, "never")]
    settings.append({"backbones": {"llada-tiny": {"attention": "prefix"}}})
    exact, some, never, prefix = (
        tasks.of(run)[RUN].work for run, tasks in (work_of_a_run(experiment(**over)) for over in settings)
    )
    assert exact > some > never == prefix > 0.1 * exact


tasks = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 4), st.booleans()), min_size=1, max_size=12)


@given(tasks, st.integers(1, 6))
def test_more_gpus_never_take_less_than_the_longest_chain_or_their_share(given, slots):
    made, before = {}, None
    for place, (seconds, gpus, follows) in enumerate(given):
        made[str(place)] = Task(
            "train", str(place), seconds, gpus=gpus, needs={before} if follows and before else set()
        )
        before = str(place)
    took = wall_clock(made, lambda task: task.work, slots, gpus=True)
    used = sum(task.work * task.gpus for task in made.values()) / slots
    assert took >= max(used, *(task.work for task in made.values())) - 1e-6
    assert took <= sum(task.work * max(1, task.gpus / slots) for task in made.values()) + 1e-6


def test_a_given_comet_has_the_size_of_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = tmp_path / "model/checkpoints/model.ckpt"
    comet = {"checkpoint": str(checkpoint), "training": None}
    demo, own = experiment(), experiment(scoring={"comet": comet})
    jobs = [job for job in against.jobs(demo).values() if job.rule == "score"]
    assert Work(own).of_scores(jobs) > 500 * Work(demo).of_scores(jobs)
    scores = [job for job in against.jobs(own).values() if job.rule == "score"]
    assert Forecast(own, scores, dict.fromkeys(scores)).assumed == {str(checkpoint): "COMET-22"}
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(bytes(2_000_000))  # the toy COMET's
    assert Work(own).of_scores(jobs) == pytest.approx(Work(demo).of_scores(jobs))


def test_the_shape_of_a_folder_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def lines(folder, cores=None):
        mine = {"label": "mine", "family": "llada", "bos": False, "folder": folder}
        found = experiment(backbones={"mine": mine}, matrix={"backbones": ["mine"]}, tables={"backbone": "mine"})
        trained = [one for one in against.jobs(found).values() if one.rule == "train"]
        return forecast.first_lines(Forecast(found, trained, dict.fromkeys(trained)), [], [], cores)[3:]

    known = "other/backbones/llada-tiny"  # as the config pre-trains one
    assert [line.split(";")[0] for line in (*lines(known), *lines(known, 2)) if line] == [
        "Cost:     about 4.5 min on 1 core",
        "Cost:     about 2.2 min on 2 cores",
    ]
    cost, assumed, _ = lines("models/llada-tuned")
    assert " days on 1 core;" in cost and assumed.endswith(
        "models/llada-tuned: not there; counts as large as LLaDA-8B until it is"
    )


def test_large_and_unknown_downloads_need_a_word():
    demo = experiment()
    small, large, unknown = Download("a", 2e6), Download("b", 16e9), Download("c", None)
    downloads.require_agreement(demo, [small])
    downloads.require_agreement(experiment(confirm="yes"), [large, unknown])
    for found in ([large], [small, unknown]):
        with pytest.raises(InputError, match="--config confirm=yes"):
            downloads.require_agreement(demo, found)
    with pytest.raises(InputError, match=r"16.0 GB and 1 of unknown size that is not here: b \(16.0 GB\), c"):
        downloads.require_agreement(demo, [large, unknown])


def test_what_is_there_is_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    papers = load_files([ROOT / "config/studies.yaml", ROOT / "config.yaml"], reports.problems)
    asked = [("fetch_backbone", {"backbone": "llada-8b"}), ("corpus", {"direction": "en-zh"})] * 2
    checkpoint, pairs = downloads.downloads(papers, asked)
    assert str(checkpoint) == "GSAI-ML/LLaDA-8B-Base (16.0 GB)"
    assert str(pairs) == "wmt/wmt19 zh-en train (3.6 GB, not kept)"
    folder = tmp_path / "models/llada-8b"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert downloads.downloads(papers, asked) == [pairs]


def test_the_command_says_what_is_left_and_what_a_change_costs(tmp_path, monkeypatch, capsys):
    from entropy_valley import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("length_methods: {ev: {ratios: {en-zh: [0.6, 0.8, 1.0]}}}\n")
    files = [*map(str, base_files(ROOT)), str(ROOT / "config/demo.yaml")]
    monkeypatch.setattr("sys.argv", ["entropy-valley", "plan", "--configfile", *files, "--cores", "4"])
    cli.main()
    said = capsys.readouterr().out
    assert said.startswith("Config:   ") and "Results:  results/demo\n" in said
    assert "On 4 cores: about " in said and "Downloads: none" in said
    monkeypatch.setattr(
        "sys.argv", [*["entropy-valley", "plan", "--cells", "--configfile"], *files, "--config", "mine.yaml"]
    )
    cli.main()
    said = capsys.readouterr().out
    assert said.count("canvas: EV ratios of en-zh: 0.55 0.62 0.71 0.8 1.0 → 0.6 0.8 1.0") == 5
    assert "train " not in said


def test_a_forecast_after_jobs_have_run_is_compared_with_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo = experiment(results="results/demo")
    jobs = [one for one in against.jobs(demo).values() if one.rule in ("train", "corpus")]
    for seed in (1, 2):
        record(tmp_path, f"train/en-zh.llada-tiny.seed{seed}", (40 + 10 * seed, 0))
    for job in jobs:
        for path in map(Path, job.paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    found = Forecast(demo, jobs, {})
    (compared,) = found.hindsight
    assert (compared.stage, compared.jobs, compared.measured) == ("train", 1, 60)
    assert compared.forecast == pytest.approx(50) and compared.error == pytest.approx(-1 / 6)
    forecast.show_hindsight([compared])
    assert "-17%" in capsys.readouterr().out
