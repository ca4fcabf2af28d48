"""Our pages in a real browser without a network: the form of annotators, the matrix, the sentences of a test set."""

from pathlib import Path

import fake_chain
import pytest
from browsing import cut_off, opening, unnamed
from finished import METRIC, Run, config
from job_lists import jobs_of

from entropy_valley.experiment.cli import audit
from entropy_valley.experiment.human_evaluation import forms
from entropy_valley.experiment.human_evaluation.intake import read_forms
from entropy_valley.experiment.runs.audit import Audit
from entropy_valley.experiment.tables import pages
from entropy_valley.results import SCORES, TRANSLATIONS


@pytest.fixture
def opened(browser, made, tmp_path):
    """The form of an annotator."""
    path = tmp_path / "en-zh.A.html"
    forms.write_page(path, made[0], "A")
    with opening(browser, path) as tab:
        yield tab


def fill(tab, values):
    """Rate the sentence that is shown by keys, then go on."""
    for value in values[:4]:
        tab.keyboard.press(value)
    tab.keyboard.press(values[4][0].lower())
    if values[5]:
        tab.fill("#notes", values[5])
        tab.focus("#place")
    tab.keyboard.press("n")


def saved(tab, folder):
    with tab.expect_download() as download:
        tab.click("#export")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_filled_by_keys_reloaded_midway_and_saved_as_the_form(opened, made, filled, tmp_path):
    rows = made[0].rows
    for row in rows[:8]:
        fill(opened, filled[row.id])
    opened.reload()
    opened = opened.context.new_page()  # as after the tab was closed
    opened.goto((tmp_path / "en-zh.A.html").as_uri())
    assert opened.text_content("#state").startswith(f"8 of {len(rows)} rated, about")
    assert opened.text_content("#place") == f"Sentence 9 of {len(rows)} ({rows[8].id})"
    for row in rows[8:-1]:
        fill(opened, filled[row.id])
    path = saved(opened, tmp_path)
    assert path.name == "en-zh.A.csv"
    forms.write_csv(tmp_path / "expected.csv", made[0], filled)
    assert path.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert [rating.id for rating in read_forms([path], made[0], ["A"])["A"]] == list(filled)


def test_texts_are_shown_as_they_are(opened, made):
    """Markup and scripts within a sentence stay text."""
    for number, row in enumerate(made[0].rows):
        opened.click(f"#rows li:nth-child({number + 1}) button")
        shown = [opened.text_content(f"#{name}") for name in ("source", "reference", "system-A", "system-B")]
        assert shown == list(forms.texts(row)[1:])


def test_a_file_is_taken_back_in_and_a_wrong_one_is_not(opened, made, filled, tmp_path):
    forms.write_csv(tmp_path / "en-zh.A.csv", made[0], filled)
    opened.set_input_files("#import", tmp_path / "en-zh.A.csv")
    opened.locator("#said", has_text="Took").wait_for()
    assert f"{len(filled)} of {len(made[0].rows)}" in opened.text_content("#state")
    assert saved(opened, tmp_path).read_bytes() == (tmp_path / "en-zh.A.csv").read_bytes()
    text = (tmp_path / "en-zh.A.csv").read_text("utf-8").replace(made[0].code, "ffffff")
    (tmp_path / "wrong.csv").write_text(text, encoding="utf-8")
    opened.set_input_files("#import", tmp_path / "wrong.csv")
    opened.locator("#said", has_text="is no sentence of this pack").wait_for()
    assert f"{len(filled)} of {len(made[0].rows)}" in opened.text_content("#state")


def test_every_control_has_a_name_and_nothing_is_cut_off(opened):
    """What a screen reader says of each control; narrow screens."""
    assert unnamed(opened) == 0
    legends = opened.eval_on_selector_all("fieldset legend", "all => all.map(one => one.textContent)")
    assert legends == ["Adequacy of A", "Fluency of A", "Adequacy of B", "Fluency of B", "Preference"]
    assert cut_off(opened, 1280, 768, 640, 360) == []


HOSTILE = "</script><script>alert(1)</script> \u202e<b>#PRS_ORG#</b> {{ data }} 5"
PAIRS = [(HOSTILE, "请给我一张纸。"), ("Take 5 of 12.", "Take 5 and go."), *[("Go.", "走。")] * 40]
OUTPUTS = {
    "oracle": [("请给我一张纸。", 0.9)] * 42,
    "ratio": [(HOSTILE, 0.5), ("Take and stay now.", 0.4), *[("走吧。", 0.3)] * 40],
    "ev": [("请给他一张纸。", 0.4), ("Take 5 and go.", 0.9), *[("走。", 0.31)] * 40],
}


def page(folder, pairs, outputs):
    """The page of these systems, by method, and of a beam search whose outputs are the references."""
    methods = [name for name in config()["matrix"]["methods"] if name in outputs]
    run = Run(folder, pages={"methods": methods, "backbones": ["llada-tiny", "llama3-tiny"]})
    systems = {**outputs, "beam4": [(y, 0.5) for _, y in pairs]}
    shown = pages.cells(run.experiment)["en-zh", "grammar"]
    names = [f"test-{number}" for number in range(len(pairs))]
    rows = [{"id": name, "source": x, "target": y} for name, (x, y) in zip(names, pairs, strict=True)]
    run.replace(run.root / f"corpus/{shown[0].direction}/test/{shown[0].testset}.jsonl", rows)
    for cell in shown:
        ev = cell.method == "ev"
        grid = {"candidates": [6, 5, 8], "scores": [0.25, 0.5, 0.75]} if ev else {"candidates": [6], "scores": []}
        chosen = {} if cell.autoregressive else {"canvas": {"length": 6, **grid}}
        given = list(zip(names, systems[cell.method], strict=True))
        texts = [{"id": name, "hypothesis": text, "length": 6, "tokens": [1], **chosen} for name, (text, _) in given]
        run.put(cell, TRANSLATIONS, texts)
        run.put(cell, SCORES, [{"id": name, METRIC: score, "chrf": 100 * score} for name, (_, score) in given])
    return run.make_page(("en-zh", "grammar"))


def leads(tab):
    return tab.eval_on_selector_all("article", "all => all.map(one => one.dataset.id)")


def test_sentences_are_found_compared_and_linked(browser, tmp_path):
    with opening(browser, page(tmp_path, PAIRS, OUTPUTS)) as tab:
        assert leads(tab)[0] == "test-1"  # EV's largest lead over Ratio
        tab.select_option("#sort", "file")
        shown = tab.eval_on_selector_all("article:first-child bdi", "all => all.map(one => one.textContent)")
        assert shown == [*PAIRS[0], *(texts[0][0] for texts in OUTPUTS.values())]  # as they are, marked or not
        assert tab.get_attribute("article:first-child .unseen", "data-code") == "U+202E"
        assert tab.eval_on_selector_all(
            "article:first-child tr:last-child mark", "all => all.map(one => one.textContent)"
        ) == ["他"]
        ratio = tab.locator("article").nth(1).locator("tr", has_text="Ratio")
        assert (
            ratio.locator("mark").all_text_contents() == ["stay now"]
            and ratio.locator(".gap").get_attribute("title") == "missing: 5 "
        )
        assert "5 slots: 0.500, 6 slots: 0.250, 8 slots: 0.750. Chosen: 6. Reference: 6" in tab.text_content(
            "article:first-child svg title"
        )
        assert tab.text_content("#count") == "1–20 of 42 sentences; mean of A − B: 0.0190 toy COMET"

        tab.select_option("#kind", label="placeholder")
        tab.select_option("#by", "onlya")
        assert leads(tab) == ["test-0"] and "✗ lost placeholder: #PRS_ORG#" in tab.text_content("article")
        address = tab.url
        tab.click("#clear")
        tab.select_option("#category", label="numbers")
        assert leads(tab) == ["test-1"]  # a placeholder comes before a number
        tab.goto(address)
        assert leads(tab) == ["test-0"]  # a view has an address, too

        tab.goto(tab.url.split("#")[0] + "#s=test-41")
        assert tab.evaluate("document.activeElement.dataset.id") == "test-41" and len(leads(tab)) == 2
        tab.keyboard.press("k")
        assert leads(tab)[0] == "test-21"
        assert cut_off(tab, 1280, 768, 360) == []


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """The audit's page of the demo's main backbone; one set was scored by other settings, and one failed."""
    monkeypatch.chdir(tmp_path)
    mine = {
        "matrix": {"backbones": ["llada-tiny"], "directions": ["en-zh", "en-de"], "methods": ["oracle", "ratio", "ev"]}
    }
    jobs = fake_chain.write(jobs_of(mine, "config/demo.yaml"))
    Path("results/demo/en-zh/llada-tiny/seed1/matrix/scores.jsonl").write_text("")
    Path("results/demo/en-zh/llada-tiny/seed2/matrix/scores.jsonl").unlink()
    Path("results/demo/logs/score/en-zh.llada-tiny.seed2.matrix.log").write_text("error: <b>no space</b>\n")
    audit.write("results/demo", audit.frame(Audit(jobs).cells()))
    return tmp_path / "results/demo/audit/matrix.html"


def signs(tab):
    return "".join(tab.locator("#grid td").all_text_contents())


def test_the_matrix_says_each_state_by_a_sign_and_on_a_click_why(browser, audited):
    with opening(browser, audited) as tab:
        assert tab.locator("#states li").all_text_contents() == ["✓12done", "↻3stale", "·3missing"]
        assert sorted(signs(tab)) == sorted("✓" * 12 + "↻" * 3 + "·" * 3)
        tab.locator("#grid td.missing").last.click()
        said = tab.text_content("#details")
        assert "missing: llada-tiny · en-zh · grammar · 2 · ev · med · 32" in said
        assert "score: error: <b>no space</b>" in said
        assert tab.locator("#details a").get_attribute("href") == "../logs/score/en-zh.llada-tiny.seed2.matrix.log"
        address = tab.url
        tab.goto(address)
        assert tab.text_content("#details") == said

        tab.click("#states [data-state=stale]")
        assert signs(tab) == "↻" * 3 and tab.text_content("#count") == "3 of 18 cells"
        tab.click("#clear")
        tab.select_option("[data-name=method]", "ev")
        tab.fill("#words", "space")
        assert signs(tab) == "·" and tab.text_content("#count") == "1 of 18 cells"
        assert cut_off(tab, 1280, 768, 360) == []
