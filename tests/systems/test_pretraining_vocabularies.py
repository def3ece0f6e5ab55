"""Learned vocabularies of atoms: how many codes are used, and how far they tell atoms of one element apart."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from molgraph.data.sources import builtin
from molgraph.nn.atom_tokens import AtomTokeniser
from molgraph.nn.codebook import perplexity
from molgraph.train.inputs import trial_inputs
from molgraph.train.objectives.masked_atoms import elements, whole
from tests.systems.by_hand import pretraining
from tests.systems.effect import Effect

TRAIN, HELD, CARBON = np.arange(4000), np.arange(4000, 4900), 5
ENCODER = 'gin(d_hidden=48, depth=2, norm="none")'


@cache
def codes(quantiser: str, seed: int, n_steps: int = 250) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and elements of the atoms of new molecules, by a tokeniser that learned for so many steps."""
    run = pretraining([str(text) for text in builtin.nci().smiles], "masked-atoms", seed=seed, d_hidden=8, depth=1)
    torch.manual_seed(seed)
    tokeniser = AtomTokeniser(quantiser, trial_inputs("gin")[0].spec, ENCODER).train()
    rng, optimizer = np.random.default_rng(seed), torch.optim.Adam(tokeniser.parameters(), 2e-3)
    for _ in range(n_steps):
        loss = tokeniser(run.samples.sample(rng.choice(TRAIN, 64, replace=False)).parts[0].batch).loss.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    graphs = run.samples.sample(HELD).parts[0].batch
    with torch.no_grad():
        code = tokeniser.eval()(graphs).code
    return code, elements(graphs["atom"].table)[graphs["atom"].code]


def bits(code: torch.Tensor, element: torch.Tensor, n_codes: int, only: int | None = None) -> float:
    """Conditional entropy of the code given the element, or its entropy among the atoms of one."""
    kinds = [only] if only is not None else element.unique().tolist()
    parts = [(float((element == e).double().mean()), code[element == e]) for e in kinds]
    weights = sum(share for share, _ in parts)
    return sum(share * np.log2(perplexity(of, n_codes)) for share, of in parts) / weights


@pytest.mark.system("vq-vae", rung="works")
def test_codes_tell_atoms_of_one_element_apart(off: str, effect: Effect) -> None:
    """Bits of the code of held-out atoms beyond the element, at 64 codes; off: the elements as codes."""
    got = [codes("vq(64)", seed) for seed in range(2)]
    values = [bits(element if off else code[:, 0], element, 64) for code, element in got]
    used = [perplexity(code[:, 0], 64) for code, _ in got]
    effect("entropy of the code given the element, in bits,", values, at_least=1, beside={"codes used": used})


@pytest.mark.system("vq-vae", rung="works")
def test_restarts_keep_codes_in_use(off: str, effect: Effect) -> None:
    """Perplexity of held-out atoms as a share of 64 codes; off: codes that stand for nothing stay where they are."""
    got = [codes("vq(64, dead=0)" if off else "vq(64)", seed) for seed in range(2)]
    values = [perplexity(code[:, 0], 64) / 64 for code, _ in got]
    effect("perplexity as a share of the codes", values, at_least=0.3)


@pytest.mark.system("vq-vae-2", rung="works")
def test_codes_of_two_levels_refine_carbon(off: str, effect: Effect) -> None:
    """Bits of the atoms' codes among carbons, and perplexity of both levels; off: fragments' codes in their place."""
    got = [codes("vq(64, levels=2)", seed) for seed in range(2)]
    one = [bits(codes("vq(64)", seed)[0][:, 0], codes("vq(64)", seed)[1], 64, CARBON) for seed in range(2)]
    values = [bits(element if off else code[:, 1], element, 64, CARBON) for code, element in got]
    used = [perplexity(code[:, 1], 64) / 64 for code, _ in got]
    above = [perplexity(code[:, 0], 64) / 64 for code, _ in got]
    effect("entropy of an atom's code among carbons, in bits,", values, at_least=1.5,
           beside={"one level": one, "share of atoms' codes used": used, "of fragments' codes": above})  # fmt: skip
    assert np.mean(used) > 0.3


@pytest.mark.system("amae", rung="works")
def test_the_diversity_loss_keeps_more_codes_in_use(off: str, effect: Effect) -> None:
    """Perplexity of held-out atoms as a share of 32 codes, with the loss and without it; seeds of its own."""
    names = ["argmax(32, diversity=0)" if off else "argmax(32)", "argmax(32, diversity=0)"]
    values, without = ([perplexity(codes(name, s)[0][:, 0], 32) / 32 for s in (20, 21)] for name in names)
    gains = [a - b for a, b in zip(values, without, strict=True)]
    effect(
        "share of 32 codes in use, above that without the loss", gains, at_least=0.1, beside={"diversity=0": without}
    )


@pytest.mark.system("amae", rung="works", null="250 steps bring a third of 32 codes into use, and not seven tenths")
def test_seven_tenths_of_the_codes_are_in_use(off: str, effect: Effect) -> None:
    values = [perplexity(codes("argmax(32)", s)[0][:, 0], 32) / 32 for s in (20, 21)]
    effect("perplexity as a share of the codes", values, at_least=0.7)


def test_a_masked_batch_is_whole_again() -> None:
    run = pretraining(["CCO", "c1ccccc1"], "masked-atoms(targets=vq(8, levels=2), bonds=true)", d_hidden=8, depth=1)
    plain, masked = run.samples.sample(np.arange(2)).parts[0].batch, run.batch([0, 1]).parts[0].batch
    for level in ("atom", "bond"):
        assert torch.equal(whole(masked).features(level), plain.features(level))
