"""Match two kinds of description: MIL-NCE of bags of positives, and rows of one that attend to rows of the other."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def mil_nce(scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """InfoNCE with a bag of positives for each anchor, of which any may be the relevant one.

    Akbari et al. 2021, "VATT", equation 5 (Miech et al. 2020): ``-log(sum_P exp s / (sum_P exp s + sum_N exp s))``;
    with one positive it is the cross-entropy. 0 where an anchor has no positive.

    Args:
        scores: of n anchors and m candidates.
        positive: which candidates are the anchor's; the others are its negatives.

    Example:
        >>> mil_nce(torch.zeros(1, 4), torch.tensor([[True, True, False, False]]))
        tensor([0.6931])
    """
    bag = scores.masked_fill(~positive, float("-inf")).logsumexp(dim=1)
    return torch.where(positive.any(dim=1), scores.logsumexp(dim=1) - bag, 0.0)


def padded(
    h: Float[Tensor, "rows d"], graph_of: Int[Tensor, " rows"], n: int
) -> tuple[Float[Tensor, "{n} most d"], Bool[Tensor, "{n} most"]]:
    """Rows of n graphs side by side: float [n, most, d], 0 past the last one, and bool [n, most], where rows are.

    Args:
        h: the rows, in any order.
        graph_of: the graph of each.
        n: graphs.
    """
    order = torch.argsort(graph_of, stable=True)
    counts = torch.bincount(graph_of, minlength=n)
    starts = counts.cumsum(0) - counts
    graph = graph_of.index_select(0, order)
    place = torch.arange(len(h), device=h.device) - starts.index_select(0, graph)
    out = h.new_zeros(n, int(counts.max()) if len(h) else 1, h.shape[1])
    mask = torch.zeros(out.shape[:2], dtype=torch.bool, device=h.device)
    out[graph, place], mask[graph, place] = h.index_select(0, order), True
    return out, mask


def attention_scores(
    words: Float[Tensor, "n t d"],
    is_word: Bool[Tensor, "n t"],
    regions: Float[Tensor, "m r d"],
    is_region: Bool[Tensor, "m r"],
    gamma_1: float,
    gamma_2: float,
) -> Float[Tensor, "n m"]:
    """How well each text matches each picture, by the regions that each word attends to: DAMSM.

    Xu et al. 2018, "AttnGAN" (CVPR), equations 7 to 10: with ``s = e' v``, normalised by a softmax over the words,
    a word's context is ``c_i = sum_j a_ij v_j``, ``a_ij = softmax_j(gamma_1 s_ij)``, and the score is
    ``log(sum_i exp(gamma_2 cos(c_i, e_i))) / gamma_2``. Here a word is a residue of a protein and a region is an atom
    of a ligand. With one of each it is their cosine. The order of words and of regions does not count.

    Args:
        words: e of n texts.
        is_word: where there are any.
        regions: v of m pictures.
        is_region: where there are any.
        gamma_1: how sharply a word attends.
        gamma_2: how much the words that match best count, their largest alone where it is large.
    """
    weights = attention(words, is_word, regions, is_region, gamma_1)
    context = torch.einsum("nmtr,mrd->nmtd", weights, regions)
    cosine = F.cosine_similarity(context, words[:, None], dim=3)
    logits = (gamma_2 * cosine).masked_fill(~is_word[:, None], float("-inf"))
    return logits.logsumexp(dim=2) / gamma_2


def attention(
    words: Float[Tensor, "n t d"],
    is_word: Bool[Tensor, "n t"],
    regions: Float[Tensor, "m r d"],
    is_region: Bool[Tensor, "m r"],
    gamma_1: float,
) -> Float[Tensor, "n m t r"]:
    """The weights a of the regions of each picture for the words of each text; they sum to 1 over the regions."""
    s = torch.einsum("ntd,mrd->nmtr", words, regions)
    low = torch.finfo(s.dtype).min
    over_words = s.masked_fill(~is_word[:, None, :, None], low).softmax(dim=2)
    return (gamma_1 * over_words).masked_fill(~is_region[None, :, None, :], low).softmax(dim=3)
