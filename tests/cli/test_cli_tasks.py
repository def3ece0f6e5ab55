"""Tasks of clusters in the shell: made, learned from, and adapted to an assay in one pass."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.cli.test_cli_entities import call
from tests.tiny import series


def test_an_encoder_of_cluster_tasks_learns_an_assay_in_one_pass(tmp_path: Path) -> None:
    table = series(200)
    (tmp_path / "library.smi").write_text("\n".join([*map(str, table.smiles), "not a molecule"]))
    made = ("--clusters", "5", "--partitions", "2", "--number", "4")
    code, text = call(tmp_path, "data", "tasks", "library.smi", *made, "-o", "tasks.csv")
    assert code == 0 and "4 tasks" in text and "1 row left out" in text, text
    frame = pd.read_csv(tmp_path / "tasks.csv")
    assert [*frame] == ["smiles", *(f"task_{i}" for i in range(1, 5))] and len(frame) == 200
    quick = ("-s", "params.d_hidden=8", "--epochs", "2")
    code, text = call(
        tmp_path, "pretrain", "tasks.csv", "-t", "task_*", "--objective", "prototypes", *quick, "-o", "proto.mgm"
    )
    assert code == 0, text
    pd.DataFrame({"smiles": table.smiles, "active": table.y[:, 0] > 6}).astype({"active": int}).to_csv(
        tmp_path / "assay.csv", index=False
    )
    code, text = call(tmp_path, "finetune", "proto.mgm", "assay.csv", "-t", "active", "-o", "m.mgm", "--no-baseline")
    assert code == 0 and "by prototypes" in text, text
    code, text = call(tmp_path, "finetune", "proto.mgm", "library.smi", "-t", "y", "-o", "n.mgm")
    assert code != 0, text
    code, text = call(tmp_path, "data", "tasks", "library.smi", "--clusters", "250", "-o", "none.csv")
    assert code == 3 and "fewer clusters" in text, text
