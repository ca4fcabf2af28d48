"""One job translates with all cells of a set: it loads the model once, and writes what each cell has alone."""

import dataclasses
import shutil

import pytest
from bench import LEDGERS, killed_at_the_sixth_result
from tiny_checkpoints import SOURCES

from entropy_valley import files, results
from entropy_valley.errors import InputError
from entropy_valley.results import TRANSLATIONS, System, read_record
from entropy_valley.translation import translations
from entropy_valley.translation.job import Execution

BASE = {
    **{"family": "llada", "prompt": "Say: {src}\nIn German: ", "bos": False, "shifted": False},
    **{"precision": "float32", "revision": 1, "direction": "en-de"},
}
GRID = {"ratios": [0.6, 0.8, 1.0]}
METHODS = {
    "oracle": {},
    "ratio": {"ratios": 1.2, "reserve_eos_slot": True},
    "ev": GRID,
    "adaptive_ev": GRID,
    "neighbours": GRID | {"radius": 1},
    "ev_fit": {"candidates": 3, "pairs": 5},
    "length_head": {"beam": 2},
    "daedal": {"ratios": 1.2, "eos_window": 1, "cap": 24},
    "reassigned": {"of": "ev", "seed": 1, "within": "all"},
}
ORDERS = {
    "med": {},
    "random": {"seed": 3},
    "sig_first": {},
    "reverse_sig": {"sig": "stepwise_kl"},
    "daedal": {"eos_window": 1, "cap": 24},
    "rho_eos": {"cap": 24},
}
SYSTEMS = [
    *((method, "med", 4) for method in METHODS),
    ("ev", "med", 6),
    ("ev", "random", 4),
    ("reassigned", "random", 4),
    ("ratio", "sig_first", 4),
    ("ev", "reverse_sig", 4),
    ("daedal", "daedal", 4),
    ("ratio", "rho_eos", 4),
]
TESTS = ("large", "small")
CELLS = [System(testset, *system) for testset in TESTS for system in SYSTEMS]
HEAD = {"pairs": 9, "epochs": 2, "learning_rate": 0.1, "batch": 4, "longest": 12}
FITS = {
    "length_statistics": {"parts": ["line"]},
    "learned": BASE | {"methods": {"ev_fit": METHODS["ev_fit"]}},
    "length_head": BASE | {"seed": 1, "training": HEAD},
}


def spec_of(cells=CELLS, fits=FITS, methods=METHODS, orders=ORDERS):
    """The params of a set; it has the settings of more methods and orders than these cells need."""
    orders = {name: {"order": name, "order_settings": settings} for name, settings in orders.items()}
    shared = {"methods": methods, "orders": orders, "schedule": "llada", "made_from": {"adapter": "a digest"}}
    return {**BASE, **shared, "cells": list(map(list, cells)), **({"fits": fits} if fits else {})}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A corpus, whose training pairs are the dev pairs too, and two test sets that share sentences."""
    folder = tmp_path_factory.mktemp("data")
    texts = {"large": (SOURCES[::4], SOURCES[::-1]), "small": (SOURCES[::8], SOURCES[2:])}
    texts |= dict.fromkeys(("train", "dev"), (SOURCES[::3], SOURCES[::-2]))
    for name, (sources, targets) in texts.items():
        pairs = enumerate(zip(sources, targets, strict=False))
        rows = [{"id": f"{name}{n}", "source": source, "target": target} for n, (source, target) in pairs]
        files.write_jsonl(folder / f"{name}.jsonl", rows)
    return folder


class Set:
    """Translates with cells in a folder, whose store is shared."""

    def __init__(self, folder, data, checkpoint):
        self.folder, self.data = folder, data
        self.execution = Execution(checkpoint, corpus=data, store=folder / "store")

    def write(self, name, spec=None, testsets=TESTS):
        """Rows and entries by cell, of the set with this name."""
        self.out, spec = self.folder / name / TRANSLATIONS, spec or spec_of()
        translations.write(spec, self.execution, [self.data / f"{name}.jsonl" for name in testsets], self.out)
        return self.found(spec)

    def found(self, spec):
        cells = [System(*cell) for cell in spec["cells"]]
        assert list(results.systems(self.out)) == cells
        return {
            cell: (results.systems(self.out)[cell], results.entries(results.record_path(self.out))[cell])
            for cell in cells
        }

    @property
    def ledgers(self):
        return LEDGERS[self.execution.store]

    def keys(self):
        """Of all results in the store, each with its folder: probes of training pairs have their own."""
        shards = self.execution.store.rglob("*.jsonl")
        return [(shard.parent, line[:40]) for shard in shards for line in shard.read_text().splitlines()]


@pytest.fixture
def fresh(tmp_path, data, checkpoints):
    return Set(tmp_path, data, checkpoints / "llada")


@pytest.fixture(scope="module")
def together(tmp_path_factory, data, checkpoints):
    """After one job for all cells: what it has written."""
    translated = Set(tmp_path_factory.mktemp("together"), data, checkpoints / "llada")
    return translated, translated.write("all")


def test_one_load_translates_with_every_cell_as_each_alone_without_a_store(together, fresh):
    """Every system alone, on one test set or the other."""
    translated, whole = together
    fresh.execution = dataclasses.replace(fresh.execution, store=None)
    half = len(SYSTEMS)
    for cell in CELLS[:half:2] + CELLS[half + 1 :: 2]:
        assert fresh.write("alone", spec_of([cell]), [cell.testset]) == {cell: whole[cell]}
    assert [ledger["loads"] for ledger in translated.ledgers] == [1]


def test_the_header_says_what_it_was_made_from(together):
    translated, whole = together
    header = files.read_json(translated.out.with_suffix(".json"))
    assert header["rule"] == "translate" and header["params"] == spec_of()
    read = [str(translated.data / f"{name}.jsonl") for name in (*TESTS, "train", "dev")]
    assert set(read) < set(header["inputs"])
    assert header["inputs"][str(translated.execution.backbone)] == whole[CELLS[0]][1]["signature"]["backbone_digest"]
    assert header["facts"]["fits"].keys() == FITS.keys()
    row = results.systems(translated.out)[System("small", "ev", "med", 4)][0]
    assert row["canvas"].keys() == {"length", "candidates", "scores", "calls", "slots"}
    assert row["canvas"]["length"] == row["length"] and "id" in row


def test_nothing_is_computed_twice_and_again_no_model_is_loaded(together, no_model):
    translated, whole = together
    keys = translated.keys()
    assert len(keys) == len(set(keys)) == translated.ledgers[0]["computed"]
    no_model()
    assert translated.write("again") == whole and translated.ledgers[-1]["computed"] == 0


def test_two_shards_at_once_are_the_whole(together, fresh, no_model):
    """Fits and the canvases that are dealt are each shard's own. Their merging has no model and reads no store: another
    node may not see its new files yet."""
    translated, _ = together
    testsets = [fresh.data / f"{name}.jsonl" for name in TESTS]
    paths = [fresh.folder / "shards" / f"{number}of2.jsonl" for number in range(2)]
    for path in paths:
        translations.write_shard(spec_of(), fresh.execution, testsets, path)
    assert [ledger["loads"] for ledger in fresh.ledgers] == [1, 1]
    computed = [ledger["computed"] for ledger in fresh.ledgers]
    assert computed[0] > computed[1] > len(fresh.keys()) / 4
    out, elsewhere = fresh.folder / TRANSLATIONS, dataclasses.replace(fresh.execution, store=fresh.folder / "empty")
    no_model()
    translations.write(spec_of(), elsewhere, testsets, out, paths)
    assert out.read_bytes() == translated.out.read_bytes()
    merged, whole = (files.read_json(path.with_suffix(".json"))["facts"] for path in (out, translated.out))
    assert merged["cells"] == whole["cells"] and merged["fits"] == whole["fits"]


def test_more_shards_than_sentences_are_the_whole(together, fresh):
    translated, _ = together
    testsets = [fresh.data / f"{name}.jsonl" for name in TESTS]
    count = len(files.read_jsonl(testsets[0])) + 1
    paths = [fresh.folder / "shards" / f"{number}of{count}.jsonl" for number in range(count)]
    for path in paths:
        translations.write_shard(spec_of(), translated.execution, testsets, path)
    assert not paths[-1].read_bytes()
    translations.write(spec_of(), fresh.execution, testsets, fresh.folder / TRANSLATIONS, paths)
    assert (fresh.folder / TRANSLATIONS).read_bytes() == translated.out.read_bytes()


@pytest.fixture
def sharded(fresh):
    """Two shards of a small set: the folder, its spec, and a function that puts them together."""
    cells = [System("small", method, "med", 4) for method in ("ratio", "ev")]
    spec, testset = spec_of(cells, {}), fresh.folder / "small.jsonl"
    shutil.copyfile(fresh.data / "small.jsonl", testset)
    fresh.paths = [fresh.folder / "shards" / f"{number}of2.jsonl" for number in range(2)]
    for path in fresh.paths:
        translations.write_shard(spec, fresh.execution, [testset], path)
    fresh.spec, fresh.testset, fresh.out = spec, testset, fresh.folder / TRANSLATIONS
    fresh.merge = lambda: translations.write(spec, fresh.execution, [testset], fresh.out, list(map(str, fresh.paths)))
    return fresh


def of_another_seed(one):
    """Both files of a shard of another adapter, in the place of the second one."""
    other = one.spec | {"made_from": {"adapter": "that of seed 2"}}
    translations.write_shard(other, one.execution, [one.testset], one.paths[1])


def without_a_header(one):
    one.paths[1].with_name("1of2.made.json").unlink()


def with_a_record_that_fits(change):
    """A manipulation, and then a digest in the record that hides it: the ids are still compared."""

    def manipulate(one):
        text = change(one.paths[1].read_text())
        one.paths[1].write_text(text)
        place = one.paths[1].with_name("1of2.made.json")
        outputs = {"1of2.jsonl": {"digest": files.file_digest(one.paths[1])}}
        dataclasses.replace(read_record(place), outputs=outputs).write(place)

    return manipulate


@pytest.mark.parametrize(
    ("manipulate", "problem"),
    [
        (of_another_seed, r"1of2\.jsonl: was made with other params: made_from\.adapter: .*seed 2"),
        (without_a_header, r"1of2\.jsonl: has no header"),
        (
            with_a_record_that_fits(lambda text: text.replace('"small3"', '"small5"')),
            r"1of2\.jsonl: small ratio med-T4: id 'small5' where 'small3' is due",
        ),
    ],
)
def test_what_does_not_belong_is_not_put_together(sharded, manipulate, problem):
    manipulate(sharded)
    with pytest.raises(InputError, match=problem):
        sharded.merge()
    assert not sharded.out.exists()


def test_a_killed_job_goes_on_where_it_was(together, fresh, monkeypatch):
    translated, whole = together
    with killed_at_the_sixth_result(monkeypatch):
        fresh.write("all")
    assert not fresh.out.exists()
    assert fresh.write("all") == whole
    assert fresh.ledgers[-1]["computed"] == translated.ledgers[0]["computed"] - 5


def test_a_sentence_that_fails_ends_the_job_and_nothing_is_written(fresh):
    rows = files.read_jsonl(fresh.data / "small.jsonl")
    fresh.data = fresh.folder
    bad = {"id": "bad", "source": "the old red car " * 40, "target": "it"}
    files.write_jsonl(fresh.folder / "long.jsonl", [*rows, bad])
    cells = [System("long", *system) for system in SYSTEMS]
    with pytest.raises(InputError, match=r"long\.jsonl: sentence 'bad': prompt"):
        fresh.write("both", spec_of(cells), ["long"])
    assert not fresh.out.exists()
