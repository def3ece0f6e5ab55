"""Every kind of thing that can be registered has a contract, a trial over the registry, and a page that says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from molgraph.base.contracts import Generator, Method, Metric
from molgraph.base.registry import get, kinds, names
from molgraph.chem.standardise import Preset
from molgraph.compress.compressor import Compressor
from molgraph.data.featuriser import Featuriser
from molgraph.data.splits.splitter import Splitter
from molgraph.data.view import View
from molgraph.explain.explainer import Explainer
from molgraph.generate.estimators.estimator import Estimator
from molgraph.generate.oracles.oracle import Oracle
from molgraph.generate.rewards.reward import Reward
from molgraph.generate.searches.search import Search
from molgraph.generate.transforms.transform import Transform
from molgraph.nn.basis import Basis
from molgraph.nn.block import BlockOption
from molgraph.nn.bottleneck import Bottleneck
from molgraph.nn.encoder import Encoder
from molgraph.nn.head import Head
from molgraph.nn.joiners import Joiner
from molgraph.nn.norms import Norm
from molgraph.nn.readouts import Readout
from molgraph.nn.sequence import SequenceLayers
from molgraph.study.study import Study
from molgraph.train.callback import Callback
from molgraph.train.objective import Objective
from molgraph.train.optimizers import MakeOptimizer, Schedule
from molgraph.trust.domains.domain import Domain
from molgraph.trust.wrapper import Wrapper

#: the base class of a kind's classes, or the class of its instances
CONTRACTS: dict[str, Any] = {
    "basis": Basis,
    "block": BlockOption,
    "bottleneck": Bottleneck,
    "callback": Callback,
    "compressor": Compressor,
    "domain": Domain,
    "encoder": Encoder,
    "estimator": Estimator,
    "explainer": Explainer,
    "featuriser": Featuriser,
    "generator": Generator,
    "head": Head,
    "joiner": Joiner,
    "method": Method,
    "metric": Metric,
    "norm": Norm,
    "objective": Objective,
    "optimizer": MakeOptimizer,
    "oracle": Oracle,
    "readout": Readout,
    "reward": Reward,
    "schedule": Schedule,
    "search": Search,
    "sequence": SequenceLayers,
    "split": Splitter,
    "standardiser": Preset,
    "study": Study,
    "transform": Transform,
    "view": View,
    "wrapper": Wrapper,
}
HERE = Path(__file__).parent
TOGETHER = {"schedule": "optimizer"}  # kinds that have a page and a file of trials with another one


def trials_of(kind: str) -> str:
    """The file of a kind's trials."""
    return "test_bases.py" if kind == "basis" else f"test_{kind}{'es' if kind.endswith('ch') else 's'}.py"


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_has_a_contract_that_its_members_keep(kind: str) -> None:
    contract = CONTRACTS[kind]
    assert contract.__doc__
    for name in names(kind):
        value = get(kind, name)
        assert isinstance(value, contract) or (isinstance(value, type) and issubclass(value, contract)), name


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_has_trials_over_the_registry(kind: str) -> None:
    text = (HERE / trials_of(TOGETHER.get(kind, kind))).read_text("utf-8")
    assert f'names("{kind}")' in text, "the trials take in whatever is registered"
