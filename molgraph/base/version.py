"""Look up the version of molgraph, which ``pyproject.toml`` reads from here, and those of other packages."""

from collections.abc import Iterable
from contextlib import suppress

__version__ = "0.1.0"


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of molgraph, of Python and of those packages that are installed."""
    import platform  # these two take longer than all else that ``import molgraph`` imports
    from importlib.metadata import PackageNotFoundError, version

    versions = {"molgraph": __version__, "python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
