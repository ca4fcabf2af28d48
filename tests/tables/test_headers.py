"""No table is made of results that do not belong together, nor of what the config does not say.

The results are those of a finished run. Each manipulation keeps all files readable, and would print a wrong number.
"""

import dataclasses
import shutil
from pathlib import Path

import finished
import pytest
from forging import swapped

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS, Record, read_record, record_path

MAIN = "tables/main"
RUN = "en-zh/llada-tiny/seed{}"
PAIRS = "corpus/en-zh/train.jsonl"


@pytest.fixture
def run(tmp_path):
    """The finished run, with training pairs that its adapters were trained on."""
    run = finished.Run(tmp_path)
    files.write_jsonl(run.root / PAIRS, [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}])
    digest = files.file_digest(run.root / PAIRS)
    change(run.root / "corpus/en-zh/train.made.json", outputs={"train.jsonl": {"digest": digest}})
    for seed in (1, 2):
        former = f"{finished.config()['results']}/{PAIRS}"
        change(run.root / RUN.format(seed) / "adapter/adapter.made.json", inputs={former: digest})
    return run


def change(place, **values):
    """Add to the parts of a header, whose own digest fits again."""
    record = read_record(place)
    dataclasses.replace(record, **{name: {**getattr(record, name), **more} for name, more in values.items()}).write(
        place
    )


def copy(old, new):
    for path in sorted(old.rglob("*")):
        if path.is_file():
            (new / path.relative_to(old)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, new / path.relative_to(old))


def swap_seeds(run):
    swapped(*(run.root / RUN.format(seed) for seed in (1, 2)))


def copy_scores(run):
    """With their header, beside the texts of another seed."""
    for name in ("scores.jsonl", "scores.json"):
        shutil.copyfile(run.root / RUN.format(1) / "matrix" / name, run.root / RUN.format(2) / "matrix" / name)


def copy_rows(run):
    name = "matrix/translations.jsonl"
    shutil.copyfile(run.root / RUN.format(1) / name, run.root / RUN.format(2) / name)


def scores_of_other_texts(run):
    """The texts were made again after they were scored."""
    path = run.root / RUN.format(2) / "matrix/translations.jsonl"
    path.write_text(path.read_text().replace('"hypothesis": "', '"hypothesis": "x', 1))
    change(record_path(path), outputs={path.name: {"digest": files.file_digest(path)}})


def edit(name, old, new):
    def edited(run):
        path = run.root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return edited


def other_params(name, **params):
    """The header is of other settings than those of the config: an older result that was put back."""
    return lambda run: change(run.root / RUN.format(2) / "matrix" / name, params=params)


def train_again(run):
    """Another adapter is there than that of the translations."""
    path = run.root / RUN.format(2) / "adapter/adapter.json"
    path.write_text('{"steps": 2}')
    change(record_path(path), outputs={path.name: {"digest": files.file_digest(path)}})


def copy_adapter(run):
    copy(run.root / RUN.format(1) / "adapter", run.root / RUN.format(2) / "adapter")


def other_comet(run):
    """COMET was trained again after it had scored."""
    path, former = run.root / "comet/comet.json", f"{finished.config()['results']}/comet/comet.json"
    files.write_text(path, "{}")
    Record("train_comet", former, {}, {}, {path.name: {"digest": files.file_digest(path)}}).write(record_path(path))
    change(run.root / RUN.format(2) / "matrix/scores.json", inputs={former: "a" * 32})


def draw_pairs_again(run):
    path = run.root / PAIRS
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    change(record_path(path), outputs={path.name: {"digest": files.file_digest(path)}})


def draw_sentences_again(run):
    path = run.root / "corpus/en-zh/test/grammar.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    change(record_path(path), outputs={path.name: {"digest": files.file_digest(path)}})


SET = f"{RUN.format(2)}/matrix"
EDITED = "was edited"
AGAIN = "was made again"
OTHER = "is older than the config: "
MANIPULATIONS = {
    "two seeds exchanged": (swap_seeds, "is a copy of"),
    "scores of another seed": (copy_scores, "is a copy of"),
    "rows of texts of another seed": (copy_rows, EDITED),
    "scores beside other texts": (scores_of_other_texts, AGAIN),
    "calls of a cell": (edit(f"{SET}/translations.json", '"calls": ', '"calls": 1'), EDITED),
    "the score of a sentence": (edit(f"{SET}/scores.jsonl", '"toy_comet": 0.8', '"toy_comet": 0.7'), EDITED),
    "a test set, drawn again": (draw_sentences_again, AGAIN),
    "training pairs, drawn again": (draw_pairs_again, AGAIN),
    "the adapter of another seed": (copy_adapter, "is a copy of"),
    "another adapter": (train_again, AGAIN),
    "another COMET": (other_comet, AGAIN),
    "an older grid": (other_params("translations.json", methods={"ev": {"ratios": [0.6], "score": "mean"}}), OTHER),
    "an adapter of other settings": (other_params("translations.json", made_from={"adapter": "a" * 16}), OTHER),
    "other settings of COMET": (other_params("scores.json", comet={"batch_size": 2}), OTHER),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files of the main table, made of what was not manipulated."""
    return list(finished.Run(tmp_path_factory.mktemp("made")).make(MAIN).values())


@pytest.mark.parametrize("name", MANIPULATIONS)
def test_no_table_is_made_of_what_was_manipulated(run, made, name):
    (run.root / "tables").mkdir(exist_ok=True)
    before = {Path(shutil.copy(path, run.root / "tables")): path.read_bytes() for path in made}
    manipulate, said = MANIPULATIONS[name]
    manipulate(run)
    with pytest.raises(InputError, match=said):
        run.make(MAIN)
    assert {path: path.read_bytes() for path in before} == before
    assert not list((run.root / "tables").glob(".*"))


def test_what_concerns_other_cells_does_not_matter(run, tmp_path):
    """The set is not finished, but the cells of this table are."""
    finished.Run(tmp_path, matrix={"steps": [4, 8, 16], "orders": ["med", "random"]}, tables={"studies": []}).make(MAIN)


def test_token_counts_that_were_edited_are_refused(run):
    run.make("tables/coverage")
    edit("en-zh/llada-tiny/tokens/grammar.jsonl", '"source_tokens": ', '"source_tokens": 1')(run)
    with pytest.raises(InputError, match=r"grammar\.jsonl was edited"):
        run.make("tables/coverage")


def test_results_may_be_moved(run, tmp_path):
    (tmp_path / "moved").mkdir()
    run.root.rename(tmp_path / "moved/results")
    assert "En→Zh" in finished.Run(tmp_path / "moved").text(MAIN)


def test_versions_of_the_code_are_told_below_the_table(run):
    change(run.root / SET / "translations.json", facts={"code": "e" * 32})
    assert "by 2 versions of the code" in run.text(MAIN) and "eeeeeeee" in run.text(MAIN)


# --- Cells that do not fit together, and what a header or rows lack.


@pytest.fixture
def second(run):
    """EV's cell of the second run of En→Zh."""
    return next(cell for cell in run.cells(MAIN) if (cell.method, cell.run.seed) == ("ev", 2))


def test_cells_decoded_differently_do_not_share_a_table(run, second):
    signature = run.entry(second, TRANSLATIONS)["signature"]
    run.put(second, TRANSLATIONS, signature=signature | {"decoder": "other"})
    with pytest.raises(InputError, match="decoder is other, but that of"):
        run.make(MAIN)


def test_an_adapter_does_not_count_as_two_runs(run):
    first, second = ([cell for cell in run.cells(MAIN) if cell.run.seed == seed] for seed in (1, 2))
    for one, other in zip(first, second, strict=True):
        run.put(other, TRANSLATIONS, signature=run.entry(one, TRANSLATIONS)["signature"])
    with pytest.raises(InputError, match=r"seed2/.*: has the same adapter as .*/seed1/"):
        run.make(MAIN)


@pytest.mark.parametrize("metric", ["toy_comet", "bleu"])
def test_cells_scored_differently_do_not_share_a_table(run, second, metric):
    run.put(second, SCORES, signatures=run.entry(second, SCORES)["signatures"] | {metric: "other"})
    with pytest.raises(InputError, match=rf"signature\.{metric} is other, but that of"):
        run.make(MAIN)


def test_a_header_that_does_not_have_a_cell_is_named(run, second):
    path = record_path(run.path(second, SCORES))
    header = files.read_json(path)
    header["facts"]["cells"] = [one for one in header["facts"]["cells"] if one["method"] != "ev"]
    files.write_json(path, {**header, "digest": files.digest({k: v for k, v in header.items() if k != "digest"})})
    with pytest.raises(InputError, match=r"scores\.json: has nothing of grammar ev med-T8\."):
        run.make(MAIN)
    path.unlink()
    with pytest.raises(InputError, match=r"scores\.json: file not found"):
        run.make(MAIN)


def test_rows_must_be_those_of_the_test_set(run, second):
    first, *rows = run.read(second, SCORES)
    run.put(second, SCORES, [{**first, "id": "t9"}, *rows])
    with pytest.raises(InputError, match="has not the sentences of other results"):
        run.make("tables/full_significance")
