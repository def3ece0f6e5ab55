"""Encode molecules into a generator's latent space, decode vectors, interpolate, and find neighbours."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pandas as pd

from molgraph.api.latent_vectors import AXIS, read_vectors
from molgraph.api.prediction import load, set_running
from molgraph.base.contracts import Generator, LatentGenerator
from molgraph.base.errors import BadValueError, CellError, UnsupportedError
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import tanimoto
from molgraph.data.standardise import standardise
from molgraph.data.table import make_table
from molgraph.generate.brownian_bridge import brownian_bridges
from molgraph.generate.generated import judge
from molgraph.generate.map_latent import refine_latents
from molgraph.train.model import Model

Source = Model | str | os.PathLike[str]
PATHS = ("spherical", "linear", "bridge")
SPREADS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # how far from a molecule its neighbours are sought, nearest first


def encode(
    model: Source,
    data: Any,
    *,
    refine: int = 0,
    device: str | None = None,
    threads: int | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Give the latent vector of each molecule, the mean of its posterior, row for row and in order.

    Args:
        model: a generator with a latent space, or the path of its file.
        data: molecules in any form that ``Model.predict`` takes.
        refine: steps of gradient ascent from that mean to the vector under which the molecule is most likely
            (``argmax_z log p(x, z)``, after Schimel et al. 2022), of a ``chemvae``.
        device, threads: where it runs; the CPU and all threads if not given.
        columns: ``smiles`` and ``id``, the columns of data.

    Returns:
        The columns id, smiles, reason (why a row has no vector; else empty) and z0, z1, ...; of refined
        vectors also gain, by how many nats ``log p(x, z)`` has risen.

    Raises:
        UnsupportedError: the model has no latent space, or gives molecules no likelihood by it.

    Example:
        >>> import molgraph
        >>> small = {"d_latent": 4, "d_hidden": 16}
        >>> model = molgraph.train_generator("builtin:chembl2321810", model="chemvae", params=small, epochs=1)
        >>> found = molgraph.encode(model, ["c1ccccc1", "C1C"])
        >>> found.columns.tolist(), found["z0"].notna().tolist()
        (['id', 'smiles', 'reason', 'z0', 'z1', 'z2', 'z3'], [True, False])
        >>> molgraph.decode(model, found).columns.tolist()
        ['id', 'smiles', 'valid', 'reason']
    """
    with _running(model, device=device, threads=threads) as (loaded, generator):
        table = loaded.read(data, **columns)
        read = standardise(table, loaded.standardiser)
        refined = refine_latents(generator, read, refine) if refine else None
        encoding = generator.encode(read) if refined is None else refined.latents
    frame = pd.DataFrame({"id": table.ids, "smiles": table.smiles, "reason": encoding.reason})
    axes = pd.DataFrame(encoding.mean, columns=[f"{AXIS}{i}" for i in range(generator.d_latent)])
    gain = pd.DataFrame({} if refined is None else {"gain": refined.after - refined.before})
    return pd.concat([frame, axes, gain], axis=1)


def decode(
    model: Source,
    latents: Any,
    *,
    seed: int = 0,
    temperature: float | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """Write the molecule of each latent vector, row for row and in order.

    Args:
        model: a generator with a latent space, or the path of its file.
        latents: float [n, width], or what ``encode`` gave: a frame, or a csv, parquet or npy file.
        seed: the same seed gives the same molecules.
        temperature: below 1 likely choices come more often, above 1 more rarely; None for the model's own.
        device, threads: where it runs; the CPU and all threads if not given.

    Returns:
        The columns id, smiles (as it was drawn), valid, and reason: why it is no molecule, or why there was no vector.

    Raises:
        DataError: no vectors of this model's width are found.
        UnsupportedError: the model has no latent space.
    """
    with _running(model, temperature=temperature, device=device, threads=threads) as (_, generator):
        ids, z, missing = read_vectors(latents, generator.d_latent)
        texts = generator.decode(np.where((missing != "")[:, None], 0.0, z), seed)
    texts = ["" if problem else text for text, problem in zip(texts, missing, strict=True)]
    frame = judge(texts, None).to_frame()
    frame["reason"] = np.where(missing != "", missing, frame["reason"])
    frame.insert(0, "id", ids)
    return frame


def interpolate(
    model: Source,
    a: str,
    b: str,
    *,
    steps: int = 9,
    path: Literal["spherical", "linear", "bridge"] = "spherical",
    paths: int = 1,
    spread: float = 1.0,
    seed: int = 0,
    temperature: float | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """Decode the points on the way from one molecule's latent vector to another's.

    Args:
        model: a generator with a latent space, or the path of its file.
        a, b: SMILES.
        steps: points, both ends among them.
        path: ``spherical`` keeps to the lengths that vectors of the prior have (White 2016, arXiv:1609.04468);
            ``linear`` is the straight line; ``bridge`` is random, a Brownian bridge (R. E. Wang et al. 2022).
        paths: bridges, each with points of its own.
        spread: of a bridge, in standard deviations of the prior: half of it in the middle of the way, 0 at its ends.
        seed, temperature, device, threads: as for ``decode``.

    Returns:
        A row for each point: the columns path (of bridges, from 0), share (of the way), smiles, valid, reason, and the
        Tanimoto similarity to each end, ``like_a`` and ``like_b`` (Morgan fingerprints of radius 2). The first and the
        last row are decoded too, and need not be the ends themselves.

    Raises:
        CellError: an end cannot be encoded.
        UsageError: the model has no latent space, fewer than 2 steps are asked for, or several paths that are equal.
    """
    if steps < 2 or path not in PATHS:
        raise BadValueError(f"a path of {steps} steps, {path}", hint=f"2 steps or more, {', '.join(PATHS)}")
    if paths < 1 or spread < 0 or (paths > 1 and path != "bridge"):
        words = f"{paths} paths of spread {spread}, {path}"
        raise BadValueError(words, hint="several paths are bridges (path='bridge'), with a spread of 0 or more")
    with _running(model, temperature=temperature, device=device, threads=threads) as (loaded, generator):
        ends = _points(loaded, generator, [a, b])
        share = np.linspace(0, 1, steps).round(6)
        if path == "bridge":
            z = brownian_bridges(ends[0], ends[1], share, paths, spread, seed).reshape(paths * steps, -1)
        else:
            z = slerp(ends[0], ends[1], share) if path == "spherical" else linear(ends[0], ends[1], share)
        frame = judge(generator.decode(z, seed), None).to_frame()
    frame.insert(0, "share", np.tile(share, paths))
    if path == "bridge":
        frame.insert(0, "path", np.repeat(np.arange(paths), steps))
    similarity = _similarity(frame["smiles"].tolist(), [a, b])
    frame["like_a"], frame["like_b"] = similarity.astype(float).round(4).T
    return frame


def neighbours(
    model: Source,
    smiles: str,
    n: int = 20,
    *,
    seed: int = 0,
    temperature: float | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """Find valid molecules near one in latent space: points around it are decoded, ever farther until there are n.

    Args:
        model: a generator with a latent space, or the path of its file.
        smiles: the molecule.
        n: how many others, at most; fewer where those are all that 100 points for each of them hold.
        seed, temperature, device, threads: as for ``decode``.

    Returns:
        A row for each distinct molecule, the most similar first: smiles (canonical), similarity (Tanimoto of Morgan
        fingerprints of radius 2), and spread, how far from the molecule the first of its points lay, in standard
        deviations of the prior.

    Raises:
        CellError: the molecule cannot be encoded.
        UsageError: the model has no latent space, or no molecule is asked for.
    """
    if n < 1:
        raise BadValueError(f"{n} neighbours", hint="ask for 1 or more")
    spread_of: dict[str, float] = {}
    with _running(model, temperature=temperature, device=device, threads=threads) as (loaded, generator):
        centre, origin = _points(loaded, generator, [smiles])[0], judge([smiles], None).canonical[0]
        for spread in SPREADS:
            for turn in range(4):
                if len(spread_of) >= n:
                    break
                texts = generator.decode(generator.around(centre, 4 * n, spread, seed + turn), seed + turn)
                for text in judge(texts, None).canonical:
                    if text and text != origin and len(spread_of) < n:
                        spread_of.setdefault(text, spread)
    similarity = _similarity([*spread_of], [smiles])[:, 0].astype(float).round(4)
    frame = pd.DataFrame({"smiles": [*spread_of], "similarity": similarity, "spread": [*spread_of.values()]})
    return frame.sort_values("similarity", ascending=False, kind="stable", ignore_index=True)


def linear(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    """float [n, d]: points on the straight line from a to b."""
    return np.asarray(a + share[:, None] * (b - a))


def slerp(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    """float [n, d]: points on the great circle from a to b, whose lengths change evenly; a line where they are aligned.

    Example:
        >>> slerp(np.array([1.0, 0.0]), np.array([0.0, 3.0]), np.array([0.0, 0.5, 1.0])).round(2).tolist()
        [[1.0, 0.0], [1.41, 1.41], [0.0, 3.0]]
    """
    lengths = np.linalg.norm(a), np.linalg.norm(b)
    line = linear(a, b, share)
    if min(lengths) < 1e-12:
        return line
    angle = np.arccos(np.clip(a @ b / (lengths[0] * lengths[1]), -1, 1))
    if min(angle, np.pi - angle) < 1e-6:
        return line
    turned = np.sin((1 - share) * angle)[:, None] * a / lengths[0] + np.sin(share * angle)[:, None] * b / lengths[1]
    return np.asarray(turned / np.sin(angle) * ((1 - share) * lengths[0] + share * lengths[1])[:, None])


@contextmanager
def _running(model: Source, **running: Any) -> Iterator[tuple[Model, LatentGenerator]]:
    """A model and its generator, set to run as asked and as it was before at the end."""
    loaded = model if isinstance(model, Model) else load(model)
    generator = loaded.method
    if not isinstance(generator, LatentGenerator):
        kind = "proposes molecules without" if isinstance(generator, Generator) else "is no generator with"
        hint = "train one that has it: molgraph train-generator CORPUS -m chemvae"
        raise UnsupportedError(f"{loaded.kind} {kind} a latent space", hint=hint)
    before = generator.get_params()
    try:
        set_running(generator, running)
        yield loaded, generator
    finally:
        generator.set_params(**before)


def _points(model: Model, generator: LatentGenerator, smiles: Sequence[str]) -> np.ndarray:
    """The vectors of molecules, each of which must have one."""
    encoding = generator.encode(standardise(make_table(list(smiles)), model.standardiser))
    for text, flaw in zip(smiles, encoding.reason, strict=True):
        if flaw:
            raise CellError(f"{text!r} has no latent vector: {flaw}", hint="give a molecule like those it learned from")
    return encoding.mean


def _similarity(smiles: Sequence[str], others: Sequence[str]) -> np.ndarray:
    """float [n, m], Tanimoto; NaN for texts that are no molecules."""
    mine, theirs = morgan(list(smiles)), morgan(list(others))
    similarity = np.full((len(smiles), len(others)), np.nan)
    if mine.ok.any():
        similarity[mine.ok] = tanimoto(mine.x[mine.ok], theirs.x)
    return similarity
