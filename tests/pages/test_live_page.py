"""The live page: its decoder in JavaScript against the workflow's, by node; and the page in a browser."""

from __future__ import annotations

import os
import shutil

import live_run
import pytest
from browsing import cut_off, opening

from entropy_valley.errors import InputError
from entropy_valley.experiment.tables import live

SENTENCES = 200 if os.environ.get("ENTROPY_VALLEY_NIGHTLY") else 3
ROUNDING = {"ev": 1e-4, "ev_fit": 2e-3}  # nats: 32-bit sums against 64-bit ones; EV fit multiplies them by its weights


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return live_run.demo(tmp_path_factory.mktemp("live") / "results", SENTENCES)


@pytest.fixture(scope="module")
def page(run):
    return live_run.write(run)


@pytest.fixture(scope="module")
def by_node(page):
    """What the page's code says to requests."""
    if not shutil.which("node"):
        pytest.skip("no node on this machine")
    return lambda requests: live_run.answers(page, requests)


def test_its_canvases_and_texts_are_those_of_the_workflow(run, by_node):
    for direction, cells in live.cells(run).items():
        expected = {cell.method: live_run.translated(run, cell) for cell in cells}
        sources = list(expected["ev"])
        assert len(sources) == SENTENCES
        requests = [{"direction": direction, "source": source} for source in sources]
        for source, answer in zip(sources, by_node(requests), strict=True):
            assert [choice["method"] for choice in answer["choices"]] == list(live.METHODS)
            for choice, translated in zip(answer["choices"], answer["texts"], strict=True):
                row = expected[choice["method"]][source]
                canvas = row["canvas"]
                assert (choice["length"], choice["candidates"]) == (canvas["length"], canvas["candidates"]), row
                rounding = ROUNDING.get(choice["method"])
                assert choice["scores"] == pytest.approx(canvas["scores"], abs=rounding), row
                assert (translated["tokens"], translated["text"]) == (row["tokens"], row["hypothesis"]), row


TEXTS = [
    "It's 7 o'clock: we'll go,  and  then\tstop.\n",
    "  two blanks, no-break\u00a0space, next\u0085line, \ufeffmark, wide\u3000space ",
    "héllo Wörld 東京 🙂🇫🇷 e\u0301 ½ Ⅷ ٣",
    "<|endoftext|> spells no token, nor does <|mdm_mask|>",
    "#PRS_ORG# ''' ---- \\x00 \x00\x7f",
]


def test_its_tokenizer_is_the_checkpoints(by_node):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(live_run.GRAMMAR.checkpoint / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    for text, answer in zip(TEXTS, by_node([{"text": text} for text in TEXTS]), strict=True):
        assert answer == {"tokens": tokenizer.encode(text, add_special_tokens=False).ids, "text": text}


@pytest.mark.parametrize(
    ("lengths", "worth"),
    [
        ({}, True),
        ({"ev": 5, "ev_fit": 5}, False),  # at the edge of EV's grid
        ({"ev_fit": 9}, False),  # a length beside the grid is better by EV fit
        ({"ratio": 6}, False),
        ({"ratio_eos": 6}, False),
    ],
)
def test_the_first_sentence_shows_what_ev_does(lengths, worth):
    lengths = {"ratio": 4, "ratio_eos": 5, "ev": 6, "ev_fit": 6, **lengths}
    canvases = {method: {"length": length, "candidates": [5, 6, 8]} for method, length in lengths.items()}
    assert live.worth_seeing(canvases) is worth


def test_it_holds_the_model_and_is_small(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 4e6 and "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in text


def test_a_config_whose_model_is_too_large_for_a_page_is_refused(run):
    large = run.model_copy(update={"tables": run.tables.model_copy(update={"backbone": "llada-8b"})})
    with pytest.raises(InputError, match="LLaDA-8B-Base is not a tiny model"):
        live.inputs(large)


@pytest.fixture
def tab(browser, page):
    """The page, when it has translated its first sentence; with reduced motion nothing moves by itself."""
    with opening(browser, page, reduced_motion="reduce") as tab:
        yield wait(tab)


def wait(tab):
    """Wait until all is computed that was asked for last."""
    tab.wait_for_function("document.getElementById('status').textContent.includes('source tokens')")
    return tab


def shown(tab):
    """The text of each method, "" before it is finished, and the number of masked slots."""
    return {
        canvas.get_attribute("data-method"): (
            canvas.locator(".text:not(.waiting) bdi").all_text_contents() or [""],
            canvas.locator(".masked").count(),
        )
        for canvas in tab.locator("[data-method]:not([data-method=''])").all()
    }


def test_it_shows_every_step_of_what_the_workflow_has(run, tab):
    cells = live.cells(run)["en-zh"]
    rows = {cell.method: live_run.translated(run, cell)[tab.input_value("#source")] for cell in cells}
    assert tab.input_value("#step") == tab.get_attribute("#step", "max")
    tab.focus("#step")
    tab.keyboard.press("Home")
    assert shown(tab) == {method: ([""], row["length"]) for method, row in rows.items()}
    tab.keyboard.press("ArrowRight")
    assert shown(tab) == {method: ([""], row["length"] - 1) for method, row in rows.items()}
    tab.keyboard.press("End")
    assert shown(tab) == {method: ([row["hypothesis"]], 0) for method, row in rows.items()}
    chosen = tab.locator(".chosen .length").all_text_contents()
    lengths = sorted({rows[method]["length"] for method in ("ev", "ev_fit")})
    assert [int(text.split()[0]) for text in chosen] == lengths
    outside = {int(text.split()[0]) for text in tab.locator(".outside .length").all_text_contents()}
    assert outside.isdisjoint({*rows["ev"]["canvas"]["candidates"], *lengths})
    assert outside | {*lengths} >= {*rows["ev_fit"]["canvas"]["candidates"]} - {*rows["ev"]["canvas"]["candidates"]}
    tab.click("#play")
    tab.wait_for_function("document.getElementById('play').textContent === 'Play'")
    assert tab.input_value("#step") == tab.get_attribute("#step", "max")


def test_a_text_of_ones_own_and_what_it_cannot_translate(tab):
    assert tab.locator("#canvases h3", has_text="Reference").count() == 1
    tab.fill("#source", "Delete the message.")
    tab.keyboard.press("Enter")
    tab.wait_for_function("!document.getElementById('canvases').textContent.includes('Reference')")
    wait(tab)
    assert tab.input_value("#sentence") == "" and "删除消息。" in tab.text_content("[data-method=ev_fit]")
    for text, error in (("", "Write a text"), ("word " * 300, "too many for this model")):
        tab.fill("#source", text)
        tab.click("button[type=submit]")
        tab.locator("#status.error", has_text=error).wait_for()
    tab.select_option("#direction", "zh-en")
    assert tab.get_attribute("#source", "lang") == "zh" and "。" in wait(tab).input_value("#source")


def test_it_can_be_used_by_keyboard_on_a_phone_and_in_the_dark(browser, page):
    with opening(browser, page, color_scheme="dark") as tab:
        wait(tab)
        tab.wait_for_function("document.getElementById('step').value > 0")  # it plays by itself
        unnamed = "[...document.querySelectorAll('button, input, select')].filter(one => "
        unnamed += "!(one.labels?.length || one.textContent || one.getAttribute('aria-label'))).length"
        assert tab.evaluate(unnamed) == 0
        order = []
        for _ in range(7):
            tab.keyboard.press("Tab")
            order.append(tab.evaluate("document.activeElement.id || document.activeElement.textContent"))
        assert order == ["direction", "sentence", "next", "source", "Translate", "play", "step"]
        dark = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))"
        assert tab.evaluate(dark) < 64
        assert cut_off(tab, 1280, 768, 640, 360) == []
        badges = tab.locator(".badge").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        numbers = tab.locator(".probe:not(.head) .number").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().left)"
        )
        assert max(badges) <= min(numbers)  # on the narrowest of these
