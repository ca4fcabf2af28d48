"""The page for annotators, in a real browser without a network: fill in, reload, save, take a file back in."""

from __future__ import annotations

import shutil

import pytest

from entropy_valley.human_evaluation import forms, page
from entropy_valley.human_evaluation.intake import read_forms

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, made, tmp_path):
    """The page, opened from its file; requests and errors of it are failures."""
    path = tmp_path / "en-zh.A.html"
    page.write(path, made[0], "A")
    context = browser.new_context(accept_downloads=True, offline=True, viewport={"width": 1280, "height": 900})
    tab, troubles = context.new_page(), []
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("request", lambda request: troubles.append(request.url) if request.url[:4] == "http" else None)
    tab.goto(path.as_uri())
    yield tab
    context.close()
    assert troubles == []


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


def test_every_control_has_a_name_and_can_be_reached(opened):
    """What a screen reader says of each control; and all radio groups by the Tab key, in order."""
    unnamed = opened.evaluate(
        "[...document.querySelectorAll('button, input, textarea')].filter("
        "one => !(one.labels?.length || one.textContent || one.getAttribute('aria-label'))).length"
    )
    assert unnamed == 0
    legends = opened.eval_on_selector_all("fieldset legend", "all => all.map(one => one.textContent)")
    assert legends == ["Adequacy of A", "Fluency of A", "Adequacy of B", "Fluency of B", "Preference"]
    opened.focus("#place")
    reached = []
    for _ in range(6):
        opened.keyboard.press("Tab")
        reached.append(
            opened.evaluate("document.activeElement.closest('fieldset')?.dataset.name || document.activeElement.id")
        )
    assert reached == [*forms.RATINGS, forms.PREFERENCE, "notes"]


@pytest.mark.parametrize("width", [1280, 768, 640, 360])
def test_nothing_is_cut_off_on_narrow_screens(opened, width):
    """640 pixels are also what 1280 are at a zoom of 200 %."""
    opened.set_viewport_size({"width": width, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
