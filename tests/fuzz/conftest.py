"""How much is tried: DPSQL_FUZZ multiplies the numbers of examples (default 1), DPSQL_FUZZ_SEED chooses others."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import cache

from support.places import TESTS

from dpsql.policy import load_policy
from fuzz.laws import Trial

POLICIES = TESTS / "policies"
TIMES = int(os.environ.get("DPSQL_FUZZ", "1"))
SEED = os.environ.get("DPSQL_FUZZ_SEED", "0")


@cache
def trial(policy: str) -> Trial:
    """The sessions of one policy of tests/policies, opened once."""
    return Trial(load_policy(POLICIES / f"{policy}.yaml"))


def examples(what: str, count: int) -> Iterator[tuple[str, random.Random]]:
    """`count` (times DPSQL_FUZZ) sources of random choices, each with a name to ask for it again."""
    for number in range(count * TIMES):
        name = f"{SEED}/{what}/{number}"
        yield name, random.Random(name)
