"""The same cells on a Ray cluster: the same scores, and the same rows for cells that end badly."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go, plain, recipe

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra: ray")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster of two cores on this machine."""
    import ray

    root = str(Path(__file__).resolve().parents[2])
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_worker_niceness", "0")  # Ray's 15 leaves the cells no time on a busy machine
    env = {"env_vars": {"PYTHONPATH": root}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, runtime_env=env)
    yield
    ray.shutdown()
    patch.undo()


@pytest.mark.slow
def test_a_cluster_gives_the_same_scores(cluster, tmp_path):
    odd = [{"name": "odd", "label": how, "params": {"how": how}} for how in ("exit", "sleep")]
    asked = recipe({"name": "ridge", "params": {"noise": 0.1}}, *odd, budget={"seconds": 1})
    only = {"fold": ["0", "1"]}
    ran = go(tmp_path / "ray", asked, engine="ray", jobs=2, only=only)
    assert ran.made == {"ok": 2, "crashed": 2, "timeout": 2}
    go(tmp_path / "local", asked, only=only)
    found = [plain(score_records(read_records(tmp_path / name))) for name in ("ray", "local")]
    pd.testing.assert_frame_equal(*found)
    assert verify_records(tmp_path / "ray").ok
    assert go(tmp_path / "ray", asked, only=only).made == {}, "one machine goes on where a cluster was"
