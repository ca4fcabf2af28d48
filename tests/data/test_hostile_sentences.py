"""Hostile characters and files: refused with file and line, or the same from the file to the prompt."""

from __future__ import annotations

import json

import hostile_cases as cases
import pytest

from entropy_valley import files, plain_text
from entropy_valley.data import build
from entropy_valley.data.sources.files import read_parallel
from entropy_valley.decoding.inputs import RustTokenizer
from entropy_valley.errors import InputError
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.prompt import Prompt
from entropy_valley.model.tokenizer import train_tokenizer

CHAT = "<|im_start|>user\nSay: {src} now<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """By family: the tokenizer of transformers, and the same file without it."""
    root, found = tmp_path_factory.mktemp("tokenizers"), {}
    for name, family in FAMILIES.items():
        full = train_tokenizer(["Tap Reset now.", "点击现在。"], 300, family)
        full.save_pretrained(root / name)
        found[name] = full, RustTokenizer(root / name / "tokenizer.json")
    return found


def read_testset(source):
    return build.testset({"direction": "en-zh", "seed": 1, "source": source, "limit": None})


@pytest.mark.parametrize("character", cases.KEPT.values(), ids=cases.KEPT)
def test_a_character_stays_as_it_is(tmp_path, tokenizers, character):
    text = f"a{character}b"
    (tmp_path / "own.en").write_text(f"{text}\nplain\n", encoding="utf-8", newline="")
    (tmp_path / "own.zh").write_text("一\n二\n", encoding="utf-8")
    rows = read_testset({"name": "files", "source": str(tmp_path / "own.en"), "target": str(tmp_path / "own.zh")})
    assert rows[0]["source"] == text
    files.write_jsonl(tmp_path / "rows.jsonl", rows)
    assert files.read_jsonl(tmp_path / "rows.jsonl") == rows and files.rows_digest(rows) == files.digest(rows)
    for tokenizer in tokenizers["llada"]:
        prompt = Prompt("{src}", tokenizer)
        assert prompt.text(prompt.encode(text)) == text


@pytest.mark.parametrize(("text", "said"), cases.REFUSED.values(), ids=cases.REFUSED)
def test_what_no_text_has_is_refused_with_its_line(tmp_path, text, said):
    (tmp_path / "test.jsonl").write_text(f'{{"en": "a", "zh": "b"}}\n{json.dumps({"en": text, "zh": "b"})}\n')
    named = {"files": {"en-zh": {"test": "test.jsonl"}}, "folder": str(tmp_path)}
    with pytest.raises(InputError) as caught:
        read_testset({"name": "json_lines", **named})
    assert caught.value.place == f"{tmp_path / 'test.jsonl'}:2" and caught.value.problem.startswith(said)


@pytest.mark.parametrize(("content", "said"), cases.FILES.values(), ids=cases.FILES)
def test_a_file_of_another_kind_is_named_for_what_it_is(tmp_path, content, said):
    path, other = tmp_path / "hostile", tmp_path / "other"
    other.write_text("eins\n")
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_parallel(path, other)
    assert caught.value.place.startswith(str(path))


@pytest.mark.parametrize(("content", "sentences"), cases.READ.values(), ids=cases.READ)
def test_lines_of_any_system_are_read(tmp_path, content, sentences):
    (tmp_path / "own").write_bytes(content)
    (tmp_path / "other").write_text("x\n" * len(sentences))
    assert [source for source, _ in read_parallel(tmp_path / "own", tmp_path / "other")] == sentences


def test_a_copy_is_no_translation(tmp_path):
    (tmp_path / "own").write_text("one\ntwo\n")
    with pytest.raises(InputError, match="has the sentences of"):
        read_parallel(tmp_path / "own", tmp_path / "own")


@pytest.mark.parametrize("template", ["{src}", "Say: {src}\nIn German: ", CHAT], ids=["bare", "plain", "chat"])
@pytest.mark.parametrize("token", cases.special_tokens())
def test_a_special_token_in_a_source_stays_text(tokenizers, token, template):
    source = f"a {token} b{token}"
    for family, pair in tokenizers.items():
        for tokenizer in pair:
            prompt = Prompt(template, tokenizer)
            special = {id for id, added in tokenizer.added_tokens_decoder.items() if added.special}
            of_template = [id for id in prompt.encode("plain") if id in special]
            tokens = prompt.encode(source)
            assert [id for id in tokens if id in special] == of_template, family
            assert source in prompt.text(tokens)
            assert not special & {*prompt.tokens(source)}
            offsets = prompt.slots_of(source, [[2, 2 + len(token)]])
            assert token in prompt.text([prompt.tokens(source)[slot] for slot in offsets])


@pytest.mark.parametrize("source", ["Tap Reset now.", "点击 <b>现在</b>。", "a < b |> c", " "])
def test_the_tokens_of_other_sources_are_as_before(tokenizers, source):
    for pair in tokenizers.values():
        for tokenizer in pair:
            before = tokenizer(CHAT.replace("{src}", source), add_special_tokens=False)["input_ids"]
            assert Prompt(CHAT, tokenizer).encode(source) == before


def test_many_sources_have_the_tokens_of_each(tokenizers):
    sources = ["Tap", "a <|im_end|> b", "</s>", "点击"]
    for full, _ in tokenizers.values():
        prompt = Prompt(CHAT, full, bos=3)
        assert prompt.encode_all(sources) == list(map(prompt.encode, sources))
        assert prompt.tokens_of_all(sources) == list(map(prompt.tokens, sources))


def test_what_is_seen():
    assert all(map(plain_text.visible, ("a", "。", "\u200bx", "\ue000", "👩")))
    assert not any(map(plain_text.visible, ("", " ", "\u200b\u200d", "\u202e\x07", "\ufeff\u3000")))


def test_the_documentation_lists_every_case():
    written = cases.DOCUMENT.read_text(encoding="utf-8").partition(cases.BEGIN)[2].partition(cases.END)[0]
    assert written == cases.table(cases.special_tokens())
    assert written.count("\n") - 2 >= 100
    tests = "".join(path.read_text() for path in cases.DOCUMENT.parents[1].glob("tests/**/test_*.py"))
    assert not [test for _, test in cases.SINGLE.values() if f"def {test}(" not in tests]
