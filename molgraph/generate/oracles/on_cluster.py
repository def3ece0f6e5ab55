"""Score molecules by an oracle on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property

from molgraph.base.cluster import Cluster
from molgraph.generate.oracles.calls import Ask, OracleCalls, Scored
from molgraph.generate.oracles.combined import Combined


class OracleCluster:
    """Scores molecules for ``OracleCalls``: in shards of ``oracle.shard`` molecules, whatever the size of the cluster.

    Args:
        cluster: whose processes score.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._scorer: _Scorer | None = None

    def __call__(self, calls: OracleCalls, smiles: list[str]) -> Iterator[list[Scored]]:
        """The scores of distinct molecules, shard by shard."""
        if self._scorer is None or self._scorer.oracle is not calls.oracle:
            self._scorer = _Scorer(calls.oracle, calls.seconds)
        size = calls.oracle.shard
        shards = [smiles[i : i + size] for i in range(0, len(smiles), size)]
        items = ((shard, calls.asks(shard)) for shard in shards)
        with closing(self.cluster.map(_score, self._scorer, items)) as results:
            for shard, scored in results:
                yield calls.placed(shard, scored)


class _Scorer:
    """An oracle with the time that it may take, in every process of a cluster."""

    def __init__(self, oracle: Combined, seconds: float) -> None:
        self.oracle, self.seconds = oracle, seconds

    @cached_property
    def calls(self) -> OracleCalls:
        return OracleCalls(self.oracle, 1, seconds=self.seconds)


def _score(scorer: _Scorer, asks: Sequence[Ask]) -> list[Scored]:
    return scorer.calls.ask(asks)
