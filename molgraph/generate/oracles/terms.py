"""Read the terms of a combined oracle from a text such as "qed:1,logp=window(2,4),sa<4", or from a mapping."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from molgraph.base.errors import BadValueError, ConflictError, DataError, UnusedSettingError
from molgraph.base.parts import read_part, settings_of
from molgraph.generate.oracles.oracle import FunctionOracle, Oracle, make_oracle, oracle_at, oracle_class, parameters_of
from molgraph.generate.oracles.term import Bounds, Term
from molgraph.generate.transforms.transform import Transform, make_transform

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BOUND = re.compile(rf"([<>])(=?)\s*({_NUMBER})")
_TERM = re.compile(  # of a text whose brackets are emptied
    rf"(?P<name>[^()<>=]+?)(?P<argument>\(\))?\s*(?:=\s*(?P<transform>[A-Za-z][\w-]*)\s*(?P<values>\(\))?)?\s*"
    rf"(?P<rest>(?::\s*{_NUMBER})?(?:\s*[<>]=?\s*{_NUMBER})*)"
)
_SETTING = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)(.*)", re.DOTALL)
_OPEN, _CLOSE = "([{", ")]}"
SYNTAX = (
    'as in "qed", "qed:1,sa<4", "logp=window(2,4):0.5", "assay.mgm#pIC50:1,qed:0.5,similarity(CCO)>0.4", '
    '"product(qed,sa=reverse_sigmoid(2,5))", a function of one SMILES as module:function or "./file.py:function:0.5", '
    "or a .toml file with a table [NAME] for each, of weight, transform, min, max"
)


def pieces(text: str, mark: str = ",") -> Iterator[str]:
    """The text between marks that stand outside of brackets and quotes.

    Example:
        >>> [*pieces("qed,smarts([C,N]=O):2,sa<4")]
        ['qed', 'smarts([C,N]=O):2', 'sa<4']
    """
    start = 0
    for i, level in enumerate(_levels(text)):
        if text[i] == mark and not level:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def _levels(text: str) -> Iterator[int]:
    """How many brackets are open at each sign; the signs of a quoted text are within one more."""
    depth, quote = 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
            yield depth + 1
            continue
        quote = sign if sign in "\"'" else ""
        depth -= sign in _CLOSE
        yield depth + bool(quote)
        depth += sign in _OPEN


def inside_product(text: str) -> str | None:
    """The terms of ``product(...)``; None of another text."""
    inner = text.strip()
    if not (inner.startswith("product(") and inner.endswith(")")):
        return None
    return inner[8:-1] if all([*_levels(inner)][8:-1]) else None


def term_of(text: str, lead: str) -> Term:
    """The term that a text means; ``lead``: the molecule that ``similarity`` without brackets means."""
    emptied, groups, start = "", list[str](), 0
    for i, (sign, level) in enumerate(zip(text, _levels(text), strict=True)):
        if not level:
            if sign == ")":
                groups.append(text[start:i])
            emptied += sign
            start = i + 1
    if (match := _TERM.fullmatch(emptied)) is None:
        raise BadValueError(f"the oracle's part {text!r} cannot be understood", hint=SYNTAX)
    argument = groups.pop(0).strip() if match["argument"] else None
    curve = match["transform"] and match["transform"] + (f"({groups.pop(0)})" if match["values"] else "")
    rest = match["rest"]
    low, high = (-math.inf, False), (math.inf, True)  # the number, and whether it is outside or inside
    for sign, equal, number in _BOUND.findall(rest):
        if sign == ">":
            low = max(low, (float(number), not equal))
        else:
            high = min(high, (float(number), bool(equal)))
    weighed = re.match(rf":\s*({_NUMBER})", rest)
    weight = float(weighed[1]) if weighed else 0.0 if rest.strip() and not curve else 1.0
    bounds = Bounds(low[0], high[0], low[1], not high[1])
    return _term(match["name"].strip(), argument, weight, bounds, {}, lead, make_transform(curve) if curve else None)


def term_from_mapping(name: str, how: Any, lead: str) -> Term:
    """The term of a name and its weight, oracle or function, or a mapping.

    The keys of the mapping: weight, min, max, transform, target, ``oracle`` (another name than the column's), and the
    oracle's parameters.
    """
    if isinstance(how, (int, float)) and not isinstance(how, bool):
        return _term(name, None, float(how), Bounds(), {}, lead)
    if isinstance(how, Oracle):
        return Term(how, name)
    if callable(how):
        return Term(FunctionOracle(how, name), name)
    if not isinstance(how, Mapping):
        raise BadValueError(f"the oracle's part {name!r} is {how!r}, which is no weight", hint=SYNTAX)
    rest, bounds = dict(how), []
    for key, none in (("min", -math.inf), ("max", math.inf)):
        bounds.append(rest.pop(key, none))
    curve, inner = rest.pop("transform", None), rest.pop("oracle", None)
    weight = rest.pop("weight", 0.0 if curve is None and any(map(math.isfinite, bounds)) else 1.0)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (weight, *bounds)):
        raise BadValueError(f"weight, min and max of {name!r} are numbers", hint=SYNTAX)
    transform = make_transform(curve) if isinstance(curve, str) else curve
    if transform is not None and not isinstance(transform, Transform):
        raise BadValueError(f"the transform of {name!r} is {curve!r}", hint='a text, as in transform = "window(2, 4)"')
    limits = Bounds(float(bounds[0]), float(bounds[1]))
    if isinstance(inner, Oracle) or (inner is not None and not isinstance(inner, str)):
        scorer = inner if isinstance(inner, Oracle) else FunctionOracle(inner, name)
        return Term(scorer, name, float(weight), *limits, transform)
    label, argument = "", None
    if isinstance(inner, str):
        head = next(pieces(inner, "("))
        name, label = head, name
        argument = inner[len(head) + 1 :].rstrip().removesuffix(")") if inner != head else None
    if target := rest.pop("target", ""):
        name = f"{name}#{target}"
    return _term(name, argument, float(weight), limits, rest, lead, transform, label)


def _term(
    name: str,
    argument: str | None,
    weight: float,
    bounds: Bounds,
    params: Mapping[str, Any],
    lead: str,
    transform: Transform | None = None,
    label: str = "",
) -> Term:
    low, high, *strict = bounds
    if low > high or (low == high and any(strict)):
        raise ConflictError(f"the bounds of {name!r} leave nothing: over {low:g} and under {high:g}", hint=SYNTAX)
    if not math.isfinite(weight):
        raise BadValueError(f"the weight of {name!r} is {weight}", hint=SYNTAX)
    if name == "similarity" and argument is None and "lead" not in params:
        if not lead:
            raise DataError(
                "similarity needs a molecule to be similar to", hint="similarity(SMILES), or --start SMILES"
            )
        argument = lead
    path, _, target = name.partition("#")
    if path.endswith(".mgm"):
        first, settings = _arguments("model", argument)
        if first:
            raise UnusedSettingError(f"{path} takes no {first[0]!r} in brackets", hint=f"as in {path}#TARGET")
        label = label or target or Path(path).stem
        return Term(make_oracle("model", name, **settings, **params), label, weight, *bounds, transform)
    first, settings = _arguments(name, argument)
    oracle = oracle_at if ":" in name or name.endswith(".py") else make_oracle
    scorer = oracle(name, *first, **settings, **params)
    return Term(scorer, label or scorer.name, weight, *bounds, transform)


def _arguments(name: str, text: str | None) -> tuple[list[Any], dict[str, Any]]:
    """The first value in an oracle's brackets, which may have commas of its own, and the settings behind it."""
    if text is None or not text.strip():
        return ([] if text is None else [text]), {}
    cls = oracle_class(name)
    known = {} if cls is None else parameters_of(cls)
    parts = [*pieces(text)]
    last = len(parts)
    while last and (match := _SETTING.fullmatch(parts[last - 1])) and match[1] in known:
        last -= 1
    first, rest = ",".join(parts[:last]).strip(), ",".join(parts[last:])
    settings = settings_of(cls, read_part(f"{name}({rest})", "oracle")) if rest and cls is not None else {}
    if first[:1] in "\"'" and first[-1:] == first[:1] and len(first) > 1:
        first = str(ast.literal_eval(first))
    return ([first] if first else []), settings
