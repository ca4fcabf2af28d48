"""What the LM head predicts for masked slots: argmax, entropy, log-probabilities, and the stepwise SIG.

No more than a block of rows × vocabulary is held at once; the logits are float32, all sums float64. The blocks of a row
are joined exactly: :func:`merge` for the entropy, :func:`_joined_divergences` for the SIG.

The SIG is how much a slot depends on the source, KL(p(y_i | source, canvas) ‖ p(y_i | no source, canvas)) in nats. A
divergence of nearly equal distributions is a small difference of large terms, unless each of its terms is small: with
d = log p - log q, the sum of p d is the sum of p d + q - p, for p and q both sum to one, and none of these is negative.
Blocks of the vocabulary are joined by the chain rule: the divergence of the whole is the mean of that inside the parts,
weighted with p, and that between the parts' two masses. Again no term cancels another.
"""

import contextlib
import copy
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, logsigmoid, pad

from entropy_valley.model.decoder import FULL_KERNEL

# Rows and vocabulary entries whose logits are held at once: on a CPU a block fits its cache, and the weights of the
# head are read once for many rows; a GPU takes all entries in one product.
BLOCK = {"cpu": (512, 4096), "cuda": (1024, 2**20)}


_LEAST = torch.finfo(torch.float32).min  # a logit whose exp is 0 as of -inf, and its products are finite


@dataclass(frozen=True)
class Head:
    """``module`` gives logits (rows, vocabulary) from states (rows, width): a linear layer without bias, or one with
    an adapter.

    With ``float32`` its logits are float32 where states and weights are bfloat16: sums of the same products, which are
    not rounded to bfloat16 in the end. ``rows``: how many each product has, whatever is read;
    None: as many as are read. Entries from ``vocabulary`` on, which are no tokens, are in no distribution.
    """

    module: torch.nn.Linear
    float32: bool = False
    rows: int | None = None
    vocabulary: int | None = None

    def chunks(self, states: Tensor) -> Sequence[Tensor]:
        """The rows whose logits are held at once; zeros fill the last up to ``rows``, or to a full kernel's."""
        if self.rows:
            return pad(states, (0, 0, 0, -len(states) % self.rows)).split(self.rows)
        most, _ = BLOCK[states.device.type]
        states = pad(states, (0, 0, 0, max(0, FULL_KERNEL - states.shape[0])))
        return states.tensor_split(-(-states.shape[0] // most))  # even: none falls below the full kernel

    def blocks(self, states: Tensor) -> Iterator[tuple[int, Tensor]]:
        """(first vocabulary entry, logits) of each block; of a head that is more than its weights, all in one.

        The logits are float32, but perhaps rounded to the dtype of ``states``.
        """
        wider = self.float32 and states.dtype != torch.float32
        _, entries = BLOCK[states.device.type]
        if type(self.module) is torch.nn.Linear:
            product = float32_product if wider else linear
            blocks: Iterable[Tensor] = (product(states, weight) for weight in self.module.weight.split(entries))
        else:
            blocks = [self._in_float32(states.float()) if wider else self.module(states)]
        for number, block in enumerate(blocks):
            first, logits = number * entries, block.float()
            if self.vocabulary and self.vocabulary < first + logits.shape[1]:
                logits[:, max(0, self.vocabulary - first) :] = _LEAST
            yield first, logits

    @functools.cached_property
    def _in_float32(self) -> torch.nn.Linear:
        return copy.deepcopy(self.module).float()


def float32_product(states: Tensor, weight: Tensor) -> Tensor:
    """``states`` (rows, width) times ``weight`` (entries, width) of a half precision, in float32."""
    if states.device.type == "cuda":  # cuBLAS adds in float32 anyway, and here writes what it has
        return torch.mm(states, weight.t(), out_dtype=torch.float32)
    return linear(states.float(), weight.float())


_GROUP = 64  # vocabulary entries among which torch looks for the largest at once
_ROWS = {"cpu": 16, "cuda": 128}  # of two distributions that are compared at once: their terms are float64


class SlotValues(NamedTuple):
    """One value per row: most probable token (int64), entropy in nats, and the log-probabilities of that token and of
    the EOS (all float64)."""

    token: Tensor
    entropy: Tensor
    logprob: Tensor
    eos: Tensor


class Part(NamedTuple):
    """What some vocabulary entries say of each row: their largest logit and its token; over the others, with
    d = z - that logit <= 0, the sums of e^d and of d e^d (both float64); and the EOS's logit, -inf without it."""

    best: Tensor
    token: Tensor
    others: Tensor
    weighted: Tensor
    eos: Tensor


def slot_values(head: Head, states: Tensor, mask_id: int, eos_id: int) -> SlotValues:
    """What ``head`` says of each row of ``states`` (rows, width), the mask token's logit being -inf.

    A row's values do not depend on the rows beside it: on one CPU thread they are bit-equal in any company.
    """
    values = []
    for chunk in head.chunks(states):
        parts = (_part(block, first, mask_id - first, eos_id - first) for first, block in head.blocks(chunk))
        values.append(finish(functools.reduce(merge, parts)))
    return SlotValues(*(torch.cat(column)[: states.shape[0]] for column in zip(*values, strict=True)))


def values_of_logits(logits: Tensor, mask_id: int, eos_id: int) -> SlotValues:
    """The same of logits (rows, vocabulary) that are there, whatever computed them; of a token that it never gives they
    may be -inf."""
    return finish(_part(logits.float().clamp(min=_LEAST), 0, mask_id, eos_id))


def finish(whole: Part) -> SlotValues:
    """With s the sum over all but the argmax: log p = -log(1 + s), H = log(1 + s) - E[d].

    No term cancels another, so nearly certain slots keep meaningful entropies where -sum p log p has only the
    rounding of 1 + s left; and float64 sums of the float32 terms tell apart slots that are almost equally uncertain.
    Among both kinds the reveal order is decided.
    """
    surprise = torch.log1p(whole.others)
    entropy = surprise - whole.weighted / (1 + whole.others)
    return SlotValues(whole.token, entropy, -surprise, whole.eos.double() - whole.best - surprise)


def _part(logits: Tensor, first: int, mask: int, eos: int) -> Part:
    """Reduce ``logits`` (rows, entries from ``first`` on), overwriting them; ``mask`` and ``eos`` are the two tokens'
    columns, where they are among these."""
    if 0 <= mask < logits.shape[1]:
        logits[:, mask] = _LEAST
    best, token = _largest(logits)
    end = logits[:, eos].clone() if 0 <= eos < logits.shape[1] else torch.full_like(best[:, 0], -torch.inf)
    distance = logits.sub_(best)
    weight = torch.exp(distance).scatter_(1, token, 0.0)
    others = weight.double().sum(-1)
    weighted = weight.mul_(distance).double().sum(-1)
    return Part(best.squeeze(-1), token.squeeze(-1) + first, others, weighted, end)


def _largest(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The largest value of each row and the first place that has it, both (rows, 1).

    First the best group, then the best of it: torch finds places far more slowly than values.
    """
    if logits.shape[1] % _GROUP:
        return logits.max(-1, keepdim=True)
    groups = logits.unflatten(1, (-1, _GROUP))
    group = groups.amax(-1).argmax(-1, keepdim=True)
    best, place = groups.gather(1, group[..., None].expand(-1, 1, _GROUP)).squeeze(1).max(-1, keepdim=True)
    return best, group * _GROUP + place


def merge(left: Part, right: Part) -> Part:
    """Two parts as one. Of equal logits the earlier token is the argmax; the loser's joins the others."""
    wins = right.best > left.best
    best, token, others, weighted, _ = (torch.where(wins, new, old) for old, new in zip(left, right, strict=True))
    _, _, lost, lost_weighted, _ = (torch.where(wins, old, new) for old, new in zip(left, right, strict=True))
    gap = (left.best.double() - right.best).abs()
    weight = torch.exp(-gap)
    others, weighted = others + weight * (1 + lost), weighted + weight * (lost_weighted - gap * (1 + lost))
    return Part(best, token, others, weighted, torch.maximum(left.eos, right.eos))


class _Divergence(NamedTuple):
    """Some vocabulary entries of each row (all float64): the log of their unnormalised mass under p and under q, and
    the divergence of the two distributions over them."""

    p: Tensor
    q: Tensor
    divergence: Tensor


def sourced_values(
    head: Head, states: Tensor, sourceless: Tensor, paired: Tensor, others: Tensor, mask_id: int, eos_id: int
) -> tuple[SlotValues, Tensor]:
    """What ``head`` says of each row of ``states`` (rows, width), and its SIG, the mask token being in no distribution.

    ``paired`` are the places of the rows that are compared, and ``others`` the other ones, both ascending;
    ``sourceless`` are the states of the former without the source. The SIG of the others is NaN. Bit-equal in any
    company, as :func:`slot_values` is, whose values these are.
    """
    chunks = zip(*map(head.chunks, (states[paired], sourceless)), strict=True)
    pairs = []
    for chunk, other in chunks:
        parts, divergences = [], []
        for (first, own), (_, compared) in zip(head.blocks(chunk), head.blocks(other), strict=True):
            divergences.append(_part_by_part(own, compared, mask_id - first))
            parts.append(_part(own, first, mask_id - first, eos_id - first))  # last: it overwrites the logits
        sig = functools.reduce(_joined_divergences, divergences).divergence.clamp(min=0)
        pairs.append((*finish(functools.reduce(merge, parts)), sig))
    *columns, sig = (torch.cat(column)[: len(sourceless)] for column in zip(*pairs, strict=True))
    if len(sourceless) == len(states):
        return SlotValues(*columns), sig
    rest = slot_values(head, states[others], mask_id, eos_id)
    place = torch.cat([paired, others]).argsort()
    joined = (torch.cat(pair)[place] for pair in zip(columns, rest, strict=True))
    return SlotValues(*joined), torch.cat([sig, torch.full_like(rest.entropy, torch.nan)])[place]


def _part_by_part(p: Tensor, q: Tensor, mask: int) -> _Divergence:
    """:func:`_divergence_part` of a few rows at a time, whose float64 terms fit a CPU's cache, or a GPU's memory."""
    pieces = -(-len(p) // _ROWS[p.device.type])
    parts = [_divergence_part(*pair, mask) for pair in zip(p.tensor_split(pieces), q.tensor_split(pieces), strict=True)]
    return _Divergence(*map(torch.cat, zip(*parts, strict=True)))


def _divergence_part(p: Tensor, q: Tensor, mask: int) -> _Divergence:
    """Compare two rows of logits (rows, entries) without column ``mask``, where it is among these."""
    p, q = p.double(), q.double()
    if 0 <= mask < p.shape[1]:
        p[:, mask] = q[:, mask] = _LEAST
    mass, other = p.logsumexp(-1, keepdim=True), q.logsumexp(-1, keepdim=True)
    return _Divergence(mass.squeeze(-1), other.squeeze(-1), _terms(p - mass, q - other).sum(-1))


def _terms(p: Tensor, q: Tensor) -> Tensor:
    """p d + q - p from log p and log q, without cancellation or overflow: the larger of p and q times a function of |d|
    that is exact to the second order."""
    d = p - q
    size = d.abs()
    decay = torch.expm1(-size)
    small = size + decay
    return torch.maximum(p, q).exp() * torch.where(d >= 0, small, -(small + size * decay))


def _joined_divergences(left: _Divergence, right: _Divergence) -> _Divergence:
    """Two parts as one, by the chain rule."""
    p, q = left.p - right.p, left.q - right.q
    first, second = logsigmoid(p), logsigmoid(-p)  # log of each part's share of p's mass
    between = _terms(first, logsigmoid(q)) + _terms(second, logsigmoid(-q))
    inside = first.exp() * left.divergence + second.exp() * right.divergence
    # Not logaddexp, whose last bit on a CPU depends on where a row lies among the others.
    mass_p, mass_q = (torch.maximum(a, b) - logsigmoid((a - b).abs()) for a, b in zip(left[:2], right[:2], strict=True))
    return _Divergence(mass_p, mass_q, between + inside)


# --- What a GPU needs so that results stay the same: sums that do not depend on the company.
#
# On a GPU the shape of a product or of a sum decides which kernel computes it, and so the order of its terms. Passes
# are padded to a fixed number of tokens by dummy sequences, the last layer runs on all rows, the LM head on chunks of a
# fixed number of rows, and no product of bfloat16 splits its sums. On a CPU with one thread results are independent
# without all this.

HEAD_ROWS = {"cpu": 64, "cuda": 256}  # rows of the LM head's products in a padded pass


@contextlib.contextmanager
def whole_sums() -> Iterator[None]:
    """No product of bfloat16 splits its sums over several blocks of a GPU while this runs.

    cuBLAS, torch's default, cannot be told so: torch 2.13 then ends each product with a RuntimeError that asks for
    cuBLASLt, so that is preferred meanwhile. One shape alone would not do: the blocks of a split may add their parts
    in the order in which they end.
    """
    cuda, name = torch.backends.cuda, "allow_bf16_reduced_precision_reduction"
    before = getattr(cuda.matmul, name), getattr(cuda.matmul, f"{name}_split_k")
    library = cuda.preferred_blas_library() if torch.version.cuda else None  # a build for CPUs has neither
    try:
        if library is not None:
            cuda.preferred_blas_library("cublaslt")
        setattr(cuda.matmul, name, (False, False))  # reduced precision, split-K
        yield
    finally:
        setattr(cuda.matmul, name, before)
        if library is not None:
            cuda.preferred_blas_library(library)
