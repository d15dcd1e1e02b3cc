"""A question that does not fit the budget is told what would fit, in numbers that people read."""

import re
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.errors.exceptions import BudgetRefusal
from dpsql.session.session import open_session

POLICY = """\
dataset: fits
source: duckdb:///data.duckdb
privacy_unit: row
budget: {{epsilon: 1.25, delta: 1e-6, accountant: {accountant}}}
per_query: {{epsilon: 0.4, max_epsilon: 1.2}}
ledger: sqlite:///ledger.db
tables:
  t: {{columns: {{x: {{type: integer, lower: 0, upper: 9, nullable: false}}}}}}
"""


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
@pytest.mark.parametrize(
    "question", ["SELECT COUNT(*) FROM t WHERE x > {}", "SELECT AVG(x), MEDIAN(x) FROM t WHERE x > {}"]
)
def test_the_epsilon_that_a_refusal_names_fits_and_little_more_does_not(
    tmp_path: Path, accountant: str, question: str
) -> None:
    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range % 10 AS x FROM range(50)")
    (tmp_path / "policy.yaml").write_text(POLICY.format(accountant=accountant))
    with open_session(tmp_path / "policy.yaml", create_ledger=True) as session:
        with pytest.raises(BudgetRefusal) as refused:
            for bound in range(-100, 9):
                session.execute(question.format(bound))
        words = re.match(r"epsilon (0\.\d+) would fit; ", refused.value.hint)
        assert words, refused.value.hint
        assert "; left: dataset 0 questions, each of epsilon 0.4; " in refused.value.hint
        assert not re.search(r"\d{6}", refused.value.message.replace("0.000", "")), refused.value.message
        more = float(words[1]) * 1.2
        session.set_option("epsilon", f"{more:.3f}")
        with pytest.raises(BudgetRefusal):
            session.execute(question.format(7))
        session.set_option("epsilon", words[1])
        assert session.execute(question.format(7)).receipt_id
        assert Fraction(words[1]) < Fraction("0.4")
        with pytest.raises(BudgetRefusal, match="does not fit") as empty:
            for bound in range(200, 300):
                session.execute(question.format(-bound))
        assert empty.value.remaining
