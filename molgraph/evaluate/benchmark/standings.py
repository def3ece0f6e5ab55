"""Read the rank of each method on every leaderboard, and group the boards by what they ask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import MissingFileError
from molgraph.base.resources import shipped_dir

FILE = "standings.csv"
BOARD = ["recipe", "dataset", "split", "metric"]  # what tells one board from another
FEW = 2_000  # rows from which a dataset of molecules counts as a larger one
SIZES = (f"fewer than {FEW:,}", f"{FEW:,} and more")
ENTITIES = {
    "molecule": "Molecules",
    "pair": "Pairs of drug and protein",
    "graph": "Graphs",
    "geometry": "Atoms in space",
}
QUESTIONS = {
    "random": "rows at random",
    "stratified": "rows at random",
    "scaffold-deepchem": "published",
    "scaffold": "new scaffolds",
    "cluster": "new clusters",
    "time": "later rows",
    "cold-drug": "new drugs",
    "cold-protein": "new proteins",
    "cold-both": "new drugs and new proteins",
}


class Question(NamedTuple):
    """Boards that ask the same of a method."""

    words: str  # kind of entity, size and split
    boards: list[str]  # their datasets
    # by method, the best first, those of few boards last: ``boards`` that it is on, ``first`` (on how many nothing is
    # better, and something is better than the mean label), ``behind`` (on how many the reference is better; NaN
    # where none was measured), ``percent`` (of the reference's error, a geometric mean over datasets), ``cpu_seconds``
    # (median, of a fold)
    table: pd.DataFrame


def read_standings() -> pd.DataFrame:
    """The standings that ship with molgraph, of its measured boards.

    Raises:
        MissingFileError: the file is missing.
    """
    path = shipped_dir("pipelines") / FILE
    if not path.is_file():
        raise MissingFileError(f"{path} is missing", hint="in a checkout: make boards; else install molgraph again")
    return pd.read_csv(path, keep_default_na=False, na_values={"percent": [""]})


def questions(standings: pd.DataFrame) -> list[Question]:
    """The boards by kind of entity, size and split, each with its methods, the best first.

    Example:
        >>> found = questions(read_standings())
        >>> found[0].words, list(found[0].table.columns)
        ('Molecules, fewer than 2,000, new clusters', ['boards', 'first', 'behind', 'cpu_seconds', 'percent'])
    """
    result = []
    entity = standings["entity"].map([*ENTITIES].index)
    size = (standings["rows"] >= FEW).astype(int).where(standings["entity"] == "molecule", 2)
    for (kind, few, question), group in standings.groupby([entity, size, standings["split"].map(question_of)]):
        words = [[*ENTITIES.values()][kind], *SIZES[few : few + 1], question]
        table = group.groupby("method").agg(
            boards=("rank", "size"),
            first=("leads", "sum"),
            behind=("against", lambda verdicts: (verdicts == "worse").sum()),
            cpu_seconds=("cpu_seconds", "median"),
        )
        logs = np.log(group["percent"]).groupby([group["method"], group["dataset"]]).mean()
        table["percent"] = np.exp(logs.groupby("method").mean())
        if not group["against"].any():
            table["behind"] = float("nan")
        few, lost = 2 * table["boards"] < table["boards"].max(), -table["first"] / table["boards"]
        best = table.assign(few=few, lost=lost).sort_values(["few", "percent", "lost"], kind="stable")
        result.append(Question(", ".join(words), [*dict.fromkeys(group["dataset"])], table.loc[best.index]))
    return result


def question_of(split: str) -> str:
    """The question that a split's label asks; the label itself where it is another one."""
    return next((words for start, words in QUESTIONS.items() if split.startswith(start)), split)
