"""Hostile characters and files: refused with file and line, or the same from the file to the prompt."""

import codecs
import gzip
import itertools
import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from entropy_valley import files
from entropy_valley.data import build
from entropy_valley.data.sources.files import read_parallel
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.pretraining import train_tokenizer
from entropy_valley.model.checkpoint import load_tokenizer
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.prompt import Prompt
from entropy_valley.texts import hidden, visible

TEXT = "Grüße\nzwei\n"
# What a sentence of a user's own file cannot have: the text, and what the error says.
REFUSED = {
    "NUL U+0000": ("a\0b", "character 2 is U+0000, which"),
    "first half of a surrogate pair U+D800": ("a\ud800b", "character 2 is U+D800, which"),
    "100,001 characters": ("x" * 100_001, "100,001 characters, more than the 100,000"),
}
# Files in the place of one of sentences: the bytes, and what the error says.
FILES = {
    "a gzip archive": (gzip.compress(TEXT.encode(), mtime=0), r"hostile:1: not UTF-8 \(byte 0x8b\).*unpack"),
    "a Parquet file": (b"PAR1\x15\0", "hostile:1: character 6 is U\\+0000"),
    "UTF-16 with its mark": (TEXT.encode("utf-16"), r"hostile:1: not UTF-8 \(byte 0xff\)"),
    "UTF-16BE without it": (TEXT.encode("utf-16-be"), "hostile:1: not UTF-8"),
    "Latin 1": (TEXT.encode("latin-1"), r"hostile:1: not UTF-8 \(byte 0xfc\).*iconv -f LATIN1"),
    "a surrogate in UTF-8": (b"a\nb\xed\xa0\x80\n", r"hostile:2: not UTF-8 \(byte 0xed\)"),
    "a NUL byte": (b"one\ntwo\nth\0ree\n", "hostile:3: character 3 is U\\+0000"),
    "an empty file": (b"", "file is empty"),
    "a blank line": (b"one\n\nthree\n", "hostile:2: blank line"),
    "a table with tabs": (b"one\teins\ntwo\tzwei\n", "a table, not sentences"),
}
# Files that are read: the bytes, and their sentences.
READ = {
    "a byte order mark": (codecs.BOM_UTF8 + b"one\ntwo\n", ["one", "two"]),
    "CR LF": (b"one\r\ntwo\r\n", ["one", "two"]),
    "LF and CR LF mixed": (b"one\r\ntwo\nthree\r\n", ["one", "two", "three"]),
    "a tab in one of three lines": (b"one\ttwo\nthree\nfour\n", ["one\ttwo", "three", "four"]),
}
ODD = (
    "\x01\x07\t\r\x1c\x1b[31m\x85\xa0\xad\u180e\u200b\u200f\u2028\u202e\u2066\u3000\ufeff"
    "\ufe0f\ufff9\ue000\U0010fffd\u0378\ufdd0\uffff"
)
CHAT = "<|im_start|>user\nSay: {src} now<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """By family: the tokenizer of transformers, and the same file without it."""
    root, tokenizers = tmp_path_factory.mktemp("tokenizers"), {}
    for name, family in FAMILIES.items():
        full = train_tokenizer(["Tap Reset now.", "点击现在。"], 300, family)
        full.save_pretrained(root / name)
        tokenizers[name] = full, load_tokenizer(root / name, family)
    return tokenizers


def special_tokens():
    """The special tokens of all families, and the places of templates."""
    tokens = [
        (one.mask_token, one.eos_token, one.pad_token, one.bos_token, *one.chat_tokens) for one in FAMILIES.values()
    ]
    return [*dict.fromkeys(filter(None, itertools.chain(*tokens))), "{src}", "{prompt}"]


def read_testset(source):
    return build.testset({"direction": "en-zh", "seed": 1, "source": source, "limit": None})


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=20))
@example(ODD)
@example("e\u0301 Z" + "\u0300\u0323" * 25 + " مرحبا 👩\u200d👩\u200d👧\u200d👦 \uff1c\uff5cmask\uff5c\uff1e")
@example("x" * 10_000)
def test_any_text_stays_as_it_is(tmp_path, tokenizers, inner):
    text = f"a{inner}b"
    (tmp_path / "own.en").write_text(f"{text}\nplain\n", encoding="utf-8", newline="")
    (tmp_path / "own.zh").write_text("一\n二\n", encoding="utf-8")
    rows = read_testset({"name": "files", "source": str(tmp_path / "own.en"), "target": str(tmp_path / "own.zh")})
    assert rows[0]["source"] == text
    files.write_jsonl(tmp_path / "rows.jsonl", rows)
    assert files.read_jsonl(tmp_path / "rows.jsonl") == rows
    for tokenizer in tokenizers["llada"]:
        prompt = Prompt("{src}", tokenizer)
        assert prompt.text(prompt.encode(text)) == text


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_no_text_has_is_refused_with_its_line(tmp_path, text, problem):
    (tmp_path / "test.jsonl").write_text(f'{{"en": "a", "zh": "b"}}\n{json.dumps({"en": text, "zh": "b"})}\n')
    named = {"files": {"en-zh": {"test": "test.jsonl"}}, "folder": str(tmp_path)}
    with pytest.raises(InputError) as caught:
        read_testset({"name": "json_lines", **named})
    assert caught.value.place == f"{tmp_path / 'test.jsonl'}:2" and caught.value.problem.startswith(problem)


@pytest.mark.parametrize(("content", "problem"), FILES.values(), ids=FILES)
def test_a_file_of_another_kind_is_named_for_what_it_is(tmp_path, content, problem):
    path, other = tmp_path / "hostile", tmp_path / "other"
    other.write_text("eins\n")
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        read_parallel(path, other)
    assert caught.value.place.startswith(str(path))


@pytest.mark.parametrize(("content", "sentences"), READ.values(), ids=READ)
def test_lines_of_any_system_are_read(tmp_path, content, sentences):
    (tmp_path / "own").write_bytes(content)
    (tmp_path / "other").write_text("x\n" * len(sentences))
    assert [source for source, _ in read_parallel(tmp_path / "own", tmp_path / "other")] == sentences


@pytest.mark.parametrize("template", ["{src}", CHAT], ids=["bare", "chat"])
@pytest.mark.parametrize("token", special_tokens())
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


def test_what_is_seen():
    assert all(map(visible, ("a", "。", "\u200bx", "\ue000", "👩")))
    assert not any(map(visible, ("", " ", "\u200b\u200d", "\u202e\x07", "\ufeff\u3000")))
    assert [hidden(text) for text in ("a b\u3000。", "a\u200bb\u2028\u00ad", "\ue000\xa0", "a\tb\n")] == [0, 3, 0, 2]
