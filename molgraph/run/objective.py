"""Prepare training on censored labels such as >8 (``--qualifiers learn``): choose the loss, refuse other methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.limits import middle_of, refuse_limits, without_limits
from molgraph.data.table import Table
from molgraph.run.baselines import is_graph, method_of

TOBIT, CURVES = "tobit", "dose_response"


def learning_limits(config: RunConfig, method: Method) -> tuple[RunConfig, Method]:
    """The recipe and method that learn limits: a graph model by the objective ``tobit``, where none was named.

    Raises:
        UnsupportedError: a method, or an objective that was named, which learns measured values alone.
    """
    if is_graph(method) and config.training.objective == DEFAULTS.objective:
        training = config.training.model_copy(update={"objective": TOBIT})
        config = config.model_copy(update={"training": training})
        method = method_of(config)
    if unable := [part for part in method.innermost if not part.learns_limits]:
        of = f" by {config.training.objective}" * is_graph(method)
        able = ", ".join(
            name for name in names("method") if name != "graph" and get("method", name).learns_limits is True
        )
        words = f"{unable[0].model_name}{of} learns measured values alone, and not limits such as >8"
        hint = f"a graph model (-m dmpnn) or one of {able} learns them; --qualifiers drop leaves them out"
        raise UnsupportedError(words, hint=hint)
    return config, method


def learning_curves(config: RunConfig, method: Method) -> tuple[RunConfig, Method]:
    """The recipe and method that learn dose-response curves: a graph model by their points, if no objective is named.

    Other methods learn the parameters of those curves that determine them.
    """
    if is_graph(method) and "objective" not in config.training.model_fields_set:
        training = config.training.model_copy(update={"objective": CURVES})
        config = config.model_copy(update={"training": training})
        method = method_of(config)
    return config, method


def limits_as_asked(table: Table, config: RunConfig) -> Table:
    """A ready table with its limits learnt, dropped or taken as values, as the recipe says.

    Raises:
        LabelError: there are limits, and nothing is said of them.
    """
    asked = config.data.qualifiers
    if asked == "refuse":
        refuse_limits(table, "a training that says nothing of them", "qualifiers='learn' learns them")
    if asked == "strip" and table.limits is not None and table.y is not None:
        table = replace(table, y=np.where(table.limited, middle_of(table.limits), table.y))
    return table if asked == "learn" else without_limits(table)
