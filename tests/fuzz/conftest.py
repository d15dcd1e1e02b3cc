"""Numbers of examples: DPSQL_FUZZ multiplies them (default 1), DPSQL_FUZZ_SEED selects other examples."""

import os
import random
from collections.abc import Iterator
from functools import cache

from support import places

from fuzz.laws import Trial

TIMES = int(os.environ.get("DPSQL_FUZZ", "1"))
SEED = os.environ.get("DPSQL_FUZZ_SEED", "0")


@cache
def trial(policy: str) -> Trial:
    """Return the sessions of one policy (`places.policy`), opened once."""
    return Trial(places.policy(policy))


def examples(what: str, count: int) -> Iterator[tuple[str, random.Random]]:
    """Yield `count` (times DPSQL_FUZZ) sources of randomness, each with a name from which it can be recreated."""
    for number in range(count * TIMES):
        name = f"{SEED}/{what}/{number}"
        yield name, random.Random(name)
