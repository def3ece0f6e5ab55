"""Collect everything that a benchmark's report shows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.contracts import RUN_ONLY
from molgraph.base.errors import EmptyError
from molgraph.base.positions import NOTE
from molgraph.chem.fingerprints import Fingerprints
from molgraph.chem.identity import canonical_smiles
from molgraph.data.replicates import replicate_sd
from molgraph.evaluate.benchmark.board import Board, Ceiling, make_boards
from molgraph.evaluate.benchmark.board_overall import Overall, summarise
from molgraph.evaluate.benchmark.bootstrap import bootstrap_errors
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report_slices import Slices, slice_records
from molgraph.evaluate.benchmark.run_folder import Records
from molgraph.evaluate.noise_ceiling import NOISY, noise_ceiling

# of a submission, as its card tells
CARD = ("code", "commit", "licence", "paper", "tuning", "pretraining", "hardware", "seconds")
LEAST_REPLICATES = 30  # degrees of freedom that the replicates' noise has to stand on; of fewer some may be copies


@dataclass(frozen=True)
class BenchReport:
    """All that a benchmark's report shows."""

    title: str  # heading
    boards: tuple[Board, ...]  # one a dataset, split and metric
    slices: Mapping[tuple[str, str], Slices] = field(default_factory=dict)  # (dataset, split) -> where methods err
    recipe: BenchRecipe | None = None
    facts: Mapping[str, str] = field(default_factory=dict)  # what a repeat needs: name -> text
    done: int = 0  # cells
    wanted: int = 0  # cells
    failed: Mapping[str, int] = field(default_factory=dict)  # status -> cells
    refused: Mapping[str, str] = field(default_factory=dict)  # dataset -> why
    # (dataset, split) -> why the split cannot divide it
    refused_splits: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def recipe_name(self) -> str:
        """The recipe's name, of which its file and folders are called."""
        return self.recipe.name if self.recipe is not None else "recipe"

    @cached_property
    def overall(self) -> list[Overall]:
        """A summary a split."""
        return summarise(self.boards)

    @property
    def methods(self) -> list[str]:
        """All methods, in the order of the first summary."""
        named = [str(name) for ranking in self.overall for name in ranking.table.index]
        return list(dict.fromkeys([*named, *(name for board in self.boards for name in board.methods)]))

    def sections(self) -> list[list[Board]]:
        """Each primary board, followed by those of other metrics for its targets."""
        sections = [[board] for board in self.boards if board.primary]
        for board in self.boards:
            if not board.primary:
                peers = [each for each in sections if (each[0].name, each[0].split) == (board.name, board.split)]
                max(peers, key=lambda each: len({*board.scores.tasks} & {*each[0].scores.tasks})).append(board)
        return sections

    @property
    def refusals(self) -> list[str]:
        """What was refused, a sentence each."""
        whole = [f"{name} was refused: {reason}" for name, reason in self.refused.items()]
        parts = self.refused_splits.items()
        return whole + [f"{name} was refused under the split {split}: {reason}" for (name, split), reason in parts]

    @property
    def commands(self) -> list[str]:
        """How to do it again."""
        recipe, out = f"{self.recipe_name}.toml", f"bench/{self.recipe_name}"
        rows = sorted({name for board in self.boards for name in board.entered})
        export = [f"molgraph bench export {recipe} -o {out}   # its test files are to be predicted"] if rows else []
        enter = [f"molgraph bench submit {out} {name}.csv --card {name}.toml" for name in rows]
        last = f"molgraph bench report {out} --leaderboard LEADERBOARD.md"
        return [f"molgraph bench run {recipe} -o {out}", *export, *enter, last]


def gather(records: Records, scores: pd.DataFrame, slices: bool) -> BenchReport:
    """Rank the methods of a benchmark's folder by their scores, and look where they err."""
    if not records.done:
        whys = dict.fromkeys([*records.refused.values(), *records.refused_splits.values()])
        raise EmptyError(
            "; ".join([f"{records.out} holds no cell that was computed", *whys]),
            hint="molgraph bench run goes on where it was",
        )
    recipe, problems = records.recipe, records.problems
    leading = {name: [m[0] for m in p.metrics.values()] for name, p in problems.items() if p.metrics}
    boards = make_boards(scores, recipe, primary=leading, rows={name: p.row_count for name, p in problems.items()})
    pairs = list(dict.fromkeys((board.dataset, board.split) for board in boards)) if slices else []
    whole, written, prints = [], dict[str, np.ndarray](), dict[str, Fingerprints]()
    sliced = ((p, slice_records(records, problems[p[0]], p[1], prints)) for p in progress.track(pairs, label="slices"))
    slice_map = {p: part for p, part in sliced if part is not None}
    for b in progress.track(boards, label="bootstrap"):
        ceilings = _ceilings(b, slice_map.get((b.dataset, b.split)), prints, written)
        entered, positions = (reader(records, b.dataset, b.split) for reader in (entered_rows, positions_of))
        b = replace(b, ceilings=ceilings, entered=entered, positions=positions)
        single = b.primary and b.ranking.n_folds == 1 and not recipe.generates
        whole.append(b.tested_by(bootstrap_errors(records, b)) if single else b)
    status = Counter(str(record.manifest["status"]) for record in records.done if record.manifest["status"] != "ok")
    return BenchReport(
        recipe.title or recipe.name,
        tuple(whole),
        slices=slice_map,
        recipe=recipe,
        facts=facts_of(records),
        done=len(records.done),
        wanted=records.wanted,
        failed=dict(status),
        refused=records.refused,
        refused_splits=records.refused_splits,
    )


def facts_of(records: Records) -> dict[str, str]:
    """What a repeat needs, from the cells' manifests."""
    manifests, recipe = [record.manifest for record in records.done], records.recipe
    out = {"recipe": f"{recipe.name}.toml", "recipe sha256": hashlib.sha256(recipe.to_toml().encode()).hexdigest()}
    if days := sorted(str(m["made"])[:10] for m in manifests if m.get("made")):
        out["computed"] = " to ".join(dict.fromkeys((days[0], days[-1])))
    versions = pd.DataFrame([dict(m.get("versions") or {}) for m in manifests])
    for name, value in versions.items():
        out[f"version of {name}"] = ", ".join(value.dropna().astype(str).unique())
    machines = ([(k, v) for k, v in (m.get("machine") or {}).items() if v] for m in manifests)
    texts = (", ".join(f"{v} cores" if k == "cores" else str(v) for k, v in machine) for machine in machines)
    out["machine"] = "; ".join(filter(None, dict.fromkeys(texts)))
    commits = [c[:12] + c[40:] for m in manifests if (c := str(m.get("commit") or ""))]  # and "-dirty", where it is
    out["commit"] = ", ".join(f"{n} cells at {value}" for value, n in Counter(commits).items())
    budgets, budget = {str(m["budget"]) for m in manifests if m.get("budget")}, recipe.budget
    out["budget of a cell"] = f"{budget.seconds:g} s, {budget.memory_gb:g} GB" + "; mixed" * (len(budgets) > 1)
    cpu = sum(float(m["cpu_seconds"]) for m in manifests if m.get("cpu_seconds"))
    out["CPU time of all cells"] = f"{cpu / 3600:.1f} h" if cpu >= 3600 else f"{cpu / 60:.1f} min"
    trials = {m.row: f"; {m.search.trials} trials of a search" for m in recipe.method if m.search is not None}
    for row, value in {row: e for problem in records.problems.values() for row, e in problem.resolved.items()}.items():
        out[f"settings of {row}"] = settings_in_words(value) + trials.get(row, "")
    return out | {f"data hash of {name}": problem.data_hash for name, problem in records.problems.items()}


def settings_in_words(params: Mapping[str, Any]) -> str:
    """Hyper-parameters on one line, without the machine's and those that nobody set; members that are alike once.

    Example:
        >>> member = {"params": {"depth": 3}, "defaults": {"gin": {"depth": 5, "norm": "batch"}}}
        >>> settings_in_words({"store": None, "n": 2, "members": [member | {"seed": 1}, member | {"seed": 2}]})
        'n 2, members depth 3, gin norm batch'
    """
    words, param_names = [], {*(params.get("params") or ())}
    for name, value in params.items():
        if name == "defaults" and isinstance(value, Mapping):  # as far as nothing else was given
            value = {p: {k: v for k, v in d.items() if not {k, f"{p}.{k}"} & param_names} for p, d in value.items()}
        parts = [value] if isinstance(value, Mapping) else value
        if parts and isinstance(parts, list) and all(isinstance(part, Mapping) for part in parts):
            phrases = dict.fromkeys(filter(None, map(settings_in_words, parts)))
            words += [phrase if name in ("defaults", "params") else f"{name} {phrase}" for phrase in phrases]
        elif value is not None and value != "" and name not in (*RUN_ONLY, "code", "seed"):
            words.append(f"{name} {value}")
    return ", ".join(words)


def entered_rows(records: Records, dataset: str, split: str) -> dict[str, str]:
    """How the rows of a board that others submitted came about, in their words, by method; the badge comes first."""
    by_method: dict[str, list[Mapping[str, Any]]] = {}
    for cell, manifest in records.done:
        if (cell.dataset, cell.split) == (dataset, split) and manifest.get("external") is not None:
            by_method.setdefault(cell.method, []).append(manifest)
    notes = {}
    for method, manifests in by_method.items():
        about = manifests[0]["external"]
        words = [*manifests[0]["notes"], *(f"{key} {about[key]}" for key in CARD if about.get(key))]
        if about.get("seen"):
            seen, tested = np.sum([entry["external"]["seen"] for entry in manifests], axis=0)
            words.append(f"{seen:,} of {tested:,} test molecules are in the pretraining data, salts and stereo aside")
        elif about.get("pretraining"):
            words.append("no test molecules were looked for in it")
        gone = [key for key in CARD if not about.get(key) and key not in ("paper", "seconds")]
        words += [f"not told: {', '.join(gone)}"] * bool(gone)
        notes[method] = "; ".join(words)
    return notes


def positions_of(records: Records, dataset: str, split: str) -> dict[str, str]:
    """Where the methods of a board have the positions of atoms from, by method; none of those that read none."""
    return {
        cell.method: note.removeprefix(NOTE)
        for cell, manifest in records.done
        for note in manifest.get("notes") or ()
        if (cell.dataset, cell.split) == (dataset, split) and note.startswith(NOTE)
    }


def _ceilings(
    board: Board, slices: Slices | None, prints: Mapping[str, Fingerprints], written: dict[str, np.ndarray]
) -> tuple[Ceiling, ...]:
    """What the labels' noise allows, from the set's replicates and its card; ``written`` keeps the SMILES of a set."""
    if board.metric not in NOISY or slices is None or len(slices.targets) != 1:
        return ()
    rows = np.flatnonzero(np.isfinite(slices.y[:, 0]))
    y, folds = slices.y[rows, 0], max(sum(name.startswith("r0-") for name in board.scores.folds.index), 1)
    noise: list[tuple[float, str]] = []
    if board.card is not None and board.card.noise.sd is not None:
        noise.append((board.card.noise.sd, board.card.noise.source or "the set's card"))
    if slices.smiles is not None:
        if board.dataset not in written:  # molecules with a fingerprint of their own stand once
            bits = [row.tobytes() for row in np.packbits(prints[board.dataset].x, axis=1)]
            alike = np.flatnonzero(pd.Series(bits).duplicated(keep=False))
            texts = canonical_smiles(slices.smiles[alike].tolist(), label="replicates")
            names = {int(i): text for i, (text, _) in zip(alike, texts, strict=True) if text}
            written[board.dataset] = np.array([names.get(i, f"row {i}") for i in range(len(bits))])
        sd, df = replicate_sd(written[board.dataset][rows], y)
        if df >= LEAST_REPLICATES:
            noise.append((sd, f"replicates in the set ({df} degrees of freedom)"))
    ceilings = [Ceiling(noise_ceiling(y, sd, board.metric, rows=len(y) // folds), sd, source) for sd, source in noise]
    return tuple(c for c in ceilings if np.isfinite(c.value))
