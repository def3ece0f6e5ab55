"""Sign errors of a criterion: the true gap, its negative, noise and near ties, and the splits of published runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from molgraph.base.errors import BadValueError, EmptyError
from molgraph.cli.main import app
from molgraph.evaluate.benchmark.audit import audit_scores, recorded_scores, sign_errors
from tests.systems.effect import Effect


def scores(seed: int = 0, splits: tuple[str, ...] = ("random", "scaffold"), shift: float = 0.3) -> pd.DataFrame:
    """Made scores of five methods on two datasets, three folds each; the last split has differences of its own."""
    rng, rows = np.random.default_rng(seed), []
    for dataset in ("a", "b"):
        level = rng.normal(size=5)
        for split in splits:
            own = level + shift * rng.normal(size=5) * (split == splits[-1])
            for method in range(5):
                for fold in range(3):
                    value = own[method] + 0.1 * rng.normal()
                    rows.append((dataset, split, 0, fold, 0, f"m{method}", "y", "rmse", value, "ok", False))
    columns = ["dataset", "split", "repeat", "fold", "seed", "method", "target", "metric", "value", "status"]
    frame = pd.DataFrame(rows, columns=[*columns, "higher_is_better"])
    return frame.assign(**dict.fromkeys(("edition", "data_hash", "split_hash", "note", "reason"), ""))


@pytest.mark.system("robust-sign-error-of-generalisation-meas", rung="exact")
def test_the_gap_itself_has_no_error_its_negative_all_and_noise_half(off: str) -> None:
    """Over 780 pairs; near ties have no weight; off: pairs count alike."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(40, 1)) + 0.3 * rng.normal(size=(40, 5))
    gap = truth.mean(axis=1)
    whole, opposite, noise = (sign_errors(each, truth) for each in (gap, -gap, rng.normal(size=40)))
    assert whole.mean == 0 and opposite.mean == 1 and abs(noise.mean - 0.5) < 0.05
    criterion, wanted, total = rng.normal(size=40), 0.0, 0.0
    for i in range(40):
        for j in range(i + 1, 40):
            d = truth[i] - truth[j]
            weight = 2 * norm.cdf(abs(d.mean()) / (d.std(ddof=1) / np.sqrt(5))) - 1
            wanted += weight * (np.sign(criterion[i] - criterion[j]) != np.sign(d.mean()))
            total += weight
    found = sign_errors(criterion, truth)
    np.testing.assert_allclose(found.error.mean() if off else found.mean, wanted / total)
    assert sign_errors(np.arange(2.0), np.ones((2, 3))).weight.tolist() == [0]


@pytest.mark.system("robust-sign-error-of-generalisation-meas", rung="exact")
def test_each_dataset_of_a_run_is_an_environment_and_the_worst_is_named(off: str) -> None:
    """By hand from the frame of scores; off: both splits in each other's place."""
    frame = scores()
    found = audit_scores(frame, "random" if off else "scaffold").set_index("dataset")["sign_error"]
    for dataset in ("a", "b"):
        own = frame[frame["dataset"] == dataset].pivot_table(index="method", columns=["split", "fold"], values="value")
        wanted = sign_errors(own["random"].mean(axis=1).to_numpy(), own["scaffold"].to_numpy()).mean
        np.testing.assert_allclose(found[dataset], wanted)
    assert found["worst"] == max(found["a"], found["b"]) >= found["mean"] == (found["a"] + found["b"]) / 2
    assert audit_scores(scores(shift=0.0)).set_index("dataset")["sign_error"]["worst"] < 0.1


def test_the_command_writes_the_table_and_says_what_is_wrong(tmp_path: Path) -> None:
    scores().to_csv(tmp_path / "scores.csv", index=False)
    done = CliRunner().invoke(app, ["bench", "audit", str(tmp_path), "-o", str(tmp_path / "audit.csv")])
    assert done.exit_code == 0 and "random orders" in done.output
    assert pd.read_csv(tmp_path / "audit.csv")["dataset"].tolist() == ["a", "b", "mean", "worst"]
    done = CliRunner().invoke(app, ["bench", "audit", str(tmp_path / "none")])
    assert done.exit_code and "there is no file" in done.output
    with pytest.raises(BadValueError, match="no split"):
        audit_scores(scores(), "scafold")
    with pytest.raises(EmptyError, match="two splits"):
        audit_scores(scores(splits=("random",)))


@pytest.mark.system("robust-sign-error-of-generalisation-meas", rung="works")
@pytest.mark.parametrize("record", ["adme", "moleculenet"])
def test_random_splits_order_methods_better_than_chance_for_new_scaffolds(
    record: str, off: str, effect: Effect, root: Path
) -> None:
    """The mean over datasets of published runs, the worst and random orders beside; off: random orders."""
    frame, rng = recorded_scores(root / "pipelines" / "records" / record), np.random.default_rng(0)
    frame = frame[frame["split"].isin(("random-1x5", "scaffold-2x5"))]
    names = frame["method"].unique()
    renamed = dict(zip(names, rng.permutation(names), strict=True))
    other = frame.assign(method=np.where(frame["split"] == "random-1x5", frame["method"].map(renamed), frame["method"]))
    both = [audit_scores(each, "scaffold-2x5").set_index("dataset")["sign_error"] for each in (frame, other)]
    effect("mean sign error of a random split", [float(both[bool(off)]["mean"])], at_most=0.3,
           beside={"worst dataset": [float(both[0]["worst"])], "random order": [float(both[1]["mean"])]})  # fmt: skip
