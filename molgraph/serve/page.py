"""Make the page of a server from its template, in the style of molgraph's reports."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

from molgraph.base.version import __version__


@cache
def _template() -> Template:
    loader = ChoiceLoader([PackageLoader("molgraph.serve", ""), PackageLoader("molgraph.evaluate", "")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("serve.html.jinja")


def page(nonce: str, needs_token: bool) -> str:
    """The page.

    Args:
        nonce: a random word that its script bears, so that no other script runs in it.
        needs_token: whether it asks for a token.
    """
    return _template().render(version=__version__, nonce=nonce, needs_token=needs_token)


def policy(nonce: str) -> str:
    """The header ``Content-Security-Policy``: this page's own script and style, and requests to this server alone."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
