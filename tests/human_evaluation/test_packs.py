"""Packs: which sentences, which slots, and that forms tell nothing of systems."""

import csv
import dataclasses
import io
import zipfile

import fake_ratings
import openpyxl
import pytest
from human_evaluation.conftest import SIZES, TEXTS, sentences
from hypothesis import given
from hypothesis import strategies as st
from run_rule import run_here
from scipy.stats import binomtest

from entropy_valley.errors import InputError
from entropy_valley.experiment.human_evaluation import forms, pack
from entropy_valley.experiment.human_evaluation.pack import BUCKETS, LANGUAGES, Pack, choose
from entropy_valley.texts import guarded, unguarded


def test_a_bucket_without_enough_sentences_names_its_key():
    none = sentences().assign(difference=lambda table: table["difference"].abs())
    problem = r"human_evaluation.sentences.second_best: 4 sentences are asked for, but .* has 0"
    with pytest.raises(InputError, match=problem):
        choose(none, SIZES, seed=1)


def test_the_slot_is_a_fair_coin_and_rows_are_shuffled():
    large = {bucket: 200 for bucket in BUCKETS}
    made, behind = pack.make(sentences(2000), "en-zh", large, seed=2)
    firsts = sum(row["a"] == "first" for row in behind)
    assert binomtest(firsts, len(behind)).pvalue > 0.01
    half = [row["bucket"] for row in behind[:400]]
    assert all(binomtest(half.count(bucket), 400, 0.25).pvalue > 0.001 for bucket in BUCKETS)
    assert [row.id for row in made.rows] == [row["id"] for row in behind]


def test_pack_and_mapping_are_read_as_written(made, tmp_path):
    made[0].write(tmp_path / "pack.json")
    pack.write_mapping(tmp_path / "mapping.json", made[0], "comet", made[1])
    read = pack.Pack.read(tmp_path / "pack.json")
    assert read == made[0]
    assert list(pack.read_mapping(tmp_path / "mapping.json").values()) == made[1]


class TestForms:
    def test_both_hold_the_same_texts_and_no_formula(self, made, tmp_path):
        forms.write_xlsx(tmp_path / "form.xlsx", made[0], "A")
        forms.write_csv(tmp_path / "form.csv", made[0])
        sheet = openpyxl.load_workbook(tmp_path / "form.xlsx")[forms.SHEET]
        cells = [[cell.value or "" for cell in row] for row in sheet.iter_rows()]
        assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
        text = (tmp_path / "form.csv").read_bytes().decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert rows[0] == cells[0] == list(forms.COLUMNS)
        assert [[unguarded(cell) for cell in row] for row in rows[1:]] == [
            row + [""] * (11 - len(row)) for row in cells[1:]
        ]
        assert not any(cell[:1] in "=+-@\t" for row in rows[1:] for cell in row if cell)

    def test_only_ratings_can_be_changed_and_only_to_values_of_the_scales(self, made, tmp_path):
        forms.write_xlsx(tmp_path / "form.xlsx", made[0], "A")
        sheet = openpyxl.load_workbook(tmp_path / "form.xlsx")[forms.SHEET]
        assert sheet.protection.sheet and sheet.freeze_panes == "B2"
        assert [cell.protection.locked for cell in sheet[2]] == [True] * 5 + [False] * 6
        lists = {str(rule.sqref): rule.formula1 for rule in sheet.data_validations.dataValidation}
        assert lists["F2:F17"] == '"1,2,3,4,5"' and lists["J2:J17"] == '"A,B,Tie"' and len(lists) == 5

    def test_nothing_tells_of_what_it_was_made(self, made, tmp_path):
        """Neither sentences nor buckets by their names."""
        forms.write_xlsx(tmp_path / "form.xlsx", made[0], "A")
        with zipfile.ZipFile(tmp_path / "form.xlsx") as parts:
            content = b"".join(map(parts.read, parts.namelist()))
        hidden = (*BUCKETS[:2], "difference", *(row["testset_id"] for row in made[1]))
        assert not [name for name in hidden if name.encode() in content]

    def test_characters_that_no_spreadsheet_holds(self, made, tmp_path):
        row = dataclasses.replace(made[0].rows[0], source="a\x00b\x0bc\ud800")
        forms.write_xlsx(tmp_path / "form.xlsx", dataclasses.replace(made[0], rows=(row,)), "A")
        sheet = openpyxl.load_workbook(tmp_path / "form.xlsx")[forms.SHEET]
        assert sheet["B2"].value == "a\ufffdb\ufffdc\ufffd"


@given(st.text(alphabet="=+-@\t\r'ab", max_size=6) | st.sampled_from(TEXTS))
def test_guarding_is_undone(text):
    assert unguarded(guarded(text)) == text
    assert guarded(text)[:1] not in ("=", "+", "-", "@", "\t", "\r")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("direction", ["en-zh", "en-xx"])
def test_guidelines_are_whole(made, direction, language):
    text = forms.guidelines(dataclasses.replace(made[0], direction=direction), language)
    assert "{" not in text and "16" in text and f"{direction}." in text
    assert "的" in text if language == "zh" or direction == "en-zh" else "measure word" not in text


# --- Packs and filled forms as jobs.


@pytest.fixture
def packed(tmp_path):
    """A pack that is there, as the rules read it."""
    fake_ratings.write_pack(tmp_path / "pack.json", tmp_path / "mapping.json")
    return {"pack": tmp_path / "pack.json", "mapping": tmp_path / "mapping.json"}


def rate(packed, *forms):
    """Run the job that reads filled forms."""
    how, out = {"folder": "human_evaluation"}, packed["pack"].with_name("ratings.jsonl")
    run_here("human_ratings", {"annotators": ["A"]}, {**packed, "forms": forms}, out, how)


def test_without_forms_it_says_what_to_do(packed):
    with pytest.raises(InputError, match=r"human_evaluation: has no filled form of en-zh. .*`snakemake packs`"):
        rate(packed)


def test_forms_in_which_no_row_is_rated_are_refused(packed, tmp_path):
    forms.write_csv(tmp_path / "en-zh.A.csv", Pack.read(packed["pack"]))
    with pytest.raises(InputError, match="human_evaluation: no row is rated in the forms of en-zh"):
        rate(packed, tmp_path / "en-zh.A.csv")
    assert not (tmp_path / "ratings.jsonl").exists()
