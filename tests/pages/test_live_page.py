"""The live page: its decoder in JavaScript against Translator, by node; and the page in a browser."""

import dataclasses
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from browsing import cut_off, opening, unnamed

from entropy_valley import Translator, make_method
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.config.methods import method_settings
from entropy_valley.experiment.tables import live
from entropy_valley.shipped import HUMAN, newcomer_sentences

SCRIPT = Path(__file__).with_name("translate_by_page.js")
SENTENCES = None if os.environ.get("ENTROPY_VALLEY_NIGHTLY") else 2  # of each direction; None: all
METHODS = {"Ratio": "ratio", "Ratio + EOS": "ratio_eos", "EV": "ev"}  # from top to bottom, and their names in configs


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / live.NAME
    live.write(path)
    return path


TEXTS = [
    "It's 7 o'clock: we'll go,  and  then\tstop.\n",
    "  two blanks, no-break\u00a0space, next\u0085line, \ufeffmark, wide\u3000space ",
    "héllo Wörld 東京 🙂🇫🇷 e\u0301 ½ Ⅷ ٣",
    "<|endoftext|> spells no token, nor does <|mdm_mask|>",
    "#PRS_ORG# ''' ---- \\x00 \x00\x7f",
]


@pytest.fixture(scope="module")
def by_node(page):
    """What the page's code says to sentences of each direction and to texts, by what is asked."""
    if not shutil.which("node"):
        pytest.skip("no node on this machine")
    asked = [(direction, source) for direction in HUMAN.ratios for source in sentences(direction)]
    requests = [{"direction": direction, "source": source} for direction, source in asked]
    requests += [{"text": text} for text in TEXTS]
    lines = "\n".join(map(json.dumps, requests))
    done = subprocess.run(["node", SCRIPT, page], input=lines, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    answers = map(json.loads, done.stdout.rstrip("\n").split("\n"))
    return dict(zip([*asked, *TEXTS], answers, strict=True))


def sentences(direction):
    return newcomer_sentences(direction[:2])[:SENTENCES]


@functools.cache
def translators(direction):
    """A translator for each method of the page, with the settings of the model's config."""
    experiment = load_files([*base_files(), HUMAN.config])
    ev = Translator.load(**HUMAN.arguments(direction))
    settings = {label: method_settings(experiment, name, direction) for label, name in METHODS.items()}
    assert settings["Ratio"]["ratios"] == HUMAN.ratios[direction][2]  # where the page takes it from
    return {
        label: dataclasses.replace(ev, method=make_method(settings[label].get("method", name), settings[label]))
        for label, name in METHODS.items()
    }


@pytest.mark.parametrize("direction", HUMAN.ratios)
def test_its_canvases_and_texts_are_those_of_the_library(direction, by_node):
    sources = sentences(direction)
    expected = {label: one.translate(sources) for label, one in translators(direction).items()}
    for number, source in enumerate(sources):
        answer = by_node[direction, source]
        by_method = {label: translations[number] for label, translations in expected.items()}
        assert answer["texts"] == {label: one.text for label, one in by_method.items()}, source
        lengths = {choice["method"]: choice["length"] for choice in answer["choices"]}
        assert lengths == {label: one.canvas for label, one in by_method.items()}, source
        # 32-bit sums against 64-bit ones.
        means = {probe["length"]: probe["mean"] for probe in answer["probes"]}
        assert means == pytest.approx(by_method["EV"].scores, abs=1e-4), source


def test_its_tokenizer_is_the_checkpoints(by_node):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(HUMAN.checkpoint / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    for text in TEXTS:
        assert by_node[text] == {"tokens": tokenizer.encode(text, add_special_tokens=False).ids, "text": text}


def test_it_holds_the_model_and_is_small(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 14e6 and "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in text


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
        for canvas in tab.locator("[data-method]").all()
    }


def test_it_shows_every_step_of_what_the_library_has(tab):
    source = tab.input_value("#source")
    expected = {label: one.translate([source])[0] for label, one in translators("en-de").items()}
    assert tab.input_value("#step") == tab.get_attribute("#step", "max")
    tab.focus("#step")
    tab.keyboard.press("Home")
    assert shown(tab) == {label: ([""], one.canvas) for label, one in expected.items()}
    tab.keyboard.press("ArrowRight")
    assert shown(tab) == {label: ([""], one.canvas - 1) for label, one in expected.items()}
    tab.keyboard.press("End")
    assert shown(tab) == {label: ([one.text or "(no text)"], 0) for label, one in expected.items()}
    lengths = tab.locator(".probe:not(.head) .length").all_text_contents()
    assert [int(text.split()[0]) for text in lengths] == list(expected["EV"].scores)
    chosen = tab.locator(".chosen .length").all_text_contents()
    assert [int(text.split()[0]) for text in chosen] == [expected["EV"].canvas]
    tab.click("#play")
    tab.wait_for_function("document.getElementById('play').textContent === 'Play'")
    assert tab.input_value("#step") == tab.get_attribute("#step", "max")


def test_a_text_of_ones_own_and_what_it_cannot_translate(tab):
    own = "Where is my book?"
    tab.fill("#source", own)
    tab.keyboard.press("Enter")
    tab.wait_for_function("!document.getElementById('status').textContent.includes('source tokens')")
    wait(tab)
    expected = translators("en-de")["EV"].translate([own])[0].text
    assert tab.input_value("#sentence") == "" and tab.text_content("[data-method=EV] bdi") == expected
    for text, error in (("", "Write a text"), ("word " * 1200, "too many for this model")):
        tab.fill("#source", text)
        tab.click("button[type=submit]")
        tab.locator("#status.error", has_text=error).wait_for()
    tab.select_option("#direction", "zh-en")
    assert tab.get_attribute("#source", "lang") == "zh"
    assert wait(tab).input_value("#source") == newcomer_sentences("zh")[0]


def test_it_can_be_used_on_a_phone_and_in_the_dark(browser, page):
    with opening(browser, page, color_scheme="dark") as tab:
        wait(tab)
        tab.wait_for_function("document.getElementById('step').value > 0")  # it plays by itself
        assert unnamed(tab) == 0
        dark = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))"
        assert tab.evaluate(dark) < 64
        assert cut_off(tab, 1280, 768, 640, 360) == []
