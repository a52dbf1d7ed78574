"""Pages that need nothing from anywhere: the template engine, and the style they share."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, Template

#: The head that all pages have, with the policy that forbids a request, and their style.
_SHARED = ("frame.html", "page.css")


@cache
def template(package: str, name: str) -> Template:
    """A page of a feature, compiled once; everything it shows is escaped.

    Args:
        package: that holds the page, ``envlock.verify``.
        name: of the file; it extends ``frame.html``.
    """
    places = {**dict.fromkeys(_SHARED, "envlock.adapters"), name: package}
    sources = {
        file: files(place).joinpath(file).read_text(encoding="utf-8")
        for file, place in places.items()
    }
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    return Environment(
        autoescape=True, undefined=StrictUndefined, loader=DictLoader(sources), **options
    ).get_template(name)
