"""The program in a peer's environment: `python serve.py MODULE`, one JSON request per line, one JSON answer per line.

The first request gives the facts: data (a Parquet file), level ("row", "user"), rows, epsilon, delta, max_rows, regions, days.
Every further request names a query; its answer holds milliseconds and rows as [keys, values].
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
import warnings
from typing import Any


def main() -> None:
    """Serve until the input ends."""
    warnings.filterwarnings("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep output of libraries out of the answers
    peer: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if peer is None:
                peer = importlib.import_module(sys.argv[1]).Peer(asked)
                answer = {"ready": True}
            else:
                cpu, wall = time.process_time(), time.perf_counter()
                rows = peer.ask(asked["question"])
                took = (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
                answer = {"wall": took[0], "cpu": took[1], "rows": [[list(map(str, k)), plain(v)] for k, v in rows]}
        except BaseException as error:  # a panic of a Rust library is one
            traceback.print_exc()
            words = str(error).strip().splitlines()
            answer = {"error": f"{type(error).__name__}: {words[0] if words else ''}"[:200]}
        out.write(json.dumps(answer) + "\n")
        out.flush()


def plain(values: Any) -> list[float | None]:
    """Return the numbers as JSON numbers."""
    return [None if value is None else float(value) for value in values]


if __name__ == "__main__":
    main()
