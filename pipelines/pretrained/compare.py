"""Set the rows of a pretrained encoder beside the stored rows of the boards on the same folds, as a page.

MOLGRAPH_DATA=... molgraph bench run pipelines/pretrained.toml
python pipelines/pretrained/compare.py            # writes pipelines/pretrained/COMPARED.md, from bench/pretrained
python pipelines/pretrained/compare.py --records  # from the stored record alone
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from molgraph.base.paths import write_whole  # noqa: E402

HERE, RECORDS = Path(__file__).parent, ROOT / "pipelines" / "records"
PAIRS = (  # a claim, the row that should be better, and the row that it should be better than
    ("frozen vectors and ridge beside counts of environments and ridge", "encoder+ridge", "ecfp-counts+ridge"),
    ("lp-ft beside the same network from scratch", "encoder-lp-ft", "dmpnn"),
    ("MapLight with the vectors beside MapLight", "maplight+encoder", "maplight"),
)
COLUMNS = ["dataset", "fold", "method", "target", "metric", "value", "higher_is_better"]


def scores(new: Path) -> pd.DataFrame:
    """The scores of the new rows, and those of the boards' on the folds of their first repeat."""
    own = pd.read_csv(new)
    frames = [own]
    for name in ("adme", "moleculenet"):
        stored = pd.read_csv(RECORDS / name / "scores.csv.gz")
        stored = stored[stored.split.str.startswith("scaffold-") & (stored.repeat == 0)]
        frames.append(stored[stored.method.isin(["dmpnn", "maplight"])])
    whole = pd.concat(frames)
    check_folds(whole)
    return whole[whole.status == "ok"]


def check_folds(whole: pd.DataFrame) -> None:
    """Stop where two rows of one fold do not have one split."""
    hashes = whole.groupby(["dataset", "fold"]).split_hash.nunique()
    if (hashes > 1).any():
        raise SystemExit(f"the folds differ: {hashes[hashes > 1].to_dict()}")


def compared(whole: pd.DataFrame) -> pd.DataFrame:
    """One value a set and method, the mean over folds and targets of the set's first metric; and its direction."""
    first = whole.drop_duplicates("dataset").set_index("dataset").metric
    whole = whole[whole.metric == whole.dataset.map(first)]
    means = whole.groupby(["dataset", "method"]).value.mean().unstack()
    means.insert(0, "metric", first)
    means.insert(1, "higher", whole.groupby("dataset").higher_is_better.first())
    return means


def page(means: pd.DataFrame, whole: pd.DataFrame) -> str:
    """The table, and how many sets bear each claim out."""
    rows = [each for _, better, other in PAIRS for each in (other, better)]
    lines = [
        "# What a pretrained encoder gives\n",
        "Five folds of new scaffolds of each set (the first repeat of the boards `moleculenet` and `adme`), the mean of the",
        "set's first metric; `dmpnn` (from scratch) and `maplight` are the boards' stored rows on the same folds. Generated",
        "by `python pipelines/pretrained/compare.py`.\n",
        "| set | metric | " + " | ".join(rows) + " |",
        "|---|---|" + "---:|" * len(rows),
    ]
    for name, row in means.iterrows():
        cells = [f"{row[each]:.3f}" if each in row and np.isfinite(row[each]) else "" for each in rows]
        lines.append(f"| {name} | {row.metric} {'(higher)' if row.higher else '(lower)'} | {' | '.join(cells)} |")
    lines.append("")
    for words, better, other in PAIRS:
        both = means[[better, other]].dropna().index
        gain = (means.loc[both, better] - means.loc[both, other]) * np.where(means.loc[both, "higher"], 1, -1)
        share = (gain / means.loc[both, other].abs()).median()
        lost = ", ".join(gain.index[gain <= 0]) or "none"
        lines.append(
            f"- {words}: better on {(gain > 0).sum()} of {len(both)} sets; the median change is {100 * share:+.1f}%;"
            f" not better on: {lost}."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", action="store_true", help="from the stored record alone")
    parser.add_argument("--run", default=ROOT / "bench" / "pretrained", type=Path, help="the folder of the run")
    args = parser.parse_args()
    kept = RECORDS / "pretrained" / "scores.csv.gz"
    whole = scores(kept if args.records else args.run / "scores.csv")
    write_whole(HERE / "COMPARED.md", page(compared(whole), whole))
    print((HERE / "COMPARED.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
