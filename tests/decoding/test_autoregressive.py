"""Beam search against a plain one, one sentence at a time and without a cache; and the job around it."""

import random

import pytest
import torch
from bench import Bench, killed_at_the_sixth_result

from entropy_valley import files
from entropy_valley.decoding.canvas import Ledger
from entropy_valley.errors import InputError
from entropy_valley.model.load import stock_model
from entropy_valley.translation import beam_search
from entropy_valley.translation.beam_search import Search, Task


def search_for(beams, length_penalty, max_new_tokens, **others):
    return Search(beams=beams, length_penalty=length_penalty, max_new_tokens=max_new_tokens, **others)


SEARCHES = [search_for(1, 1.0, 12), search_for(4, 1.0, 12), search_for(4, 0.0, 12), search_for(3, 2.0, 5)]
PATIENT = [search_for(4, 1.0, 12, early_stopping=False), search_for(3, 2.0, 12, early_stopping=False)]


@torch.inference_mode()
def plain_beam_search(backbone, prompt, search):
    """(tokens before the EOS, whether there was one, mean log-probability) of the best hypothesis."""
    stock, eos = stock_model(backbone.family, backbone.model), backbone.eos_id

    def ended(tokens):
        return tokens[-1] == eos or len(tokens) == search.max_new_tokens

    def scored(score, tokens):
        return score / len(tokens) ** search.length_penalty, score, tokens

    running, finished = [(0.0, [])], []

    def over():
        """Whether the search is: without early stopping, if no running one scores more than the worst finished one."""
        if search.early_stopping or not running or len(finished) < search.beams:
            return not running or len(finished) == search.beams
        return scored(*running[0])[0] <= finished[-1][0]

    while not over():
        candidates = []
        for score, tokens in running:
            ids = torch.tensor([[*prompt, *tokens]])
            causal = torch.full((1, 1, ids.shape[1], ids.shape[1]), torch.finfo(torch.float32).min).triu(1)
            logits = stock(input_ids=ids, attention_mask=causal, use_cache=False).logits[0, -1].double()
            candidates += [(score + new, [*tokens, token]) for token, new in enumerate(logits.log_softmax(-1).tolist())]
        candidates = sorted(candidates, reverse=True)[: 2 * search.beams]
        finished += [scored(*candidate) for candidate in candidates[: search.beams] if ended(candidate[1])]
        finished = sorted(finished, reverse=True)[: search.beams]
        running = [candidate for candidate in candidates if not ended(candidate[1])][: search.beams]
    _, score, tokens = finished[0]
    return (tokens[:-1], True, score / len(tokens)) if tokens[-1] == eos else (tokens, False, score / len(tokens))


@pytest.fixture(scope="module")
def prompts(llama3):
    """Prompts of many lengths, some with the EOS, which is also the pad, among and before their tokens."""
    rng = random.Random(3)
    prompts = [[rng.randrange(len(llama3.tokenizer)) for _ in range(rng.randrange(1, 24))] for _ in range(16)]
    prompts[2][:0] = [llama3.eos_id] * 3
    prompts[5][1:1] = prompts[9][-1:] = [llama3.eos_id]
    return prompts


def found(backbone, search, prompts, budget=None):
    tasks, ledger = [Task(prompt, search.max_new_tokens) for prompt in prompts], Ledger()
    results = dict(beam_search.beam_search(backbone, search, tasks, ledger, budget))
    return [results[place] for place in range(len(prompts))], ledger


@pytest.mark.parametrize("search", [*SEARCHES, *PATIENT], ids=str)
def test_it_is_plain_beam_search(llama3, prompts, search):
    results, _ = found(llama3, search, prompts[:10])
    for prompt, result in zip(prompts, results, strict=False):
        tokens, finished, logprob = plain_beam_search(llama3, prompt, search)
        assert (result.tokens, result.finished) == (tokens, finished)
        assert result.logprob == pytest.approx(logprob, abs=2e-4)
    assert {result.finished for result in results} == {True, False}


def test_neither_company_nor_padding_changes_a_result(llama3, prompts):
    search = SEARCHES[1]
    whole, ledger = found(llama3, search, prompts)
    alone, alone_ledger = found(llama3, search, prompts, budget=1)
    some, _ = found(llama3, search, prompts[::-1], budget=400)
    assert whole == alone == some[::-1]
    assert ledger["passes"] < alone_ledger["passes"] and ledger["tokens"] > alone_ledger["tokens"]


def test_out_of_memory_halves_the_batch_and_goes_on(llama3, prompts, monkeypatch):
    expected, _ = found(llama3, SEARCHES[1], prompts)
    stock, sizes = stock_model(llama3.family, llama3.model, "sdpa"), []
    generate = stock.generate

    def small(ids, **options):
        sizes.append(len(ids))
        if len(ids) > 3:
            raise torch.OutOfMemoryError
        return generate(ids, **options)

    monkeypatch.setattr(stock, "generate", small)
    monkeypatch.setattr(beam_search, "stock_model", lambda *given: stock)
    assert found(llama3, SEARCHES[1], prompts)[0] == expected
    assert sizes[:4] == [16, 8, 4, 2] and max(sizes[3:]) <= 3


@pytest.fixture
def bench(tmp_path, checkpoints, testset):
    return Bench(tmp_path, checkpoints, testset, "llama3")


def test_a_translation_may_end_with_its_first_line(bench, llama3):
    """As the authors cut it: what is before the first break, even where that is nothing. The store's tokens do."""

    def text(tokens):
        return llama3.tokenizer.decode(tokens, skip_special_tokens=True).split("\n")[0].strip()

    whole, _ = bench.generate()
    lines, entry = bench.generate(out="lines", first_line=True)
    assert bench.ledgers()[-1]["computed"] == 0
    for row, line in zip(whole, lines, strict=True):
        assert line == row | {"hypothesis": text(row["tokens"])}
    assert entry["signature"]["decoder"].endswith("|line1")


@pytest.mark.parametrize("change", [{"length_penalty": 0.5}, {"early_stopping": False}], ids=str)
def test_another_search_is_another_key(bench, change):
    bench.generate()
    bench.generate(**change)
    assert [ledger["computed"] for ledger in bench.ledgers()] == [12, 12]


def test_a_killed_job_resumes_to_the_same_bytes(bench, monkeypatch):
    expected = bench.generate(execution={"store": None}, out="whole")
    with killed_at_the_sixth_result(monkeypatch):
        bench.generate(execution={"token_budget": 400})
    assert not bench.out.exists()
    assert bench.generate() == expected
    assert bench.ledgers()[-1]["computed"] == 12 - 5


def test_the_context_bounds_a_search_and_a_prompt_that_fills_it_is_refused(bench, llama3):
    rows = files.read_jsonl(bench.testset)
    lengths = [row["length"] for row in bench.generate(max_new_tokens=500)[0]]
    assert 24 < max(lengths) < llama3.context
    rows[3]["source"] = "the old red car " * 60
    files.write_jsonl(bench.testset, rows)
    with pytest.raises(InputError) as refusal:
        bench.generate(out="long")
    message = str(refusal.value)
    assert not bench.out.exists()
    assert all(part in message for part in ("test.jsonl", "'s3'", "context is 128", "Split or drop the sentence"))
    assert "canvas" not in message and "ratios" not in message
