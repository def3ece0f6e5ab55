"""Read a combined oracle from a text such as "qed:1,sa<4", a mapping, a TOML file or a function of one SMILES."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from molgraph.base.errors import ConflictError
from molgraph.base.toml_config import read_toml
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.oracle import FunctionOracle, Oracle
from molgraph.generate.oracles.stages import read_stages
from molgraph.generate.oracles.term import Term
from molgraph.generate.oracles.terms import inside_product, pieces, term_from_mapping, term_of

Given = str | Path | Oracle | Callable[[str], float] | Mapping[str, Any]


def read_oracle(given: Given, lead: str = "") -> Combined:
    """An oracle from a text, a TOML file, a mapping, an oracle or a function of one SMILES.

    Args:
        given: a text as in ``SYNTAX``; or name -> weight, or name -> {weight, transform, min, max, oracle, and the
            oracle's parameters}, with ``combine`` -> ``sum`` or ``product``.
        lead: the molecule that ``similarity`` without brackets means.

    Raises:
        UsageError: it cannot be understood; the hint shows the form.
    """
    if isinstance(given, Combined):
        return given
    if isinstance(given, Oracle):
        return Combined([Term(given, given.name)])
    if isinstance(given, Mapping):
        rest = dict(given)
        combine = str(rest.pop("combine", "sum"))
        if "stage" in rest:
            if others := [name for name in rest if name != "stage"]:
                raise ConflictError(f"{others[0]} stands beside the stages", hint="write it into one of them")
            return read_stages(rest["stage"], lambda each: read_oracle(each, lead), combine)
        return Combined([term_from_mapping(str(name), how, lead) for name, how in rest.items()], combine)
    if callable(given):
        oracle = FunctionOracle(given)
        return Combined([Term(oracle, oracle.name)])
    text = str(given)
    if text.endswith(".toml"):
        return read_oracle(_read_toml(Path(text)), lead)
    inner = inside_product(text)
    terms = [term_of(part.strip(), lead) for part in pieces(text if inner is None else inner) if part.strip()]
    return Combined(terms, "sum" if inner is None else "product")


def _read_toml(path: Path) -> Mapping[str, Any]:
    config = read_toml(path, "sa = {max = 4}", "oracle")
    inner = config.get("oracle", config.get("objective", config))
    return inner if isinstance(inner, Mapping) else {str(inner): 1.0}
