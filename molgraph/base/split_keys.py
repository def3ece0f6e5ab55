"""Define the recipe keys of the split: the rows that are trained on, watched and tested."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, Field, PlainSerializer, field_validator

from molgraph.base.options import Option
from molgraph.base.toml_config import Section

SPLITTER = AliasChoices("splitter", "recipe")  # the key, and its former name
# JSON and TOML are UTF-8, which a file's name need not be: halves of characters are written out there
Name = Annotated[str, PlainSerializer(lambda name: name.encode("utf-8", "backslashreplace").decode(), when_used="json")]


def cv_shape(text: str) -> tuple[int, int]:
    """Repeats and folds of a cross-validation.

    Example:
        >>> cv_shape("5x5"), cv_shape("10")
        ((5, 5), (1, 10))
    """
    match = re.fullmatch(r"(?:([1-9]\d{0,2})\s*[xX]\s*)?([1-9]\d{0,2})", text.strip())
    repeats, folds = (int(match[1] or 1), int(match[2])) if match else (0, 0)
    if folds < 2:
        raise ValueError("repeats x folds, with 2 folds or more, are expected, as in 5x5")
    return repeats, folds


class SplitSection(Section):
    """Which rows are trained on, watched and tested."""

    splitter: Annotated[
        Name, Field(validation_alias=SPLITTER), Option("A splitter, or a .json or .csv of rows.", "SPLITTER")
    ] = "scaffold/balanced"
    fractions: Annotated[tuple[float, float, float], Option("Shares of train, valid, test.", "A,B,C")] = (0.8, 0.1, 0.1)
    cv: Annotated[
        str | None,
        AfterValidator(lambda text: text if text is None else "x".join(map(str, cv_shape(text)))),
        Option("Estimate the error by repeated cross-validation first: repeats x folds, as 5x5.", "RxK"),
    ] = None
    final: Annotated[
        bool,
        Option(
            "Train the kept model on all rows at the end; its card keeps the scores of the split.", "", ("--final",)
        ),
    ] = False
    seed: int = 0

    @field_validator("fractions")
    @classmethod
    def _sum_to_one(cls, fractions: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(fractions) < 0 or fractions[0] == 0 or abs(sum(fractions) - 1) > 1e-6:
            raise ValueError("three shares (train, valid, test) that sum to 1, the first above 0, are expected")
        return fractions
