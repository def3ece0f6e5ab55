"""A room with a verb's name: its module in; a module that can also be called, and does what the verb does, out."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any


class VerbRoom(ModuleType):
    """The class of such a room's module: ``molgraph.train`` is the room; called, it is ``molgraph.api.train``.

    Python puts an imported room into the package under its name, over any function that stood there.

    Example:
        >>> import molgraph, molgraph.train.model
        >>> isinstance(molgraph.train, VerbRoom), callable(molgraph.train)
        (True, True)
    """

    def _verb(self) -> Any:
        package, _, name = self.__name__.rpartition(".")
        return getattr(import_module(sys.modules[package]._HOMES[name]), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the verb does."""
        return self._verb()(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        return signature(self._verb())
