"""Compare each model of pairs on a benchmark board with the rows of the ligand or the protein alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from molgraph.evaluate.benchmark.ranking import Ranking

WORDS = {"worse": "it is worse than {}", "equivalent": "it is as good as {}", "undecided": "it is not told from {}"}


def side_sentences(ranking: Ranking, sides: Mapping[str, Sequence[str]], trivial: str) -> list[str]:
    """A sentence for each ranked row that reads whole pairs and each side, against the best row of that side alone.

    Args:
        ranking: of the board.
        sides: the rows that read one side alone, by the side.
        trivial: the row that reads nothing.

    Example:
        >>> import pandas as pd
        >>> from molgraph.evaluate.benchmark.ranking import rank_methods
        >>> folds = pd.DataFrame({"pair": [0.1, 0.2, 0.1, 0.2], "drug": [0.9, 1.1, 0.8, 1.2], "mean": [2.0] * 4})
        >>> side_sentences(rank_methods(folds, False), {"ligand": ["drug"]}, "mean")
        ['pair used more than the ligand: it is better than drug, which reads the ligand alone.']
    """
    sentences, alone = [], {row for rows in sides.values() for row in rows}
    for row in (row for row in ranking.ranked if row not in alone and row != trivial):
        for side, rows in sides.items():
            best = next((method for method in ranking.ranked if method in rows), None)
            if best is None:
                continue
            verdict, which = ranking.verdict(row, best), f"{best}, which reads the {side} alone"
            if verdict == "better" and ranking.verdict(row, trivial) not in ("", "better"):
                sentences.append(f"Nothing shows that {row} learned anything: it is not better than {trivial}.")
                break
            if verdict == "better":
                sentences.append(f"{row} used more than the {side}: it is better than {which}.")
            elif verdict:
                sentences.append(f"Nothing shows that {row} used more than the {side}: {WORDS[verdict].format(which)}.")
            else:
                sentences.append(f"One fold cannot tell whether {row} used more than the {side}: compare {which}.")
    return sentences
