"""Find the files of each kind of plug-in (encoders, losses, splits, ...), which the registry imports on demand."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of part.

    Args:
        folders: modules that register members, those that are quick to import first; ``package.*`` and
            ``package.word*`` stand for all modules of those names. ``molgraph.auxiliary.KIND.*`` is one of each kind.
        option: how a person names one, with its settings.
    """

    folders: tuple[str, ...]
    option: str = ""


PARAMS = "--set params.NAME=VALUE"
KINDS: dict[str, Kind] = {
    "standardiser": Kind(("molgraph.chem.standardise",), "--standardise {name}"),
    "split": Kind(("molgraph.data.splits.*",), "--split '{name}(NAME=VALUE)'"),
    "featuriser": Kind(("molgraph.data.featurize*",)),
    "view": Kind(("molgraph.data.views.*",), "--views '{name}(NAME=VALUE)'"),
    "readout": Kind(("molgraph.nn.*readouts",), "--set 'params.readout={name}(NAME=VALUE)'"),
    "norm": Kind(("molgraph.nn.*norms",), "--set 'params.norm={name}(NAME=VALUE)'"),
    "basis": Kind(("molgraph.nn.*basis",), "--set 'params.basis={name}(NAME=VALUE)'"),
    "sequence": Kind(("molgraph.nn.sequences.*",), "--set 'params.sequence={name}(NAME=VALUE)'"),
    "bottleneck": Kind(("molgraph.nn.bottlenecks.*",), "--set 'params.posterior={name}(NAME=VALUE)'"),
    "head": Kind(("molgraph.nn.heads.*",), "--set 'params.head={name}(NAME=VALUE)'"),
    "block": Kind(("molgraph.nn.blocks.*",), "--set 'params.KEY={name}(NAME=VALUE)'"),
    "joiner": Kind(("molgraph.nn.*joiners",), "--set 'params.joiner={name}(NAME=VALUE)'"),
    "objective": Kind(("molgraph.train.objective", "molgraph.train.objectives.*"), "--objective '{name}(NAME=VALUE)'"),
    "optimizer": Kind(("molgraph.train.optimizers",), "--optimizer '{name}(NAME=VALUE)'"),
    "schedule": Kind(("molgraph.train.optimizers",), "--schedule '{name}(NAME=VALUE)'"),
    "callback": Kind(("molgraph.train.callbacks.*",), "--callback '{name}(NAME=VALUE)'"),
    "encoder": Kind(("molgraph.models.*",), PARAMS),
    "metric": Kind(("molgraph.evaluate.metrics",)),
    "generator": Kind(("molgraph.generate.*",), PARAMS),
    "oracle": Kind(("molgraph.generate.oracles.*",), "--oracle '{name}:WEIGHT'"),
    "transform": Kind(("molgraph.generate.transforms.*",), "--oracle 'NAME={name}(VALUE):WEIGHT'"),
    "search": Kind(("molgraph.generate.searches.*",), "--search '{name}(NAME=VALUE)'"),
    "estimator": Kind(("molgraph.generate.estimators.*",), "--search 'policy(estimator={name}(NAME=VALUE))'"),
    "reward": Kind(("molgraph.generate.rewards.*",), "--reward '{name}(NAME=VALUE)'"),
    "method": Kind(
        ("molgraph.auxiliary.*", "molgraph.train.method", "molgraph.trust.*", "molgraph.auxiliary.peers.*"), PARAMS
    ),
    "wrapper": Kind(("molgraph.trust.*",), "--model '{name}(MODEL, NAME=VALUE)'"),
    "domain": Kind(("molgraph.trust.domains.*",), "--model 'domain(MODEL, by={name}(NAME=VALUE))'"),
    "compressor": Kind(("molgraph.compress.*",), "--how '{name}(NAME=VALUE)'"),
    "explainer": Kind(("molgraph.explain.*",), "--by '{name}(NAME=VALUE)'"),
    "study": Kind(("molgraph.study.*",), "molgraph study '{name}(NAME=VALUE)'"),
}
