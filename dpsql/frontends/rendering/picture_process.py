"""The process that draws one picture: the specification on standard input, the picture on standard output.

The library that draws ends its process at some inputs (a control character in a label), so it is never loaded into one that has
charged for an answer. Nothing of dpsql is imported, so that the process starts quickly.
"""

import json
import resource
import sys
from typing import Any

MOST_SECONDS = 60
"""Processor time of one picture."""


def drawn(kind: str, specification: str) -> bytes:
    """Return a picture as bytes: "svg", "png", or the scripts ("scripts") that show a specification in a page."""
    import vl_convert

    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(specification, scale=2))
    text: str = (
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        if kind == "scripts"
        else vl_convert.vegalite_to_svg(specification)
    )
    return text.encode()


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    request: dict[str, Any] = json.load(sys.stdin)
    sys.stdout.buffer.write(drawn(request["kind"], request["specification"]))


if __name__ == "__main__":
    main()
