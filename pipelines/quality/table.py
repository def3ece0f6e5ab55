"""Write the scores of the stored cells as Markdown, with paired intervals and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from molgraph.base.contracts import Metric
from molgraph.base.errors import DataError
from molgraph.data.splits import Split
from molgraph.evaluate.metrics import evaluate_metric, get_metric
from pipelines.quality.cells import cell_path, read_cell
from pipelines.quality.study import Dataset, Study, split_path

PAIRS = (("dmpnn", "chemprop"), ("forest_morgan", "sklearn_forest"), ("dmpnn", "forest"))
COLUMNS = (
    ("dmpnn", "dmpnn"),
    ("chemprop", "chemprop"),
    ("forest", "forest"),
    ("forest_morgan", "forest (bits alone)"),
    ("sklearn_forest", "scikit-learn forest"),
    ("mean", "mean"),
)


@dataclass(frozen=True)
class Difference:
    """One method's score less another's, over the seeds.

    Args:
        mean: mean of the paired differences.
        low: lower end of their 95% interval.
        high: upper end.
        verdict: ``better``, ``worse`` or ``not told apart``, from the first method's side.
    """

    mean: float
    low: float
    high: float
    verdict: str


def paired(first: np.ndarray, second: np.ndarray, metric: Metric) -> Difference:
    """Student's 95% interval of the paired differences; one value a seed in each array.

    Example:
        >>> from molgraph.evaluate.metrics import get_metric
        >>> paired(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.2, 1.9]), get_metric("rmse")).verdict
        'better'
    """
    differences = first - second
    mean = float(differences.mean())
    if np.ptp(differences) == 0:
        low = high = mean
    else:
        half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
        low, high = mean - half, mean + half
    if low <= 0 <= high:
        return Difference(mean, low, high, "not told apart")
    return Difference(mean, low, high, "better" if (mean > 0) == metric.higher_is_better else "worse")


def scores(study: Study, out: Path, dataset: Dataset, method: str) -> np.ndarray:
    """The metric of each seed, NaN where the cell is not there; a cell of another split raises ``DataError``."""
    metric = get_metric(dataset.metric)
    values = np.full(len(study.seeds), np.nan)
    for i, seed in enumerate(study.seeds):
        path = cell_path(out, dataset.name, method, seed)
        if not path.exists():
            continue
        cell, split = read_cell(path), Split.load(split_path(study, dataset, seed))
        if cell.manifest["split"] != split.hash:
            raise DataError(f"{path} belongs to another split", hint="delete it and run the pipeline again")
        if not np.isfinite(cell.prediction).all():
            raise DataError(f"{path} lacks predictions for {int((~np.isfinite(cell.prediction)).sum())} test rows")
        values[i] = evaluate_metric(metric, cell.y, cell.prediction)[0]
    return values


def write_table(study: Study, out: Path) -> str:
    """Markdown: the scores, the paired differences, and what they say in words."""
    found = {(d.name, m): scores(study, out, d, m) for d in study.dataset for m, _ in COLUMNS}
    header = ["data", "metric", *(title for _, title in COLUMNS)]
    rows = []
    for d in study.dataset:
        arrow = "↑" if get_metric(d.metric).higher_is_better else "↓"
        cells = [_scores_text(found[d.name, m]) for m, _ in COLUMNS]
        rows.append([d.title, f"{get_metric(d.metric).label} {arrow}", *cells])
    lines = _markdown(header, rows)
    lines += ["", f"Mean and standard deviation over {len(study.seeds)} seeds; each seed has its own split", ""]
    lines[-2] += f" ({study.split}, {'/'.join(f'{100 * f:.0f}' for f in study.fractions)}, files in `datasets/splits`)"
    lines[-2] += f" and its own weights. {_sizes(study)} Differences with their paired 95% intervals:"
    header = ["data", *(f"{_title(a)} − {_title(b)}" for a, b in PAIRS)]
    rows = []
    verdicts: dict[tuple[str, str], dict[str, list[str]]] = {pair: {} for pair in PAIRS}
    for d in study.dataset:
        row = [d.title]
        for a, b in PAIRS:
            one, two = found[d.name, a], found[d.name, b]
            both = np.isfinite(one) & np.isfinite(two)
            if both.sum() < 2:
                row.append("not measured yet")
                continue
            result = paired(one[both], two[both], get_metric(d.metric))
            verdicts[a, b].setdefault(result.verdict, []).append(d.title)
            partly = "" if both.all() else f", {int(both.sum())} of {len(both)} seeds"
            row.append(f"{result.mean:+.3f} [{result.low:+.3f}, {result.high:+.3f}] {result.verdict}{partly}")
        rows.append(row)
    lines += _markdown(header, rows)
    lines += ["", *(_sentence(_title(a), _title(b), verdicts[a, b]) for a, b in PAIRS)]
    lines.append(
        "Five seeds tell only large differences apart, and their splits share molecules, so the intervals are guides."
    )
    return "\n".join(lines)


def headline(table: str) -> str:
    """What the README says of quality: the verdicts on dmpnn, out of the table's page."""
    said = [line.rstrip(".") for line in table.splitlines() if line.startswith("dmpnn against")]
    return f"- **Measured**: over five seeds, {'; '.join(said)} ([all](docs/quality.md))."


def _sizes(study: Study) -> str:
    """What both sides of each comparison have in common, in words."""
    net, forest = study.sizes, study.forest
    return (
        f"dmpnn and chemprop: width {net.hidden}, depth {net.depth}, readout `{net.readout}`, a head of "
        f"{net.head_layers} hidden layer of {net.head_hidden}, batches of {net.batch_size}, {net.epochs} epochs, the "
        f"weights that validate best. Forests: {forest.trees} trees, {forest.n_bits:,} Morgan bits of radius "
        f'{forest.radius}; "forest" has RDKit\'s descriptors too, as `molgraph train` does.'
    )


def _sentence(first: str, second: str, verdicts: dict[str, list[str]]) -> str:
    parts = [
        f"{words} on {', '.join(verdicts[key])}"
        for key, words in (("better", "better"), ("not told apart", "not told apart"), ("worse", "worse"))
        if key in verdicts
    ]
    return f"{first} against {second}: {'; '.join(parts) if parts else 'not measured yet'}."


def _title(method: str) -> str:
    return dict(COLUMNS)[method]


def _scores_text(values: np.ndarray) -> str:
    there = values[np.isfinite(values)]
    if not len(there):
        return "–"
    spread = f" ± {there.std(ddof=1):.3f}" if len(there) > 1 else ""
    return f"{there.mean():.3f}{spread}" + ("" if len(there) == len(values) else f" ({len(there)} seeds)")


def _markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
