from __future__ import annotations

from run_rule import run_here, run_rule

from entropy_valley import files

SPEC = {"direction": "en-de", "revision": 1, "seed": 1, "source": {"name": "embedded"}}
READ = {"own": [], "dataset": []}
HOW = {"folder": None, "rows": None}


def test_testset_script_ends_bad_input_with_one_line(tmp_path):
    out = tmp_path / "test.jsonl"
    run_here("testset", {**SPEC, "limit": 7}, READ, out, HOW)
    before = out.read_bytes()
    log = run_rule("testset", {**SPEC, "limit": None}, READ, out, HOW, fails=True)
    assert log.startswith("error: ") and log.count("\n") == 1
    assert out.read_bytes() == before


def test_overlap_script_warns_of_test_sentences_in_training(tmp_path, capsys):
    rows = [{"id": str(n), "source": f"{n}", "target": f"zu {n}"} for n in range(4)]
    read = {name: tmp_path / f"{name}.jsonl" for name in ("testset", "train")}
    files.write_jsonl(read["testset"], rows)
    files.write_jsonl(read["train"], rows[1:])
    run_here("overlap", {"revision": 1}, read, tmp_path / "out.json")
    warning = f"warning: {read['testset']}: 3 of 4 sources occur in the training pairs"
    assert capsys.readouterr().err.startswith(warning)
    files.write_jsonl(read["train"], [{"id": "5", "source": "5", "target": "zu 5"}])
    run_here("overlap", {"revision": 1}, read, tmp_path / "out.json")
    assert capsys.readouterr().err == ""
