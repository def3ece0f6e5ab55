"""Trials that every registered split meets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from molgraph.base.errors import MismatchError
from molgraph.base.registry import entry, names
from molgraph.base.table import OK, Entities
from molgraph.data.sources.builtin import nci
from molgraph.data.splits import Split, split_table
from molgraph.data.splits.splitter import Splitter
from molgraph.data.table import Table, Target, make_table

N = 160
FRACTIONS = (0.6, 0.2, 0.2)
PARTS = ("train", "valid", "test")


def table(pairs: bool = False) -> Table:
    """Molecules of many scaffolds, one that cannot be read, two classes; ``pairs``: with a protein in each row."""
    smiles = [*nci().smiles[1 : 30 * N : 30][: N - 1], "C1CC"]
    drugs = np.array(smiles[: N // 8] * 8 if pairs else smiles, dtype=object)
    proteins = np.array(["MK" + "GIVE" * (1 + i // 10) for i in range(N)], dtype=object)
    y = np.column_stack([np.arange(N) % 2, np.linspace(0, 1, N)])
    made = make_table(list(drugs), targets=(Target("hit", "binary"), Target("size")), y=y)
    if not pairs:
        return made
    entities = (Entities("drug", "molecule", drugs), Entities("protein", "sequence", proteins))
    return Table(made.ids, entities, np.full(N, OK, object), np.full(N, "", object), made.targets, y)


def settings(name: str, folder: Path) -> dict[str, Any]:
    """Values of the settings that have no default, as those that name a column or a file."""
    rows, words = np.arange(N - 1), np.array(PARTS)[np.arange(N) % 3]
    own: dict[str, dict[str, Any]] = {
        "time": {"column": np.arange(N, dtype=float)},
        "group": {"column": [f"g{i % 20}" for i in range(N)]},
        "column": {"column": list(words)},
        "stratified/deepchem": {"target": "size"},
    }
    if name in ("file", "index/file"):
        for part in range(3):
            (folder / f"{PARTS[part]}.json").write_text(json.dumps(rows[rows % 3 == part].tolist()))
        (folder / "all.json").write_text(json.dumps({p: rows[rows % 3 == i].tolist() for i, p in enumerate(PARTS)}))
        own |= {"file": {"path": str(folder / "all.json")}, "index/file": {"path": str(folder / "all.json")}}
    return own.get(name, {})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", names("split"))
class TestEverySplit:
    def made(self, name: str, folder: Path, seed: int = 0) -> tuple[Table, Split]:
        given = table(pairs=name.startswith("cold-"))
        return given, split_table(given, name, fractions=FRACTIONS, seed=seed, quiet=True, **settings(name, folder))

    def test_says_what_it_is(self, name: str) -> None:
        found = entry("split", name)
        assert isinstance(found.value, Splitter) and found.value.name == name
        assert found.summary and found.value.asks, "the question that a score on it answers"
        assert (found.value.group is None) != (found.value.partition is None)

    def test_every_row_is_in_one_part_or_left_out_with_a_reason(self, name: str, tmp_path: Path) -> None:
        given, split = self.made(name, tmp_path)
        rows = np.concatenate([split.train, split.valid, split.test, [out.row for out in split.left_out]])
        assert sorted(rows.tolist()) == list(range(len(given)))
        assert all(out.reason for out in split.left_out)
        assert all(len(getattr(split, part)) for part in PARTS)

    def test_same_seed_same_split(self, name: str, tmp_path: Path) -> None:
        (_, one), (_, two) = self.made(name, tmp_path, 3), self.made(name, tmp_path, 3)
        assert one.hash == two.hash and all(np.array_equal(getattr(one, p), getattr(two, p)) for p in PARTS)

    def test_groups_stay_whole(self, name: str, tmp_path: Path) -> None:
        splitter, (given, split) = entry("split", name).value, self.made(name, tmp_path)
        if not splitter.grouped or name == "cold-protein":
            return
        texts = [set(given.smiles[getattr(split, part)]) for part in PARTS]
        assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
        assert not split.leaks

    def test_it_belongs_to_its_table(self, name: str, tmp_path: Path) -> None:
        given, split = self.made(name, tmp_path)
        split.check(given)
        with pytest.raises(MismatchError):
            split.check(given.take(np.arange(N)[::-1].copy()))
