"""For any input: only dpsql's own exceptions are raised, refusals are complete, neighbours are indistinguishable, answers equal
DuckDB's.

The laws are defined in `laws`; they are checked on random queries, mutated queries of the corpora, arbitrary text and odd values.
"""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import mutations, texts, values
from fuzz.conftest import SEED, TIMES, examples, trial
from fuzz.grammar import Writer

CORPUS = mutations.corpus()


def tried(name: str, sql: object, attempt: Callable[[], object]) -> None:
    """Run one attempt; any failure names the example."""
    try:
        attempt()
    except BaseException as error:
        error.add_note(f"example {name}: {sql!r}"[:3_000])
        raise


@pytest.mark.parametrize(
    ("policy", "count"),
    [("hospital", 10), ("hospital_rows", 12), ("shop", 6), ("tpch", 3), ("numbers", 5), ("clickbench", 3)],
)
def test_generated_questions_are_answered_as_the_engine_does(policy: str, count: int) -> None:
    """Queries that dpsql should answer, so that answers are compared; most of them are answered."""
    here = trial(policy)
    compared = here.compared
    for name, rng in examples(f"question/{policy}", count):
        sql = Writer(rng, here.policy, 0.0).statement()
        tried(name, sql, lambda sql=sql: here.check(sql))  # type: ignore[misc]
    assert here.compared > compared or count < 6  # few examples over wide tables may all be refused


@pytest.mark.parametrize(
    ("policy", "count"), [("hospital", 45), ("hospital_rows", 20), ("shop", 25), ("tpch", 8), ("numbers", 15)]
)
def test_odd_questions_are_answered_or_refused(policy: str, count: int) -> None:
    """Queries with shapes that dpsql does not answer, or not in that place."""
    here = trial(policy)
    for name, rng in examples(f"odd/{policy}", count):
        sql = Writer(rng, here.policy, rng.choice([0.1, 0.3, 0.6])).statement()
        tried(name, sql, lambda sql=sql: here.check(sql))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("policy", "count"), [("hospital", 12), ("hospital_rows", 8), ("shop", 6), ("numbers", 8), ("answers", 6)]
)
def test_corners_of_the_accepted_grammar_are_answered_or_refused(policy: str, count: int) -> None:
    """Values of earlier stages in keys and conditions, public rows that a join keeps, samples, and extreme numbers."""
    here = trial(policy)
    for name, rng in examples(f"corner/{policy}", count):
        sql = Writer(rng, here.policy, 0.0, rng.choice([0.1, 0.2, 0.4])).statement()
        tried(name, sql, lambda sql=sql: here.check(sql))  # type: ignore[misc]


@pytest.mark.parametrize(("policy", "count"), [("hospital", 200), ("shop", 60), ("tpch", 30), ("clickbench", 30)])
def test_mutated_queries_are_answered_or_refused(policy: str, count: int) -> None:
    here = trial(policy)
    for name, rng in examples(f"mutated/{policy}", count):
        sql = mutations.mutated(rng, CORPUS[policy])
        tried(name, sql, lambda sql=sql: here.check(sql))  # type: ignore[misc]


def test_random_text_is_refused_in_our_words() -> None:
    here = trial("hospital")
    for name, rng in examples("rubbish", 1_500):
        sql = texts.random_text(rng)
        tried(name, sql, lambda sql=sql: here.check(sql))  # type: ignore[misc]


@settings(
    max_examples=150 * TIMES,
    deadline=None,
    derandomize=SEED == "0",
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.text(max_size=60), st.sampled_from(["", "SELECT ", "SELECT COUNT(*) FROM visits WHERE ", "SET dp.epsilon = "])
)
def test_any_unicode_is_refused_in_our_words(text: str, before: str) -> None:
    trial("hospital").check(before + text)


def test_any_settings_are_taken_or_refused() -> None:
    here = trial("hospital")
    for name, rng in examples("options", 60):
        lines, sql = values.settings(rng)
        tried(name, (lines, sql), lambda sql=sql, lines=lines: here.check(sql, None, lines))  # type: ignore[misc]


def test_any_parameters_are_taken_or_refused() -> None:
    here = trial("hospital")
    for name, rng in examples("parameters", 400):
        sql, given_values = values.parameters(rng)
        tried(name, sql, lambda sql=sql, v=given_values: here.check(sql, v))  # type: ignore[misc]
