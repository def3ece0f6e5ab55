"""Read molecules as a trained sequence VAE scores them: tokens, states of its encoder, and which rows have any."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import read_part
from molgraph.base.registry import get
from molgraph.data.table import Table
from molgraph.generate.alphabets import write_tokens
from molgraph.generate.chemvae import ENCODED, ChemVAE
from molgraph.generate.next_token import shifted
from molgraph.generate.vae_samples import padded
from molgraph.train.runtime import resolve_device


class VAETexts(NamedTuple):
    """Texts of m rows.

    Args:
        rows: int64 [m], those of the table that have tokens.
        reason: object [n], why a row has none.
        code, lengths: int64 [m, longest] and [m], tokens with 0 behind the last.
        given, target: int64 [m, longest + 1], as ``next_token.shifted`` gives them.
    """

    rows: np.ndarray
    reason: np.ndarray
    code: Tensor
    lengths: Tensor
    given: Tensor
    target: Tensor

    def states(self, network: Any) -> Tensor:
        """float [m, d_hidden], the states of the encoder."""
        parts = zip(self.code.split(ENCODED), self.lengths.split(ENCODED), strict=True)
        return torch.cat([network.encoder(code, lengths) for code, lengths in parts])


def vae_texts(made: Any, table: Table) -> VAETexts:
    """The texts of a table's molecules as a sequence VAE reads and writes them.

    Raises:
        UnsupportedError: a generator that gives texts no likelihood by a vector, or whose vectors are codes or have a
            prior that depends on the molecule.
    """
    hint = "train one that has it: molgraph train-generator CORPUS -m chemvae"
    if not isinstance(made, ChemVAE):
        raise UnsupportedError(f"{made.name} gives a molecule no likelihood by its latent vector", hint=hint)
    depends = read_part(made.prior).name != "normal"
    if get("bottleneck", read_part(made.posterior).name).discrete or depends:
        words = f"no molecule may change the prior, and {made.posterior} beside {made.prior} has none of that kind"
        raise UnsupportedError(words, hint="use a generator of params.posterior gaussian, planar, radial or coupling")
    tokens = made.ready().vocabulary.tokens
    written = write_tokens(table, made.tokens, made.max_length, tokens, label="reading")
    rows = np.flatnonzero(written.ok)
    device = resolve_device(made.device)
    if not len(rows):
        empty = torch.zeros((0, 1), dtype=torch.int64, device=device)
        return VAETexts(rows, written.reason, empty, empty[:, 0].cpu(), empty, empty)
    code, lengths = padded([written.tokens[row] for row in rows], tokens)
    flat = torch.cat([text[:n] for text, n in zip(code, lengths.tolist(), strict=True)])
    given, target = shifted(flat, F.pad(lengths.cumsum(0), (1, 0)))
    return VAETexts(rows, written.reason, code.to(device), lengths, given.to(device), target.to(device))
