"""Charts as files and as parts of pages. They are drawn in a process of their own, whose end ends nothing else.

Two independent things keep a hostile key harmless. Every text of a chart is cleaned before it is drawn
(`media.text.picture`), and the library that draws runs in `picture_process`: if it ends for a reason that we do not
know, that is the fault `plot_failed`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.media.markup import Markup, markup, source_markup
from dpsql.media.text import json_text, picture, script_json

Chart = Any
_PROGRAM = Path(__file__).with_name("picture_process.py")
_MOST_SECONDS = 120
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>#chart {{ width: 100%; display: flex; }} details, summary {{ position: relative; }}</style>
<script>{scripts}</script></head>
<body><div id="chart"></div>
<script>vegaEmbed("#chart", {specification}, {{"renderer": "svg"}}).catch(console.error);</script></body></html>
"""
_PAGE_TITLE = "Answer with error bars"


def specification(chart: Chart) -> dict[str, Any]:
    """Return a chart as plain values in which each text is cleaned for a picture."""
    cleaned: dict[str, Any] = _cleaned(chart.to_dict())
    return cleaned


def _cleaned(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _cleaned(part) for name, part in node.items()}
    if isinstance(node, list):
        return list(map(_cleaned, node))
    return picture(node) if isinstance(node, str) else node


def svg(chart: Chart, *, charged: bool = False) -> str:
    """Return a chart as SVG. Raises Fault plot_failed; `charged`: whether a charge stays."""
    return _drawn("svg", specification(chart), charged).decode()


def picture_bytes(chart: Chart, ending: str, *, charged: bool = False) -> bytes:
    """Return a chart in the format of a file's ending (.svg, .png, .html or .json). Raises Fault plot_failed."""
    described = specification(chart)
    if ending == ".json":
        return json_text(described, indent=2).encode()
    if ending == ".html":
        return _page(described, charged).encode()
    return _drawn(ending.removeprefix("."), described, charged)


def _page(described: dict[str, Any], charged: bool) -> Markup:
    """Return a page that needs no network. The specification is an expression of its script, in which no text can end the
    script."""
    scripts = _drawn("scripts", {}, charged).decode()
    return markup(
        _PAGE, title=_PAGE_TITLE, scripts=source_markup(scripts), specification=source_markup(script_json(described))
    )


def _drawn(kind: str, described: dict[str, Any], charged: bool) -> bytes:
    request = json.dumps({"kind": kind, "specification": json.dumps(described)}).encode()
    # As in `release.confinement`: its own imports are found, and modules in the folder of the program are not.
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.defpath}
    command = [sys.executable, "-P", str(_PROGRAM)]
    try:
        done = subprocess.run(
            command, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_MOST_SECONDS,
            env=environment, cwd="/", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise refuse("plot_failed", problem="drawing took too long", charged=charged) from None
    except OSError as error:
        raise refuse("plot_failed", problem=error.strerror or "it did not start", charged=charged) from None
    if done.returncode or not done.stdout:
        raise refuse("plot_failed", problem=f"it ended with status {done.returncode}", charged=charged)
    return done.stdout
