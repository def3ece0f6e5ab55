"""Hash the source files that define classes and functions, and look up the git commit of molgraph."""

from __future__ import annotations

import hashlib
import inspect
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_INSTALLED = tuple({str(Path(sysconfig.get_paths()[name])) for name in ("stdlib", "purelib", "platlib")})


def code_hash(objects: Iterable[Any]) -> str:
    """sha256 of the files that define classes, their bases, functions and modules; of molgraph and of one's own alone.

    Of one's own package all files count, of a module by itself its own. Installed packages count by their version;
    imports, and the contracts of ``molgraph.base``, do not count.

    Example:
        >>> from pathlib import Path
        >>> len(code_hash([Path])), code_hash([Path]) == code_hash([dict])
        (64, True)
    """
    files, packages = {}, set[str]()
    for item in objects:
        for part in item.__mro__ if isinstance(item, type) else (item,):
            name = part.__name__ if isinstance(part, ModuleType) else getattr(part, "__module__", "")
            if name.startswith("molgraph.base."):
                continue
            path = getattr(sys.modules.get(name), "__file__", None)
            if path and (path.startswith(str(_ROOT)) or not path.startswith(_INSTALLED)):
                files[name] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                if not path.startswith(str(_ROOT)) and (top := name.partition(".")[0]) not in packages:
                    packages.add(top)
                    for folder in getattr(sys.modules.get(top), "__path__", ()):
                        for file in Path(folder).rglob("*.py"):
                            place = file.relative_to(folder).as_posix()
                            files[f"{top}/{place}"] = hashlib.sha256(file.read_bytes()).hexdigest()
            elif not path and name == "__main__":  # of a notebook or a prompt
                files[part.__qualname__] = hashlib.sha256(inspect.getsource(part).encode()).hexdigest()
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


@cache
def commit() -> str:
    """The commit of molgraph's repository, with ``-dirty`` where files were changed; empty for an installed wheel."""
    words = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        asked = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    tracked = (_ROOT.parent / ".git").exists()
    return asked.stdout.strip() if asked.returncode == 0 and tracked else ""
