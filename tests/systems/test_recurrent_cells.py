"""Recurrent cells beyond those of torch: their equations against it and by hand, and NLL of a language of SMILES."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.auxiliary.study.parse import agreement, distances, nesting, untrained
from molgraph.nn.sequence import make_sequence
from molgraph.nn.sequences.on_lstm import cumax
from tests.systems.effect import Effect
from tests.systems.smiles_nll import RNN, SEEDS, held_out, nll, trained

D_IN, D, T = 3, 8, 12


def tokens(n: int = 4, t: int = T) -> Tensor:
    return torch.randn(n, t, D_IN, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@torch.no_grad()
def layers(name: str, n_layers: int = 1, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return make_sequence(name, D_IN, D, n_layers).double()


@pytest.mark.system("janet", rung="exact")
def test_a_forget_gate_alone_by_hand_and_what_it_retains(off: str) -> None:
    """Equation 6 in numpy; without input ``((T - 1) / T)^T`` is left; two thirds of a GRU's matrices."""
    made, x = layers("janet(t_max=50)"), tokens(1)
    cell = made.cells[0]
    w, u, b = (p.detach().numpy() for p in (cell.enter.weight, cell.recur.weight, cell.enter.bias))
    h, expected = np.zeros(D), []
    for token in x[0].numpy():
        s, candidate = np.split(w @ token + u @ h + b, 2)
        forget, write = 1 / (1 + np.exp(-s)), 1 - 1 / (1 + np.exp(-(s - 1.0)))
        h = (0 if off else forget) * h + write * np.tanh(candidate)
        expected.append(h)
    np.testing.assert_allclose(made(x)[0][0].detach().numpy(), expected, atol=1e-12)
    with torch.no_grad():
        assert cell.enter.bias[:D].min() >= 0 and cell.enter.bias[:D].max() <= np.log(49)
        nn.init.zeros_(cell.enter.weight), nn.init.zeros_(cell.recur.weight)
        cell.enter.bias[:D] = float(np.log(49))
        kept = made(tokens(1, 50), state=[torch.ones(1, D, dtype=torch.float64)])[1][0]
    np.testing.assert_allclose(kept.numpy(), (49 / 50) ** 50, rtol=1e-12)
    matrices = [sum(p.numel() for p in part.parameters() if p.dim() == 2) for part in (made, layers("gru"))]
    assert 3 * matrices[0] == 2 * matrices[1]


@cache
def recall(how: str, seed: int) -> float:
    """Accuracy on the first of 8 symbols after 60 tokens of noise; ``zero``: biases that begin at 0."""
    torch.manual_seed(seed)
    parts: Any = nn.ModuleList(
        [make_sequence("gru" if how == "gru" else "janet(t_max=64)", 8, 32, 1), nn.Linear(32, 8)]
    )
    if how == "zero":
        nn.init.zeros_(parts[0].cells[0].enter.bias)
    optimiser, areas = torch.optim.Adam(parts.parameters(), 5e-3), list[float]()
    for step in range(240):
        first = torch.randint(8, (64,))
        x = 0.1 * torch.randn(64, 60, 8)
        x[:, 0] = nn.functional.one_hot(first, 8).float()
        scores = parts[1](parts[0](x)[0][:, -1])
        optimiser.zero_grad()
        nn.functional.cross_entropy(scores, first).backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 1.0)
        optimiser.step()
        areas += [float((scores.argmax(dim=1) == first).float().mean())] if step >= 220 else []
    return float(np.mean(areas))


@pytest.mark.system("janet", rung="works")
def test_biases_by_length_remember_the_first_of_sixty_tokens(off: str, effect: Effect) -> None:
    """The chrono initialisation, beside biases of 0 and a GRU with torch's initialisation."""
    own, zero, gru = ([recall(how, seed) for seed in SEEDS] for how in ("janet", "zero", "gru"))
    effect("accuracy after 60 tokens", zero if off else own, at_least=0.9, beside={"biases of 0": zero, "gru": gru})


@pytest.mark.system("janet", rung="works")
def test_its_nll_is_that_of_a_gru(off: str, effect: Effect) -> None:
    """The twin is a cell whose gate is shut: a plain recurrent network."""
    own = [nll(RNN if off else "janet", seed) for seed in SEEDS]
    gru = [nll("gru", seed) for seed in SEEDS]
    ratio = [a / b for a, b in zip(own, gru, strict=True)]
    effect("NLL of a token as a share of a GRU's", ratio, at_most=1.05, beside={"janet": own, "gru": gru})


@pytest.mark.system("mogrifier", rung="exact")
@pytest.mark.parametrize("rounds", [0, 4, 5])
def test_rounds_gate_input_and_state_in_turn(off: str, rounds: int) -> None:
    """By hand around ``nn.LSTMCell``; with matrices of zeros, or 0 rounds, torch's own LSTM of two layers."""
    made, x = layers(f"mogrifier(rounds={rounds})"), tokens()
    cell = made.cells[0]
    h, c, expected = x.new_zeros(4, D), x.new_zeros(4, D), []
    with torch.no_grad():
        for token in x.unbind(1):
            row = token
            for i, gate in enumerate([] if off else cell.rounds, 1):
                if i % 2:
                    row = 2 * (h @ gate.weight.T).sigmoid() * row
                else:
                    h = 2 * (row @ gate.weight.T).sigmoid() * h
            h, c = cell.cell(row, (h, c))
            expected.append(h)
        assert not off or rounds, "without rounds it is the LSTM"
        torch.testing.assert_close(made(x)[0], torch.stack(expected, dim=1), atol=1e-12, rtol=0)
        plain, deep = nn.LSTM(D_IN, D, 2, batch_first=True).double(), layers(f"mogrifier(rounds={rounds})", 2)
        for i, each in enumerate(deep.cells):
            for name, value in each.cell.named_parameters():
                value.copy_(getattr(plain, f"{name}_l{i}"))
            for gate in each.rounds:
                nn.init.zeros_(gate.weight)
        torch.testing.assert_close(deep(x)[0], plain(x)[0], atol=1e-12, rtol=0)


@pytest.mark.system("mogrifier", rung="works")
def test_its_nll_is_below_that_of_an_lstm_of_as_many_weights(off: str, effect: Effect) -> None:
    """At equal epochs, of few; a token takes about three times as long."""
    own = [nll("lstm" if off else "mogrifier", seed) for seed in SEEDS]
    lstm = [nll("lstm", seed) for seed in SEEDS]
    ratio = [a / b for a, b in zip(own, lstm, strict=True)]
    effect("NLL of a token as a share of an LSTM's", ratio, at_most=0.97, beside={"mogrifier": own, "lstm": lstm})


@pytest.mark.system("on-lstm", rung="exact")
def test_master_gates_bound_the_gates_of_an_lstm(off: str) -> None:
    """Equations 9 to 14 in numpy, chunk by chunk; with master gates that are open at all levels it is the LSTM."""
    made, x = layers("on_lstm(chunk=2)"), tokens(1)
    cell = made.cells[0]
    w, u, b = (p.detach().numpy() for p in (cell.enter.weight, cell.recur.weight, cell.enter.bias))
    h, c, expected, apart = np.zeros(D), np.zeros(D), [], []
    for token in x[0].numpy():
        a = w @ token + u @ h + b
        masters = [np.cumsum(np.exp(part) / np.exp(part).sum()) for part in (a[:4], a[4:8])]
        assert all((np.diff(m) > 0).all() and abs(m[-1] - 1) < 1e-12 for m in masters)
        f_master, i_master = np.repeat(masters[0], 2), np.repeat(1 - masters[1], 2)
        f, i, o = 1 / (1 + np.exp(-a[8:32].reshape(3, D)))
        both = f_master * i_master
        f_hat, i_hat = (f, i) if off else (f * both + f_master - both, i * both + i_master - both)
        assert ((f_hat >= 0) & (f_hat <= 1) & (i_hat >= -1e-12) & (i_hat <= 1)).all()
        c = f_hat * c + i_hat * np.tanh(a[32:])
        h = o * np.tanh(c)
        expected.append(h)
        apart.append(4 - masters[0].sum())
    np.testing.assert_allclose(made(x)[0][0].detach().numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(made.distances(x)[0].detach().numpy(), apart, atol=1e-12)
    assert (cumax(torch.randn(5, 9).double()).diff(dim=1) >= 0).all()


def tree(model: Any) -> float:
    texts = held_out()
    depth = [nesting(text).sum(axis=1)[:-1] for text in texts]
    return abs(agreement(distances(model, ["".join(text) for text in texts]), depth))


@pytest.mark.system(
    "on-lstm", rung="works", null="no further than without training, by 1,000 molecules and 12 epochs of two layers"
)
def test_distances_follow_branches_and_rings(off: str, effect: Effect) -> None:
    models = [trained("on_lstm", seed) for seed in SEEDS]
    plain = [tree(untrained(model, seed)) for seed, model in enumerate(models)]
    own = plain if off else [tree(model) for model in models]
    lstm = [nll("lstm", seed) for seed in SEEDS]
    ratio = [nll("on_lstm", seed) / b for seed, b in zip(SEEDS, lstm, strict=True)]
    beside = {"untrained": plain, "NLL as a share of an LSTM's": ratio}
    effect("|Spearman| of distances with open branches and rings", own, at_least=0.3, beside=beside)
