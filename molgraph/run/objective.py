"""Choose the objective by the labels: ``tobit`` for limits such as >8, ``dose_response`` for points of curves."""

from __future__ import annotations

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.curves import curve_of
from molgraph.run.method import is_graph, method_of

TOBIT, CURVES = "tobit", "dose_response"


def with_objective(config: RunConfig, method: Method) -> tuple[RunConfig, Method]:
    """The configuration and method that learn the labels at hand: a graph model by their objective, if none is named.

    Other methods learn the parameters of those curves that determine them.

    Raises:
        UnsupportedError: limits, and a method, or an objective that was named, which learns measured values alone.
    """
    limits, graph = config.data.qualifiers == "learn", is_graph(method)
    named = "objective" in config.training.model_fields_set
    if graph and curve_of(config.data.targets) is not None and not named:
        config = config.with_values("training", objective=CURVES)
        method = method_of(config)
    elif graph and limits and not named:
        config = config.with_values("training", objective=TOBIT)
        method = method_of(config)
    if limits and (unable := [part for part in method.innermost if not part.learns_limits]):
        by = f" by {config.training.objective}" if graph else ""
        able = ", ".join(
            name for name in names("method") if name != "graph" and get("method", name).learns_limits is True
        )
        words = f"{unable[0].model_name}{by} learns measured values alone, and not limits such as >8"
        hint = f"a graph model (-m dmpnn) or one of {able} learns them; --qualifiers drop leaves them out"
        raise UnsupportedError(words, hint=hint)
    return config, method
