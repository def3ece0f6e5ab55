"""Make text fit to print: counts of things, and text from a file harmless for a terminal."""

from __future__ import annotations

import re

# control characters but tab and newline; marks that turn the direction of writing; halves of characters
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def count(n: int, word: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "core"), count(2000, "thread")
        ('1 core', '2,000 threads')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def printable(text: str) -> str:
    r"""The text with every character that a terminal would act on written out.

    Example:
        >>> printable("logS\x1b[2J (mol/l)")
        'logS\\x1b[2J (mol/l)'
    """
    return _HARMFUL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which no file and no Arrow column can hold, written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
