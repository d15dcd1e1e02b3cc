"""Growth of a server's memory over many queries. Run by `.ci/nightly`.

`PYTHONPATH=.:tests python -m load.memory --questions 20000` sends distinct queries over the wire, from `--clients` at once,
prints the largest resident memory of the server within each tenth of them, and exits with 1 if a later tenth has `--most` MB more
than the first. Memory rises until the source is reopened and then falls, so the maxima of the tenths are compared, not the values
at their ends.
"""

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from support.raw_client import Client
from support.served_clinic import build_clinic

from load.run import memory_of

EACH = 10
SHAPES = (
    "SELECT COUNT(*) AS n FROM patients WHERE age > {:.6f}",
    "SELECT sex, AVG(weight) AS w FROM patients WHERE bmi < {:.6f} GROUP BY sex",
    "SELECT age, COUNT(*) AS n FROM patients WHERE weight > {:.6f} GROUP BY age",
)


def memory_over(folder: Path, questions: int, seed: int, clients: int = 1) -> list[int]:
    """Return the largest resident memory (MB) of a server in `folder` within each tenth of `questions` distinct queries from
    `clients` clients, all of them measured and charged."""
    served = build_clinic(folder)
    without_end = re.sub(
        r"(?m)^(budget: \{epsilon: |  \w+: \{epsilon: )[0-9.]+", r"\g<1>10000", served.policy.read_text()
    )
    served.policy.write_text(without_end)
    served.start()
    memory = []
    try:
        opened = [served.client() for _ in range(clients)]
        for client in opened:
            client.query("SET dp.epsilon = 0.01; SET dp.reuse = off")
        with ThreadPoolExecutor(clients) as threads:
            for tenth in range(1, 11):
                chances = [random.Random(f"{seed} {tenth} {number}") for number in range(clients)]
                ask = partial(_ask, questions=questions // 10 // clients, memory=partial(memory_of, served))
                memory.append(max(threads.map(ask, opened, chances)))
                print(f"{tenth * questions // 10:>8} questions {memory[-1]:>6} MB", flush=True)
    finally:
        served.stop()
    return memory


def _ask(client: Client, chance: random.Random, questions: int, memory: Callable[[], int]) -> int:
    """Send `questions` distinct queries, each of which must be answered. Return the largest `memory`, sampled after every `EACH`
    queries and at the end."""
    largest = 0
    for number in range(questions):
        sql = chance.choice(SHAPES).format(chance.random() * 90)
        messages = client.query(sql)
        if b"D" not in {kind for kind, _ in messages}:
            raise ConnectionError(f"no answer to {sql}: {messages}")
        if number % EACH == 0 or number == questions - 1:
            largest = max(largest, memory())
    return largest


def main() -> int:
    """Run, print the result, and return the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=int, default=20_000)
    options.add_argument("--most", type=int, default=10, help="MB")
    options.add_argument("--clients", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = memory_over(Path(folder), chosen.questions, chosen.seed, chosen.clients)
    grown = max(memory) - memory[0]
    print(
        f"{int(grown <= chosen.most)} passed: the server grew by {grown} MB after the first tenth (at most {chosen.most})"
    )
    return int(grown > chosen.most)


if __name__ == "__main__":
    sys.exit(main())
