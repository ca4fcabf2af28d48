import pytest

from entropy_valley.errors import InputError
from entropy_valley.model.load import load_backbone
from entropy_valley.model.prompt import Prompt


@pytest.fixture
def tokenizer(tiny):
    return load_backbone(tiny["llada"][1], "llada").tokenizer


@pytest.mark.parametrize("template", ["no place", "{src} and {src}"])
def test_a_template_names_the_source_once(template, tokenizer):
    with pytest.raises(InputError, match="exactly once"):
        Prompt(template, tokenizer)


@pytest.mark.parametrize(("text", "line"), [("one two\nthree", "one two"), ("\nfour", ""), (" five ", "five")])
def test_a_text_may_end_with_its_first_line(tokenizer, text, line):
    prompt = Prompt("{src}", tokenizer)
    assert prompt.text(prompt.tokens(text), first_line=True) == line
    assert prompt.text(prompt.tokens(text)) == text.strip()


def test_the_tokens_of_a_part_of_a_text(tokenizer):
    prompt, text = Prompt("{src}", tokenizer), "Öffnen Sie die Datei 点击."
    tokens = prompt.tokens(text)
    assert prompt.slots_of(text, []) == [] and prompt.slots_of(text, [[0, len(text)]]) == [*range(len(tokens))]
    (start, end), rest = (15, 20), [[0, 15], [20, len(text)]]
    inside, outside = prompt.slots_of(text, [[start, end]]), prompt.slots_of(text, rest)
    assert text[start:end] == "Datei" and "Datei" in prompt.text([tokens[slot] for slot in inside])
    assert {*inside, *outside} == {*range(len(tokens))} and len(inside) < len(tokens)
