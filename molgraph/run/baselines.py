"""Decide what is trained beside a model: a forest, the mean, each side of pairs alone, the same model from scratch."""

from __future__ import annotations

from collections.abc import Sequence

from molgraph.base.contracts import Method
from molgraph.base.errors import ConflictError
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.data.sides import Side
from molgraph.data.table import Table
from molgraph.run.config import split_name
from molgraph.run.method import core_class, is_graph, known_options
from molgraph.run.start import PROBED
from molgraph.train.make_method import make_method, method_class
from molgraph.train.method import GraphMethod
from molgraph.train.one_side import method_sides

BASELINE = "random_forest"
TRIVIAL = "mean"  # a method that does not beat it has learned nothing
SCRATCH = " from scratch"  # ends the name of a model that is trained beside the same one with a start
OF_ROWS = (DEFAULTS.objective, "tobit")  # objectives that learn the labels of rows by the head alone
MOST_COMPARED = 2_000  # rows below which a model is trained from scratch too: it takes as long as the fine-tuning


def baselines_for(config: RunConfig, method: Method, table: Table) -> list[str]:
    """Names of a method's baselines: a forest for a graph model of molecules unless refused, and the trivial one."""
    forest = config.training.baseline and is_graph(method) and of_molecules(table)
    return [BASELINE] * forest + [TRIVIAL] * (config.model.name != TRIVIAL)


def baseline_method(name: str, config: RunConfig) -> Method:
    """A baseline with the run's seed, threads and weights of classes, where it takes them."""
    shared = {"seed", "threads", "class_weights"} & known_options(method_class(name))
    return make_method(name, **config.training.model_dump(include=shared))


def of_molecules(table: Table) -> bool:
    """Whether rows are single molecules with a value each."""
    return [entity.kind for entity in table.entities] == ["molecule"] and not table.packed


def controls_for(config: RunConfig, method: Method, table: Table) -> tuple[Side, ...]:
    """The sides, such as the ligand alone, that a graph model of pairs or complexes is trained on beside the whole."""
    return method_sides(method, table) if config.training.baseline and is_graph(method) else ()


def scratch_for(config: RunConfig, method: Method, parts: Sequence[Table]) -> Method | None:
    """The same graph model with random weights where a model starts from a file, on few rows or where asked for."""
    compare = config.training.compare
    if compare is None:
        compare = config.training.baseline and sum(map(len, parts)) < MOST_COMPARED
    if config.model.init is None or not compare:
        return None
    if not isinstance(method, GraphMethod) or method.objective not in OF_ROWS:
        return None
    head = {"head_layers": GraphMethod().head_layers} if method.callback == PROBED else {}
    return GraphMethod(**method.get_params() | head | {"init": None, "callback": None})


def check_keep(config: RunConfig, keep: str) -> None:
    """Refuse before the training what could not be kept after it."""
    name, params, data = config.model.name, config.model.params, config.data
    several = data.sequence or (not isinstance(data.smiles, str | None) and len(data.smiles) > 1)
    if keep == "baseline" and (several or data.geometry or data.reaction):
        kind = "pairs" if several else "geometries" if data.geometry else "reactions"
        raise ConflictError(f"there is no baseline to keep: {kind} have none", hint="leave out --keep baseline")
    if keep == "baseline" and not (config.training.baseline and issubclass(core_class(name, params), GraphMethod)):
        reason = f"{name} has none" if config.training.baseline else "--no-baseline trains none"
        raise ConflictError(f"there is no baseline to keep: {reason}", hint=f"train it alone: --model {BASELINE}")
    if keep == "best" and config.split.fractions[1] == 0 and get("split", split_name(config)).uses_fractions:
        hint = "give it a share, as in --fractions 0.8,0.1,0.1"
        raise ConflictError("--keep best chooses by the validation part, and the fractions leave none", hint=hint)
