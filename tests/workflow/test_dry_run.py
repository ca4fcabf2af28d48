"""What Snakemake prints: the plan of a dry run, a page at most, and no pages of files."""

from __future__ import annotations

import re

from entropy_valley.driver import Machine

RULE = re.compile(r"^(\w+) +(\d+)  (?=\S| )", re.MULTILINE)


def lines(text):
    """Rules with their numbers of jobs."""
    return {rule: int(count) for rule, count in RULE.findall(text)}


def test_the_papers_plan_is_a_page(paper):
    text = paper.dry_run()
    page = text.splitlines()
    assert len(page) <= 60
    assert max(map(len, page)) <= 160
    said = lines(text)
    planned = paper.planned(last=True)
    counts = {rule: sum(1 for job in planned if job.split()[0] == rule) for rule in said}
    assert said == counts
    assert {job.split()[0] for job in planned} == said.keys()
    assert f"{sum(said.values())} jobs:" in text
    assert "results/" not in text
    assert ("warning: device: cuda: " in text) == (Machine.here().problem() is not None)
    assert re.search(r"^Config:   config/studies.yaml, config.yaml$", text, re.MULTILINE)
    assert "Models:   llada-8b, dream-7b, diffullama-7b; pairs of wmt19-zh-en, wmt19-de-en; on cuda\n" in text
    cost = re.search(r"^Cost:     about (\d+) GPU-hours; (\d+)\.\d GB to download", text, re.MULTILINE)
    assert 400 < int(cost[1]) < 440 and int(cost[2]) == 88


def test_a_changed_grid_is_named_by_its_key(finished):
    text = finished.dry_run(over={"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}})
    assert re.search(r"^canvas +3  .* ratios of en-zh: 0\.55 .*", text, re.MULTILINE)
    assert re.search(r"^decode +3  .*  input from canvas, inference$", text, re.MULTILINE)
    assert re.search(r"^Config:   config/studies.yaml, config.yaml(, \w[\w./-]*)+$", text, re.MULTILINE)


def test_a_pretraining_that_is_asked_for_alone_has_its_cost(finished):
    text = finished.dry_run("results/demo/backbones/llada-tiny/checkpoint.json", "--forcerun", "pretrain")
    assert lines(text) == {"pretrain": 1}
    assert re.search(r"^Cost:     about (?!0 s)[\d.]+ (s|min|h) on 1 core", text, re.MULTILINE)


def test_files_and_commands_on_request(finished):
    target = "results/demo/en-zh/llada-tiny/seed1/grammar/ev/med-T32/scores.json"
    brief = finished.dry_run("--forceall", target)
    assert target not in brief
    assert "forced" in brief
    whole = finished.dry_run("--forceall", "-p", target)
    assert f"output: {target}" in whole
    assert "python workflow/scripts/score.py" in whole


def test_nothing_to_do_is_said(finished):
    assert "Nothing to be done" in finished.dry_run()


def test_a_run_asks_before_it_downloads_much(paper):
    target = "results/backbones/llada-8b.json"
    said = paper.run("--cores", "1", target, over={"confirm": False}, fails=True)
    assert "would download 16.0 GB that is not here: GSAI-ML/LLaDA-8B-Base (16.0 GB)" in said
    assert "--config confirm=yes" in said and not (paper.folder / target).exists()


def test_a_run_lists_few_files_and_its_log_file_all(paper):
    said = paper.run("--cores", "2", "results/corpus/en-de/corpus.json")
    (log,) = (paper.folder / ".snakemake" / "log").iterdir()
    assert lines(said) == {"corpus": 1}
    assert re.search(r"output: .*… \(3 files\)$", said, re.MULTILINE) and "(update)" not in said
    assert re.search(r"output: .*train\.jsonl.*dev\.jsonl", log.read_text())


def test_drawing_pairs_takes_one_pass_for_both_directions_and_may_be_a_job_of_a_cluster(paper):
    with (paper.folder / "Snakefile").open("a") as snakefile:
        snakefile.write("\n\nprint('on the login node:', *workflow._localrules)\n")
    corpora = [f"results/corpus/{direction}/corpus.json" for direction in ("en-zh", "zh-en", "en-de")]
    said = paper.dry_run("-p", *corpora)
    assert re.search(r"^on the login node:.* corpus\b", said, re.MULTILINE)
    commands = re.findall(r"corpus.py .* --report results/corpus/([\w-]+)/corpus.json --both-ways", said)
    assert sorted(commands) == ["en-zh", "zh-en"]
    said = paper.dry_run(corpora[0], over={"corpus": {"on_cluster": True}})
    assert re.search(r"^on the login node:(?!.* corpus\b).* testset\b", said, re.MULTILINE)


def test_an_error_is_said_whole(paper):
    (paper.folder / "bin" / "python").write_text("#!/bin/bash\necho no luck >&2; exit 1\n")
    said = paper.run("--cores", "1", "results/corpus/en-de/corpus.json", fails=True)
    assert "Error in rule corpus" in said
    assert re.search(r"output: .*train\.jsonl, .*dev\.jsonl … \(3 files\)$", said, re.MULTILINE)
    assert "no luck" in said
