"""Judge generated molecules, and draw a generator's frontier of quality and diversity."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from molgraph.api.prediction import load
from molgraph.base.contracts import Generator, SamplesUnchecked
from molgraph.base.errors import AmbiguousColumnError, MissingOptionError, UnsupportedError
from molgraph.base.resources import model_path
from molgraph.chem.standardise import preset
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from molgraph.evaluate.generation.generation_report import GenerationReport
from molgraph.evaluate.generation.judge import MOST, Draws, judge_samples, some, standardised
from molgraph.evaluate.generation.sweep import TEMPERATURES, Sweep, sweep_temperatures
from molgraph.generate.generated import Generated
from molgraph.generate.sumo import text_likelihoods
from molgraph.train.model import Model

MODEL = ".mgm"
SCORED = 1_000  # held-out molecules whose likelihood is estimated


def judge_generation(
    samples: Any,
    reference: Any = None,
    train: Any = None,
    *,
    n: int | None = None,
    standardise: str | None = None,
    embedding: str | None = None,
    controls: bool = True,
    likelihood: Any = None,
    parts: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> GenerationReport:
    """Measure how valid, new, diverse and like a reference generated molecules are, beside trivial generators.

    The metrics are MOSES's (Polykovskiy et al. 2020), with GuacaMol's score of property distributions (Brown et al.
    2019) and 95% intervals. Control rows show what a training sample, AddCarbon (Renz et al. 2019) and half of the
    training set against the other half reach.

    Args:
        samples: SMILES as they were drawn, bad ones too: a list, what ``generate`` gave, a file or frame with a column
            of them; or a generator, its file or its name, from which they are drawn.
        reference: molecules that no generator has seen, likewise; of a dataset with parts (``dataset:moses``) its test.
        train: molecules that were learned from; of a dataset with parts its train.
        n: draws that are judged; all by default, at most 10,000.
        standardise: a preset that draws, reference and training molecules all go through before they are compared, such
            as ``standard``; by default that of the generator's file, and of a table ``none``: as they are written.
        embedding: of Fréchet's distance: ``descriptors``, ``fingerprint``, or ``chemnet`` with the package fcd.
        controls: whether to add the control rows, which need ``train``.
        likelihood: molecules that a ``chemvae`` has not seen, likewise, whose ``log p`` under it is estimated without
            bias (SUMO, Luo et al. 2020), beside the lower bound of one point; 1,000 of them at most.
        parts: whether to measure, with a reference, where draws differ from it: in scaffolds, in what is attached to
            them, in properties, or in how these are combined (after Stoller et al. 2020).
        seed: of intervals, controls, and of draws from a generator.
        name: what the row is called.

    Returns:
        The metrics: ``print`` it, ``to_frame``, ``markdown``, ``save("report.html")``.

    Raises:
        DataError: no molecule can be read. UsageError: a name or number that is impossible.

    Example:
        >>> import molgraph
        >>> found = molgraph.judge_generation(["CCO", "OCC", "CCN", "C1C"], train=["CCO", "CCCl"], controls=False)
        >>> found.sentence
        'sample: 4 drawn, 75.0% valid, 66.7% unique, 50.0% novel'
    """
    if isinstance(samples, str | os.PathLike) and model_path(samples).suffix == MODEL:
        samples, name = load(samples), name or Path(samples).stem
    preset = preset_of(samples, standardise)
    if parts and reference is None:
        raise MissingOptionError("parts are compared with a reference", hint="name the molecules: reference=...")
    called, draws = _drawn(samples, n or MOST, seed)
    if likelihood is not None:
        held = standardised(some(molecules_of(likelihood, "test"), SCORED, seed, "likelihood"), preset)
        draws = draws._replace(likelihood=text_likelihoods(generator_of(samples), make_table(held), seed=seed))
    return judge_samples(
        {name or called: draws},
        reference=None if reference is None else molecules_of(reference, "test"),
        train=None if train is None else molecules_of(train, "train"),
        n=n,
        standardiser=preset,
        embedding=embedding,
        controls=controls,
        parts=parts,
        seed=seed,
    )


def temperature_sweep(
    model: Any,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    n: int = 1000,
    reference: Any = None,
    train: Any = None,
    standardise: str | None = None,
    embedding: str | None = None,
    measures: Sequence[str] | None = None,
    seed: int = 0,
    name: str | None = None,
    each: Callable[[Sweep], None] | None = None,
) -> Sweep:
    """Draw from a generator at several temperatures and measure each: its frontier of quality and diversity.

    One temperature says little about a generator, as each trades quality for diversity by it (Caccia et al. 2020);
    ``frontier_report`` compares two generators along their whole frontiers.

    Args:
        model: a generator, its file or its name.
        temperatures: to draw at.
        n: draws at each.
        reference, train, standardise: as ``judge_generation`` has them; metrics that need what is not given are left
            out.
        embedding: of Fréchet's distance.
        measures: names of the metrics; all by default.
        seed: of the draws, the same at each temperature.
        name: what pictures call it.
        each: is called with the sweep so far after each temperature, such as to keep it.

    Returns:
        The metrics: ``to_frame``, ``front``, ``save("frontier.png")``.

    Example:
        >>> import molgraph
        >>> made = molgraph.train_generator("builtin:chembl2321810", model="ngram")
        >>> found = molgraph.temperature_sweep(made, [0.5, 1.0], n=50, measures=["valid", "unique"])
        >>> found.to_frame()["temperature"].tolist()
        [0.5, 1.0]
    """
    if isinstance(model, str | os.PathLike):
        model, name = load(model), name or Path(model).stem
    generator = generator_of(model)
    return sweep_temperatures(
        name or generator.name,
        generator,
        temperatures,
        n=n,
        reference=None if reference is None else molecules_of(reference, "test"),
        train=None if train is None else molecules_of(train, "train"),
        embedding=embedding,
        measures=measures,
        seed=seed,
        standardiser=preset_of(model, standardise),
        each=each,
    )


def molecules_of(source: Any, part: str = "") -> list[str]:
    """The SMILES of a source, every row; of one with parts of its own only the rows of ``part``.

    Raises:
        AmbiguousColumnError: it has no column of molecules, or several.
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        return list(source)
    table = read_table(source)
    if [item.kind for item in table.entities] != ["molecule"]:
        raise AmbiguousColumnError("one column of molecules is needed", hint="name a file with one column of SMILES")
    words = None if table.split is None or not part else [str(item) for item in table.split]
    return [text for i, text in enumerate(table.smiles.tolist()) if words is None or words[i] == part]


def preset_of(model: Any, asked: str | None) -> str:
    """The standardiser asked for, else that of a model, else ``none``."""
    chosen = asked or (model.standardiser if isinstance(model, Model) else "none")
    preset(chosen)
    return chosen


def generator_of(model: Any) -> Generator:
    """A generator, or that of a model or of its file."""
    if isinstance(model, Generator):
        return model
    loaded = model if isinstance(model, Model) else load(model)
    if not isinstance(loaded.method, Generator):
        hint = "train one: molgraph train-generator CORPUS"
        raise UnsupportedError(f"{loaded.kind} proposes no molecules", hint=hint)
    return loaded.method


def _drawn(samples: Any, n: int, seed: int) -> tuple[str, Draws]:
    """What the row is called, and its draws."""
    if isinstance(samples, Generated):
        return "sample", Draws(samples.smiles)
    path = isinstance(samples, str | os.PathLike)
    if isinstance(samples, Generator | Model):
        generator = generator_of(samples)
        unchecked = generator.sample_unchecked(n, seed) if isinstance(generator, SamplesUnchecked) else None
        return generator.name, Draws(generator.sample(n, seed), unchecked)
    return Path(samples).stem if path else "sample", Draws(molecules_of(samples))
