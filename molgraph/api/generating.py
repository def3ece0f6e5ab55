"""Train a generator on molecules, and propose new molecules with it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.prediction import load, set_running
from molgraph.base.contracts import Generator
from molgraph.base.errors import UnsupportedError
from molgraph.base.options import takes
from molgraph.base.recipe_keys import GENERATOR_KEYWORDS
from molgraph.base.run_config import RunConfig
from molgraph.generate.conditions import wanted
from molgraph.generate.distinct import SamplesDistinct
from molgraph.generate.generated import Generated, judge
from molgraph.generate.scaffold_constraint import scaffold_kept
from molgraph.run.config import corpus_values
from molgraph.run.corpus import learn_corpus
from molgraph.run.generator import generator_config, generator_of
from molgraph.run.start import start_of
from molgraph.train import training_molecules
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes

TOGETHER = 2.0  # seconds of drawing, after which what was drawn is read


@takes(GENERATOR_KEYWORDS)
def train_generator(
    data: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    recipe: RunConfig | str | Path | None = None,
    workdir: str | Path | None = None,
    **options: Any,
) -> Model:
    """Train a generator on molecules, whose targets are not read but for those that its parameters name.

    A twentieth of the rows, drawn at random, picks the weights and stops the training early.

    Args:
        data: a path (csv, csv.gz, tsv, parquet, sdf, smi), a frame, a list of SMILES, a table, or ``dataset:zinc250k``.
        params: the generator's own parameters, such as ``{"d_hidden": 256}``.
        **options
        recipe: a recipe or its TOML file; keywords given beside it override it.
        workdir: a folder for what a resume needs; the same call goes on there after a kill.

    Returns:
        The generator as a model without targets; ``save`` it, and give it to ``generate``.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> model = molgraph.train_generator("builtin:chembl2321810", params={"d_hidden": 16}, epochs=1)
        >>> found = molgraph.generate(model, 20, seed=1)
        >>> len(found), found.to_frame().columns.tolist()
        (20, ['smiles', 'valid', 'novel', 'reason'])
    """
    config = generator_config(recipe, corpus_values(GENERATOR_KEYWORDS, options, data, params))
    model, table = learn_corpus(data, config, generator_of(config), "a generator of molecules", workdir)
    columns = [table.with_entities([entity.name]) for entity in table.entities]  # of pairs, each of the two molecules
    hashes, start = [*map(molecule_hashes, columns)], start_of(config)
    if start is not None and start.trained_on is not None:
        hashes.append(start.trained_on)
    model.trained_on = training_molecules.distinct(np.concatenate(hashes))
    return model


def generate(
    model: Model | str | os.PathLike[str],
    n: int = 1000,
    *,
    seed: int = 0,
    scaffold: str | None = None,
    want: Mapping[str, float] | str | None = None,
    distinct: bool = False,
    temperature: float | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Generated:
    """Propose molecules with a trained generator.

    Args:
        model: a generator, or the path of its file.
        n: how many; some may be no molecules.
        seed: the same seed gives the same list.
        scaffold: SMILES with open points, such as ``"c1ccc([*:1])cc1"``, that every molecule has and that a language
            model decorates there alone; ``"OC[*:1].[*:1]C1CC1"`` for two fragments that it joins by a chain.
        want: properties that a language model trained with ``condition`` is asked for, ``{"logp": 3}``.
        distinct: draw different texts without replacement, fewer where there are no more, with a weight each: the sum
            of weight times value estimates the mean of independent draws without bias; divided by the sum of the
            weights it has less spread. Different texts may be one molecule.
        temperature: below 1 likely molecules come more often, above 1 more rarely; None for the model's own.
        device, threads: where it runs; the CPU and all threads if not given.

    Returns:
        The SMILES in the order in which they were drawn, and which of them are valid, unique and novel.

    Raises:
        UsageError: the model is no generator, or a value that is impossible.
    """
    running: dict[str, Any] = {"temperature": temperature, "device": device, "threads": threads}
    settings: dict[str, Any] = {"seed": seed, "scaffold": scaffold, "want": want, "distinct": distinct}
    return Generated.joined([*generate_pieces(model, n, **settings, **running)])


def generate_pieces(
    model: Model | str | os.PathLike[str],
    n: int,
    *,
    seed: int = 0,
    scaffold: str | None = None,
    want: Mapping[str, float] | str | None = None,
    distinct: bool = False,
    **running: Any,
) -> Iterator[Generated]:
    """The molecules of ``generate`` in pieces, each as soon as it is drawn and read, for a run that may be stopped.

    A piece has what was drawn in some seconds: a longer one is read by several processes.
    """
    loaded = model if isinstance(model, Model) else load(model)
    generator = loaded.method
    if not isinstance(generator, Generator):
        raise UnsupportedError(
            f"{loaded.kind} predicts molecules and proposes none", hint="train one: molgraph train-generator CORPUS"
        )
    before = generator.get_params()
    try:
        set_running(generator, running)
        with scaffold_kept(generator, scaffold), wanted(generator, want):
            if distinct:
                yield _distinct(loaded, n, seed)
                return
            texts, begun = list[str](), time.monotonic()
            for piece in generator.pieces(n, seed):
                texts += piece
                if time.monotonic() - begun >= TOGETHER:
                    yield judge(texts, loaded.trained_on, loaded.standardiser)
                    texts, begun = [], time.monotonic()
            yield judge(texts, loaded.trained_on, loaded.standardiser)
    finally:
        generator.set_params(**before)


def _distinct(model: Model, n: int, seed: int) -> Generated:
    """Texts that are drawn without replacement."""
    generator = model.method
    if not isinstance(generator, SamplesDistinct):
        words = f"{model.kind} draws no distinct texts: language models do"
        raise UnsupportedError(words, hint="leave --distinct out, or train one: molgraph train-generator -m language")
    texts, weight = generator.sample_distinct(n, seed)
    return replace(judge(texts, model.trained_on, model.standardiser), weight=weight)
