"""Does the engine give what Algorithm 1 gives? Counted over random cases, far more than the tests can take.

A case is a prompt, a canvas of 2 to 200 slots (log-uniform: most are short, as in WMT) and a step budget T of 2 to
128. The engine decodes all of them together, in mixed order, half of them from a probe that it has run before; the
reference decodes each alone, in its T passes. Models and prompts are tiny and random, unless a checkpoint and a test
set are given.

    python benchmarks/exactness.py --cases 2000
    python benchmarks/exactness.py --cases 500 --family llada --checkpoint FOLDER --adapter FOLDER \\
        --testset FILE --prompt "German: {src}\\n" --dtype bfloat16

A text is what stands before the first EOS. "Tokens" are the places of the longer of two texts, "agreement" the share at
which both have the same token. Where a float32 text differs, the step at which the two part is looked at: which slots
or tokens they take and how far these are apart, beside how far the two computations are; the exit status is then 1.
bfloat16 adds rows of its own, held against both precisions of the reference; an adapter adds rows where it runs beside
the weights, unmerged. One thread.

Of 2,000 cases for each family, in float32, none differs in LLaDA's layout, two in DiffuLLaMA's and one in Dream's; with
prefix attention 1 of 8,000. There, the two exchanged slots are apart by less than 1e-7 nats, or the logits of the two
tokens by less than 1e-6. With the demo's LLaDA-tiny, none of 200 development sentences of En-De differs. In bfloat16,
73 of 1,800 texts on the demo's canvases (seed 1, three directions, three length methods, rounded logits) differ from
float32, and the mean toy COMET by at most 0.0014 in each of the nine sets.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from parting import parting

from entropy_valley import files
from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import Backbone, load_backbone
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX, Prompt
from entropy_valley.progress import progress

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import tiny_checkpoints

DIFFUSION = sorted(name for name, family in FAMILIES.items() if not family.causal)
CONTEXT, SHORTEST, LONGEST, PROMPT = 512, 2, 200, (4, 40)
STEPS = (2, 4, 8, 16, 32, 64, 128)
Texts = list[list[int]]


@dataclass(frozen=True)
class Case:
    prompt: tuple[int, ...]
    length: int
    steps: int

    @property
    def canvas(self) -> Canvas:
        return Canvas(self.prompt, self.length, [count for count in reveal_counts(self.length, self.steps) if count])


def draw(backbone: Backbone, options: argparse.Namespace) -> list[Case]:
    """Cases that fit the context."""
    rng, sources = random.Random(options.seed), options.testset and files.read_jsonl(options.testset, ["source"])
    template, cases = Prompt(options.prompt, backbone.tokenizer), []
    for place in range(options.cases):
        if sources:
            prompt = template.encode(sources[place % len(sources)]["source"])
        else:
            prompt = [rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randint(*PROMPT))]
        length = int(SHORTEST * ((LONGEST + 1) / SHORTEST) ** rng.random())
        cases.append(Case(tuple(prompt), min(length, backbone.context - len(prompt)), rng.choice(STEPS)))
    return cases


def by_engine(backbone: Backbone, cases: Sequence[Case]) -> Texts:
    """All together, in mixed order, half of them from a probe."""
    places = list(range(len(cases)))
    random.Random(0).shuffle(places)
    probed = [(place, replace(cases[place].canvas, counts=())) for place in places[::2]]
    starts = dict(Engine(backbone).run(Queue(probed)))
    queue = Queue((place, replace(cases[place].canvas, start=starts.get(place))) for place in places)
    filled = dict(Engine(backbone).run(queue, make_denoiser("med")))
    return [filled[place].tokens[: filled[place].text] for place in range(len(cases))]


def by_reference(backbone: Backbone, cases: Sequence[Case]) -> Texts:
    texts = []
    with progress(total=len(cases), description="reference", unit="case") as bar:
        for case in cases:
            texts.append(reference.decode(backbone, case.prompt, case.length, case.steps)[1])
            bar.update()
    return texts


def compared(one: Texts, other: Texts) -> str:
    pairs = list(zip(one, other, strict=True))
    differing = sum(ours != theirs for ours, theirs in pairs)
    places = sum(max(map(len, pair)) for pair in pairs)
    same = sum(a == b for pair in pairs for a, b in zip(*pair, strict=False))
    share = f"{100 * same / max(1, places):.2f} %"
    return f"{len(pairs)} cases, {differing} texts differ, {places} tokens, agreement {share}"


def rows(folder: Path, family: str, options: argparse.Namespace) -> Iterator[tuple[str, str, list[str]]]:
    """What is held against what, the numbers, and, where none may differ, a line on each text that does."""
    given = {"folder": folder, "family": family, "adapter": options.adapter, "attention": options.attention}
    backbone = load_backbone(**given)
    cases = draw(backbone, options)
    oracle, exact = by_reference(backbone, cases), by_engine(backbone, cases)
    differing = [case for case, *texts in zip(cases, exact, oracle, strict=True) if texts[0] != texts[1]]
    notes = [f"{case.length} slots, T {case.steps}: {parting(backbone, case)}" for case in differing]
    yield "engine, reference", compared(exact, oracle), notes
    if options.adapter:
        yield "engine unmerged, merged", compared(by_engine(load_backbone(**given, merge=False), cases), exact), []
    if options.dtype == "bfloat16":
        backbone = load_backbone(**given, dtype="bfloat16")
        ours, theirs = by_engine(backbone, cases), by_reference(backbone, cases)
        yield "engine, reference, both bfloat16", compared(ours, theirs), []
        yield "engine bfloat16, reference float32", compared(ours, oracle), []
        yield "reference bfloat16, float32", compared(theirs, oracle), []
        if options.adapter:
            beside = by_engine(load_backbone(**given, merge=False, dtype="bfloat16"), cases)
            yield "engine unmerged, merged, both bfloat16", compared(beside, ours), []
            yield "engine unmerged bfloat16, reference float32", compared(beside, oracle), []


def main() -> int:
    options, failed = arguments(), False
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        for family in [options.family] if options.checkpoint else options.families:
            start, folder = time.monotonic(), options.checkpoint or Path(temporary) / family
            if not options.checkpoint:
                tiny_checkpoints.write(folder, family, eos=1.5, context=CONTEXT)  # more leaves hardly any text
            for what, numbers, notes in rows(folder, family, options):
                print(f"{family:15}{what:45}{numbers}", *notes, sep="\n    ", flush=True)
                failed |= bool(notes)
            print(f"{family:15}{time.monotonic() - start:.0f} s", flush=True)
    return int(failed)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--families", nargs="+", choices=DIFFUSION, default=DIFFUSION)
    parser.add_argument("--checkpoint", type=Path, help="in place of the tiny random ones; with --family")
    parser.add_argument("--family", choices=DIFFUSION)
    parser.add_argument("--adapter", type=Path, help="of that checkpoint")
    parser.add_argument("--testset", type=Path, help="JSON Lines with a source each, in place of random prompts")
    parser.add_argument("--prompt", type=lambda text: text.replace("\\n", "\n"), default="{src}", help="its template")
    parser.add_argument("--attention", choices=[BOTH_WAYS, PREFIX], default=BOTH_WAYS)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args()
    if bool(options.checkpoint) != bool(options.family) or (options.adapter and not options.checkpoint):
        parser.error("--checkpoint goes with --family, and --adapter with both")
    return options


if __name__ == "__main__":
    sys.exit(main())
