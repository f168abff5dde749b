"""What pages share: templates, styles and scripts, and data for scripts.

A content security policy in a page allows its own script by digest and nothing from outside.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache

import jinja2
from markupsafe import Markup

from wavecast.report.kit import units


@cache
def environment() -> jinja2.Environment:
    """The templates of pages."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("wavecast.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.globals["units"] = units
    return templates


@cache
def asset(name: str) -> str:
    """The text of a file in the folder of templates."""
    templates = environment()
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0].strip()


def digest(script: str) -> str:
    """The script's source expression in a content security policy."""
    value = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(value).decode()}'"


def island(data: object) -> Markup:
    """JSON that cannot end its script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # nothing left that HTML reads


__all__ = ["asset", "digest", "environment", "island"]
