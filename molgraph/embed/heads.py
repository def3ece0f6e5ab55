"""Put an alignment or a code behind an encoder, so that it writes those in the place of its own vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.errors import BadValueError, FormatError, UnsupportedError
from molgraph.base.paths import atomic_write
from molgraph.chem.identity import molecule_keys
from molgraph.data.read import iter_rows
from molgraph.data.table import Table
from molgraph.embed.align import Alignment, align
from molgraph.embed.binary import BinaryCode, hyperplanes, learn_bits
from molgraph.embed.code import GroundedCode, learn_code, projection
from molgraph.embed.encoder import CHUNK
from molgraph.embed.vectors import read_vectors
from molgraph.train.inference import FittedNetworks
from molgraph.train.model import Model
from molgraph.train.network import Network
from molgraph.train.pretraining import state_outputs

SAMPLE = 20_000  # rows that an alignment or a code is fitted to, at most
FREE = 5_000  # rows without a counterpart that refine an alignment, at most
LONGEST = 4096  # bits of a code
MANY = 4  # anchors for each column, from which nothing is refined
CodeBy = Literal["autoencoder", "projection", "binary", "hyperplanes"]
Code = GroundedCode | BinaryCode
MAKERS: dict[str, Callable[..., Code]] = {
    "autoencoder": learn_code,
    "projection": projection,
    "binary": learn_bits,
    "hyperplanes": hyperplanes,
}


class _Linear(nn.Linear):
    """A linear map in the form of a head."""

    reads_atoms = False

    def forward(self, state: Tensor, extra: Tensor | None = None) -> Tensor:
        return super().forward(state)

    def values(self, raw: Tensor) -> tuple[Tensor, None]:
        return raw, None


def with_head(encoder: Model, head: nn.Module, width: int) -> Model:
    """An encoder that gives ``head(vector)`` of that width in the place of the vector."""
    method: Any = copy(encoder.method)
    fitted = method.ready()
    network = Network(fitted.network.encoders, fitted.network.joiner, head).eval()
    method.fitted = FittedNetworks(network, state_outputs(width), fitted.descriptors, fitted.inputs)
    return Model(method, targets=method.fitted.outputs.targets, standardiser=encoder.standardiser, card=encoder.card)


def aligned(encoder: Model, data: Any, old: Any, columns: Mapping[str, Any]) -> Model:
    """An encoder whose vectors lie in the frame of older ones, by the molecules that both have.

    Args:
        encoder: of one molecule.
        data: the table that is going to be embedded.
        old: vectors with their molecules, as ``molgraph embed`` writes them.
        columns: which columns of ``data`` are which.

    Raises:
        BadValueError: no two molecules in common.
    """
    before = read_vectors(old)
    keys = molecule_keys(before.texts, stereo=True).values
    row_of = {key: row for row, key in reversed([*enumerate(keys)]) if key and before.ok[row]}
    pairs: dict[str, np.ndarray] = {}
    free: list[np.ndarray] = []
    for table in _tables(encoder, data, columns):
        table_keys = molecule_keys(table.smiles, stereo=True).values
        new = [i for i, key in enumerate(table_keys) if key in row_of and key not in pairs]
        rest = [i for i, key in enumerate(table_keys) if key and key not in row_of][: FREE - len(free)]
        chosen = [*new, *rest]
        x, ok = _vectors(encoder, table.take(np.array(chosen, dtype=np.int64)))
        pairs |= {table_keys[i]: x[n] for n, i in enumerate(chosen) if ok[n] and n < len(new)}
        free += [x[n] for n in range(len(new), len(chosen)) if ok[n]]
        if len(pairs) >= min(SAMPLE, len(row_of)):
            break
    rows = np.array([row_of[key] for key in pairs], dtype=np.int64)
    if len(pairs) >= MANY * before.x.shape[1] or not free:  # enough of them: others could only be wrong
        free, others = [], rows[:0]
    else:
        others = np.setdiff1d(np.flatnonzero(before.ok), rows)[:FREE]
    anchors = np.arange(len(pairs)).repeat(2).reshape(-1, 2)
    x = np.array([*pairs.values(), *free]).reshape(len(pairs) + len(free), -1)
    alignment: Alignment = align(x, before.x[np.concatenate([rows, others])], anchors)
    head = _Linear(*alignment.rotation.shape)
    weight = alignment.scale * alignment.rotation
    head.weight.data = torch.from_numpy(weight.T.astype(np.float32))
    head.bias.data = torch.from_numpy((alignment.mean_y - alignment.mean_x @ weight).astype(np.float32))
    return with_head(encoder, head, alignment.rotation.shape[1])


def coded(
    encoder: Model, data: Any, code: int | str | os.PathLike[str], columns: Mapping[str, Any], by: CodeBy, seed: int
) -> tuple[Model, Code]:
    """An encoder that writes short codes: learned from the first 20,000 rows of the data, or read from a file.

    Args:
        encoder: any.
        data: the table that is going to be embedded.
        code: width of the code, or the file of one (``save_code``).
        columns: which columns of ``data`` are which.
        by: ``autoencoder``, or ``projection``: a random one, for comparison; ``binary``, or random ``hyperplanes``: a
            code of -1 and 1, whose width is a number of bits.
        seed: of the code.
    """
    d = int(encoder.method.ready().network.d_state)  # type: ignore[attr-defined]
    if not isinstance(code, int):
        coder = load_code(code, d)
        return with_head(encoder, coder, coder.width), coder
    if by in ("binary", "hyperplanes") and (code % 8 or not 8 <= code <= LONGEST):
        words = f"a binary code of {code} bits is asked for"
        raise BadValueError(words, hint=f"a multiple of 8, from 8 to {LONGEST:,}, such as --code 256")
    if by in ("autoencoder", "projection") and not 1 <= code <= d:
        raise BadValueError(f"a code of width {code} is asked for, of vectors of width {d}", hint=f"1 to {d}")
    parts: list[np.ndarray] = []
    for table in _tables(encoder, data, columns):
        x, ok = _vectors(encoder, table)
        parts.append(x[ok])
        if sum(map(len, parts)) >= SAMPLE:
            break
    x = np.concatenate(parts)[:SAMPLE]
    if len(x) < 2:
        raise BadValueError("no two rows have a vector to learn a code from", hint="give a larger table")
    coder = MAKERS[by](x, code, seed=seed)
    return with_head(encoder, coder, code), coder


def is_binary(encoder: Model) -> bool:
    """Whether what it gives of a row is a code of -1 and 1."""
    return isinstance(encoder.method.ready().network.head, BinaryCode)  # type: ignore[attr-defined]


def save_code(code: Code, path: str | Path) -> None:
    """Write a code as a file of arrays (.npz), for further tables."""
    with atomic_write(Path(path)) as file:
        np.savez_compressed(file, **{name: value.numpy() for name, value in code.state_dict().items()})


def load_code(path: str | os.PathLike[str], d: int) -> Code:
    """The code of a file, for vectors of width d; nothing in the file is run."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: torch.from_numpy(np.asarray(file[name], dtype=np.float32)) for name in file.files}
        bits = "line.bias" in arrays
        coder: Code = (
            BinaryCode(d, len(arrays["line.bias"])) if bits else GroundedCode(d, len(arrays["encoder.line.bias"]))
        )
        coder.load_state_dict(arrays)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        words = f"{path} holds no code of vectors of width {d}"
        raise FormatError(words, hint="give a width, or the .npz file beside coded vectors of this encoder") from error
    return coder.eval()


def _tables(encoder: Model, data: Any, columns: Mapping[str, Any]) -> Iterator[Table]:
    if isinstance(data, str) and data == "-":
        words = "standard input can be read once, and this reads it twice"
        raise UnsupportedError(words, hint="write it into a file first")
    yield from (rows.table for rows in iter_rows(data, chunk_rows=CHUNK, **encoder.how_read(dict(columns))))


def _vectors(encoder: Model, table: Table) -> tuple[np.ndarray, np.ndarray]:
    prediction = encoder.predict_table(table)
    return prediction.value.astype(np.float32), prediction.ok
