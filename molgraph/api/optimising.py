"""Search for molecules that are better by an oracle."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.api.prediction import load, set_running
from molgraph.base.cluster import Cluster, check_engine
from molgraph.base.contracts import Generator, LatentGenerator
from molgraph.base.errors import BadValueError, EmptyError, MissingOptionError, UnsupportedError
from molgraph.chem.identity import canonical_smiles
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.generate.auto_control import choose_control, is_auto
from molgraph.generate.control import judge, make_control
from molgraph.generate.known import read_known, value_known
from molgraph.generate.optimised import Optimised, annotated, best_so_far, constant_note, ranked, rows_of, shapes_of
from molgraph.generate.oracles.calls import SECONDS, OracleCalls
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.on_cluster import OracleCluster
from molgraph.generate.oracles.oracle import Oracle
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.oracles.similarity import Nearest, Similarity
from molgraph.generate.oracles.stages import make_calls
from molgraph.generate.oracles.term import Term
from molgraph.generate.rewards.reward import make_rewards
from molgraph.generate.run_search import Proposed, run_search, standard_starts
from molgraph.generate.scaffold_constraint import scaffold_kept
from molgraph.generate.searches.search import Search, make_search
from molgraph.train.card import now
from molgraph.train.model import Model

logger = logging.getLogger("molgraph")


def optimise(
    model: Model | str | os.PathLike[str] | None = None,
    oracle: str | Path | Oracle | Callable[[str], float] | Mapping[str, Any] = "qed",
    *,
    search: str | None = None,
    budget: int = 1000,
    start: str | Sequence[str] = (),
    similarity: float | None = None,
    scaffold: str | None = None,
    known: Any = None,
    reference: Any = None,
    max_distance: float | None = None,
    control: Any = None,
    compare: bool = True,
    reward: str | None = None,
    batch: int | None = None,
    diversity: float = 0.5,
    seconds: float = SECONDS,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    temperature: float | None = None,
    device: str | None = None,
    threads: int | None = None,
    precision: str | None = None,
    journal: str | Path | None = None,
    report: str | Path | None = None,
    learned: str | Path | None = None,
    engine: str = "local",
    objective: Any = None,
) -> Optimised:
    """Search for molecules that are better by an oracle.

    Args:
        model: a generator, or the path of its file. ``ascent``, ``bayes`` and ``cyclegan`` move in its latent space;
            ``reinvent`` and others train a copy of a language model, of the one that ships where none is named;
            ``graph-ga`` takes its draws as the first molecules, and needs none: without it molecules go through the
            preset ``standard``, and where no start or known molecule is named either, those of RDKit's NCI list come
            first. ``sampling`` draws from the generator, or from that list.
        oracle: ``"qed"``, ``"qed:1,sa<4"``, ``"assay.mgm#pIC50:1,alerts<1"``, ``"./mine.py:function"``, a TOML file, a
            mapping of the same, or a function of one SMILES. Molecules outside a bound are kept, behind those within;
            bounds that are read off the structure (similarity, RDKit's properties) are checked before a call, and no
            call is spent outside them.
        search: a registered search; ``molgraph.names("search")``. If not given, ``ascent`` of a generator with a latent
            space, else ``reinvent``.
        budget: oracle calls; a call is a distinct molecule.
        start: a molecule to begin at, or several. It is scored and compared with after the generator's preset, as
            everything that is proposed: without salts and charges.
        similarity: the lowest Tanimoto similarity to the start that a molecule may have.
        scaffold: SMILES with open points, ``"c1ccc([*:1])cc1"``, that a language model keeps and decorates there alone;
            ``"OC[*:1].[*:1]C1CC1"`` for two fragments that it joins by a chain.
        known: a table of molecules that the search learns from before its first call, and that are never called. A
            part of the oracle has its values in a column of its name, or of its model's target; others are computed,
            outside the budget. Rows without a value or a latent vector are counted in ``notes``.
        reference: a table of molecules, best the property model's training table: the nearest of them to each result is
            shown; ``known`` if not given.
        max_distance: the largest ``1 - similarity`` to the nearest molecule of ``reference``, beyond which the property
            model is not trusted.
        control: a second opinion that the search does not see: a model (``.mgm``), or a table with the target of the
            oracle's model, on whose molecules a random forest is trained but for those that the model learnt from.
            ``"auto"`` trains several methods on ``known`` or ``reference``, ``"auto(a.mgm, b.mgm)"`` takes these: the
            one that is least aligned with the oracle's model is the control.
        compare: also sample as many molecules without learning, for comparison.
        reward: terms that the search sees added to the scores, joined by ``+``, such as ``"scaffold-filter"``;
            ``molgraph.names("reward")``. What is kept and printed stays the oracle's.
        batch: molecules scored between two proposals of the search; its own number if not given.
        diversity: weight of a batch's determinantal diversity, 0 to 1; at 0 the most promising proposals are scored.
        seconds: how long an oracle call may take.
        seed: the same seed gives the same molecules.
        params: the search's own parameters.
        temperature: of decoding; the model's own if not given.
        device, threads: where the generator runs.
        precision: ``float32``, or ``bfloat16``, with which a language model trains 1.6 times as fast on processors that
            have it; the model's own if not given.
        journal: a file that keeps the calls, so that the same call goes on after a kill, and searches by the same
            oracle share them. A function needs a version for it: ``FunctionOracle(function, version="1")``.
        report: an HTML page to write.
        learned: a file (.mgm) for the language model that the search trained: of ``shared-prior`` the prior.
        engine: where the oracle scores: ``local``, or ``ray`` for the processes of a Ray cluster, each molecule of a
            slow oracle in one of them. The search itself stays here.
        objective: the former name of ``oracle``.

    Returns:
        The scored molecules, the best first.

    Raises:
        UsageError: the model is not what the search needs, or a name or value is not known. DataError: a start that
            cannot be read or encoded, an oracle that scores no molecule.

    Example:
        >>> found = optimise(oracle="logp", search="graph-ga", budget=6, start="CCO", compare=False)
        >>> len(found), bool(found.to_frame()["objective"].max() > -0.1)
        (6, True)
    """
    if not ((batch is None or batch >= 1) and 0 <= diversity <= 1):
        hint = "batch 1 or more, diversity from 0 to 1"
        raise BadValueError(f"batch is {batch} and diversity {diversity}", hint=hint)
    check_engine(engine)
    loaded = load(model) if isinstance(model, str | os.PathLike) else model
    if search is None:
        search = "ascent" if loaded is not None and isinstance(loaded.method, LatentGenerator) else "reinvent"
    strategy, terms, proposed = make_search(search, **(params or {})), make_rewards(reward), Proposed()
    if learned is not None and type(strategy).trained_generator is Search.trained_generator:
        strategy.trained_generator()  # raises before anything is scored
    if loaded is None and strategy.default_model:
        loaded = load(strategy.default_model)
    generator, preset = (None, "standard") if loaded is None else (_generator(loaded), loaded.standardiser)
    written = [start] if isinstance(start, str) and start else [*start]
    starts = standard_starts(written, preset)
    total = read_oracle(oracle if objective is None else objective, starts[0] if starts else "")
    known_rows = None if known is None else read_known(known, total)
    if reference is None and known_rows is not None:
        reference = known_rows.table
    near = None if reference is None else Nearest(reference if isinstance(reference, Table) else read_table(reference))
    total = _bounded(total, starts, similarity, near, max_distance)
    how: dict[str, Any] = {"standardiser": preset, "batch": batch, "diversity": diversity, "seed": seed}
    before = {} if generator is None else generator.get_params()
    calls = make_calls(total, budget, journal=journal, seconds=seconds)
    table = reference if known is None else known
    make = partial(choose_control, table=table) if is_auto(control) else make_control
    second = None if control is None else make(control, total, seed=seed)
    curves, interrupted = {}, False
    kept = ExitStack()
    try:
        if engine == "ray":
            calls.elsewhere = OracleCluster(kept.enter_context(Cluster()))
        kept.enter_context(scaffold_kept(generator, scaffold))
        if generator is not None:
            running = {"temperature": temperature, "device": device, "threads": threads, "precision": precision}
            set_running(generator, running)
        try:
            values = None if known_rows is None else value_known(calls, known_rows, preset)
            run_search(generator, calls, strategy, starts=starts, known=values, rewards=terms, proposed=proposed, **how)
            curves[strategy.name] = best_so_far(calls)
            if compare and strategy.name != "sampling":
                plain = OracleCalls(total, budget, seconds=seconds, elsewhere=calls.elsewhere)
                if calls.oracle.labels == total.labels:  # what was scored is not scored again
                    plain.resumed, plain.known = dict(calls.scored), calls.known
                as_many = {**how, "batch": batch or strategy.batch_size}
                run_search(generator, plain, make_search("sampling"), starts=starts, **as_many)
                curves["sampling"] = best_so_far(plain)
        except KeyboardInterrupt:
            interrupted = True
            curves.setdefault(strategy.name, best_so_far(calls))
    finally:
        kept.close()
        if generator is not None:
            generator.set_params(**before)
        calls.close()
    rows = ranked(calls)
    notes = [*_changed(written, starts), *proposed.notes, proposed.sentence, "" if second is None else second.note]
    notes.append(constant_note([one.total for one in rows]))
    if not interrupted and not any(np.isfinite(one.total) for one in rows):
        reason = f": {rows[0].smiles}: {rows[0].reason}" if rows else ""
        raise EmptyError(
            f"the oracle scored none of {len(rows):,} molecules{reason}",
            hint="try it on one molecule first" if rows else "look at what the generator draws: molgraph generate",
        )
    frame, remarks = rows_of(rows, total, starts), tuple(filter(None, notes))
    optimised = Optimised(frame, total.words, strategy.name, budget, curves, notes=remarks, interrupted=interrupted)
    if interrupted:  # there is a second to write what is known
        return optimised
    judged = None if second is None else judge(second, frame, total)
    molecules, scores = None if near is None else near.molecules, None if judged is None else judged.scores
    frame = annotated(frame, total, generator=loaded, reference=molecules, control=scores)
    if judged is not None:
        optimised = replace(optimised, guard=judged.guard, notes=(*remarks, *judged.notes))
    optimised = replace(optimised, frame=frame, shapes=tuple(shapes_of(total, frame)))
    if report is not None:
        write_page(optimised, report, starts)
    if learned is not None and loaded is not None:
        _learned(strategy, loaded, total).save(learned)
    return optimised


def _learned(search: Search, model: Model, oracle: Combined) -> Model:
    """The generator that a search trained, as a model with the card of the one that it began with."""
    note = f"trained further by the search {search.name} with scores of {oracle.words}"
    card = replace(model.card, created=now(), notes=(*model.card.notes, note))
    how: dict[str, Any] = {"standardiser": model.standardiser, "card": card, "trained_on": model.trained_on}
    return Model(search.trained_generator(), targets=(), **how)


def _generator(model: Model) -> Generator:
    """The generator of a model; ``UsageError`` where it is none."""
    if isinstance(model.method, Generator):
        return model.method
    words = f"{model.kind} predicts molecules and proposes none"
    hint = "name a generator, or leave the model out: --search graph-ga needs none; a property model is an --oracle"
    raise UnsupportedError(words, hint=hint)


def write_page(found: Optimised, path: str | Path, starts: Sequence[str] = ()) -> Path:
    """Write the HTML page of a search."""
    from molgraph.evaluate.report_search import write_search_report  # with matplotlib and jinja2
    from molgraph.evaluate.report_transforms import Curve

    guard = found.guard
    return write_search_report(
        path,
        frame=found.frame,
        oracle=found.oracle,
        search=found.search,
        curves=found.best_so_far,
        watched=None
        if guard is None
        else pd.DataFrame({"call": guard.calls, "oracle": guard.oracle, "control": guard.control}),
        verdict="" if guard is None else guard.sentence,
        tag="" if guard is None else guard.tag,
        lead=found.sentence,
        notes=found.notes,
        starts=starts,
        shapes=[Curve(*shape) for shape in found.shapes],
    )


def _bounded(
    total: Combined, starts: Sequence[str], similarity: float | None, near: Nearest | None, max_distance: float | None
) -> Combined:
    """The oracle with the bounds that options set."""
    more = []
    if similarity is not None:
        if not 0 <= similarity <= 1:
            raise BadValueError(f"similarity is {similarity}", hint="a Tanimoto similarity, from 0 to 1")
        if len(starts) != 1:
            raise MissingOptionError(f"similarity to {len(starts)} molecules", hint="name one with --start")
        more.append(Term(Similarity(starts[0]), "similarity", 0.0, low=similarity))
    if max_distance is not None:
        if near is None:
            raise MissingOptionError(
                "a distance to no table", hint="name it: --reference TABLE, best the model's training table"
            )
        if not 0 <= max_distance <= 1:
            raise BadValueError(f"max_distance is {max_distance}", hint="1 - Tanimoto similarity, from 0 to 1")
        more.append(Term(near, "nearest", 0.0, low=1 - max_distance))
    return total.with_terms(*more) if more else total


def _changed(written: Sequence[str], starts: Sequence[str]) -> list[str]:
    """Which starts are other molecules after the preset, a sentence each."""
    before = [molecule.smiles for molecule in canonical_smiles(list(written))]
    return [
        f"the start {text} is {new} after the generator's preset: that is scored and compared with"
        for text, old, new in zip(written, before, starts, strict=True)
        if old != new
    ]
