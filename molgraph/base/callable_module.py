"""Make a package that has a verb's name callable, so that it does what the verb does and has its help."""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc, signature
from types import ModuleType
from typing import Any


class VerbRoom(ModuleType):
    """The class of such a package's module: ``molgraph.train`` is the package; called, it is ``molgraph.api.train``.

    Python puts an imported room into the package under its name, over any function that stood there.

    Example:
        >>> import molgraph, molgraph.train.model
        >>> isinstance(molgraph.train, VerbRoom), callable(molgraph.train)
        (True, True)
    """

    def _verb(self) -> Any:
        package, _, name = self.__name__.rpartition(".")
        return getattr(import_module(f"{package}.api"), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the verb does."""
        return self._verb()(*args, **kwargs)

    @property
    def __doc__(self) -> str:  # type: ignore[override] # help(molgraph.train) is asked about the verb
        """The verb's own text, its signature after the first sentence."""
        verb, name = self._verb(), self.__name__
        first, _, rest = (getdoc(verb) or "").partition("\n\n")
        return f"{first}\n\n{name}{signature(verb)}\n\n{rest}"

    @property
    def __signature__(self) -> Any:
        return signature(self._verb())
