"""Jumps of `time.time` in a process: it adds the number of seconds currently in the file named by LOAD_CLOCK."""

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
