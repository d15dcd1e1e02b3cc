"""Makes `time.time` of a process jump: it adds the seconds that the file named by LOAD_CLOCK has at the moment."""

import os
import time

_now, _place = time.time, os.environ.get("LOAD_CLOCK", "")


def _jumping() -> float:
    try:
        with open(_place) as file:
            return _now() + float(file.read() or 0)
    except (OSError, ValueError):
        return _now()


if _place:
    time.time = _jumping
