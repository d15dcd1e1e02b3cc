"""One-line bugs and the tests that must notice them (audit.md, section 6). Read by `test_mutants`.

`old` stands exactly once in `file`. `tests` are paths in tests/, `only` is pytest's -k: the fewest that must turn red.
"""

from __future__ import annotations

from dataclasses import dataclass

REPLAY = "audit/test_replay.py"
GATE = "audit/test_gate_law.py"
PLANS = "sql/test_accepted.py"
REFUSALS = "sql/test_refused.py"
CLIPPING = "neighbours/test_clipping.py"
GENERATED = "neighbours/test_neighbours.py"
PLAIN = f"{GENERATED}::test_named"
SESSION = "session/test_session.py"


@dataclass(frozen=True)
class Mutant:
    """A bug: `new` in place of `old` in dpsql/`file`."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    only: str = ""


MUTANTS = (
    # sensitivity
    Mutant("half the L1 sensitivity", "sensitivity.py", "l1=total * b * factor,", "l1=(total * b * factor + 1) // 2,",
           REPLAY, "test_entity and count_rows_of_units"),
    Mutant("L2 for L1", "sensitivity.py", "l1=total * b * factor,", "l1=int((in_group * total) ** 0.5) * b * factor,",
           REPLAY, "test_entity and public_keys-max_rows_per_group"),
    Mutant("one group moves", "sensitivity.py", "l0=groups * factor,", "l0=factor,", REPLAY, "test_entity and rows_per_group"),
    Mutant("one step of Linf", "sensitivity.py", "linf=in_group * b * factor,", "linf=b,", REPLAY, "test_entity and count_rows_of_units"),
    Mutant("units are in one group", "sensitivity.py", "Sensitivity(groups * factor, groups * factor,", "Sensitivity(factor, factor,",
           REPLAY, "test_entity and units_per_group"),
    Mutant("half of a clip", "sensitivity.py", "most = clip.most * factor", "most = clip.most * factor // 2",
           CLIPPING, "test_sensitivity_is_reached"),
    Mutant("a clip in L2 claimed in L1", "sensitivity.py", "isqrt(groups * clip.most * clip.most) * factor", "most",
           REPLAY, "test_entity and clipping-gaussian"),
    Mutant("a clip counted once for two units", "sensitivity.py", "most = clip.most * factor", "most = clip.most",
           REPLAY, "test_entity and clipping-sum"),
    Mutant("change one as add or remove", "privacy.py", "return 2 if self is Neighbours.CHANGE_ONE else 1", "return 1",
           REPLAY, "test_entity and sum_both_signs"),
    Mutant("upper bound instead of both", "basis.py", "for end in (lower, upper))\n    return Term(\"\", TermKind.SUM",
           "for end in (upper,))\n    return Term(\"\", TermKind.SUM", REPLAY, "test_entity and far_below_zero"),
    Mutant("union of the larger side", "contributions.py", "return sum(_rows(", "return max(_rows(", REPLAY, "test_entity and union_all"),
    Mutant("one row for each unit and key", "contributions.py", "return 1 if not relation.keys else _rows(relation.source, policy)",
           "return 1", REPLAY, "test_entity and further_key"),
    Mutant("a join repeats no row", "contributions.py", "return left * relation.multiplicity", "return left",
           REPLAY, "test_entity and public_join_multiplicity"),
    Mutant("a protected join repeats no row", "contributions.py", "forward = left * min(relation.multiplicity, right)", "forward = left",
           REPLAY, "test_entity and cte_over_rows_twice"),
    # clipping
    Mutant("clipped one step too far out", "emit/clipping.py", "{term.clip.most}::HUGEINT", "{term.clip.most + 1}::HUGEINT",
           CLIPPING, "test_without_keys or test_one_unit"),
    Mutant("clipped sums rounded to the nearest", "emit/clipping.py", "abs({v}) * {most} // {divisor}",
           "(abs({v}) * {most} + {divisor} // 2) // {divisor}", CLIPPING, "test_rounding"),
    Mutant("clipped by the largest group", "emit/clipping.py", "total = f'sum(abs(", "total = f'max(abs(",
           CLIPPING, "test_sensitivity_is_reached"),
    Mutant("clipped in L2 to more than the bound", "emit/clipping.py", "exceeds = f'\"s.{v}\" > {most} * {most}'",
           "exceeds = f'\"s.{v}\" > 2 * {most} * {most}'", CLIPPING, "test_one_unit"),
    Mutant("clipped within each group alone", "emit/clipping.py", "FROM {PARTS} GROUP BY {of.unit}\"",
           "FROM {PARTS} GROUP BY {', '.join(columns)}\"", CLIPPING, "test_sensitivity_is_reached"),
    Mutant("noise recommends a bound", "tuning/choices.py", "seen.people() < 3 * seen.least", "seen.people() < 0",
           "tuning/test_tuning.py", "test_noise_drowns"),
    Mutant("a histogram of rows, not of units", "tuning/histograms.py", "), (), tuple(totals))", "), keys, tuple(totals))",
           "tuning/test_tuning.py", "test_price_first or test_one_unit"),
    Mutant("the first few rows are one", "contributions.py", '{"le": bound.value, "lt"', '{"le": 1, "lt"', REPLAY, "test_entity and first_three"),
    Mutant("fewer rows than below a number", "contributions.py", '"lt": bound.value - 1,', '"lt": bound.value - 2,', REPLAY, "test_entity and below_a_number"),
    Mutant("a rank is the number of one row", "contributions.py", 'window.word == "row_number" and', 'window.word != "lag" and',
           REPLAY, "test_entity and all_of_rank_one"),
    Mutant("numbers start anew for each kind", "contributions.py", ' and not window.keys', '', REPLAY, "test_entity and first_of_each_kind"),
    Mutant("rows of nobody are people", "emit/__init__.py", 'return "count(*)" if most == 1 else', 'return "count(*)" if most else',
           f"{GENERATED}::test_rows_of_nobody"),
    Mutant("a distinct row is one of each unit", "contributions.py", "        return _rows(relation.source, policy)\n    if isinstance(relation, UnitWindow):",
           "        return min(1, _rows(relation.source, policy))\n    if isinstance(relation, UnitWindow):", REPLAY, "test_entity and relations-distinct_rows"),
    Mutant("a window over everybody", "emit/unit_rows.py", 'parts = ", ".join([text.name(UNIT), *(', 'parts = ", ".join(["1", *(',
           f"{GENERATED}::test_ties"),
    Mutant("ties of a window broken by the engine", "emit/unit_rows.py", "order += content", "order += content[:0]", f"{GENERATED}::test_ties"),
    # the bounded view, clamps and caps
    Mutant("no clamp of reals", "emit/grid.py", "return f\"CASE WHEN {outside} THEN {clamped} ELSE CAST({value} AS BIGINT) END\"",
           "return f\"TRY_CAST({value} AS BIGINT)\"", REPLAY, "test_entity and sum_real"),
    Mutant("no clamp above", "emit/grid.py", "WHEN {value} > {high} THEN {ends[1]} ELSE", "WHEN {value} > {high} THEN {inside} ELSE",
           REPLAY, "test_entity and sum_integer"),
    Mutant("no clamp below", "emit/grid.py", "CASE WHEN {value} < {low} THEN {ends[0]} WHEN", "CASE WHEN {value} < {low} THEN {value} WHEN",
           REPLAY, "test_entity and sum_integer"),
    Mutant("clamped to twice the bounds", "emit/grid.py", "outside = f\"abs({value}) > {last}\"", "outside = f\"abs({value}) > 2 * {last}\"",
           REPLAY, "test_entity and sum_both_signs"),
    Mutant("NaN is a large number", "emit/grid.py", "WHEN NOT isnan({value}) THEN {ends[1]} END\"", "ELSE {ends[1]} END\"", PLAIN),
    Mutant("NULL is the lower bound", "emit/grid.py", "return f\"CASE WHEN {value} < {low} THEN {ends[0]} WHEN",
           "return f\"CASE WHEN ({value} < {low}) IS NOT FALSE THEN {ends[0]} WHEN", PLAIN),
    Mutant("one row more of each unit", "emit/bounded_view.py", "WHERE {RANK} <= {self.most}", "WHERE {RANK} <= {self.most} + 1",
           REPLAY, "test_entity and count_rows_of_units"),
    Mutant("all rows of each unit", "emit/bounded_view.py", "WHERE {RANK} <= {self.most}", "WHERE {RANK} > 0", REPLAY, "test_entity and sum_real"),
    Mutant("rows kept as they come", "emit/bounded_view.py", "ORDER BY {', '.join(order)})", "ORDER BY 1)", REPLAY, "test_entity and rows_per_group"),
    Mutant("a copy for all bounds", "contribution_index.py", "[(name, t.lower, t.upper, t.centre, t.grid) for one", "[name for one",
           "index/test_index.py", "another_policy_is_not_used"),
    Mutant("a kept integer for all clamps", "emit/grid.py", "if (one.lower, one.upper, one.centre, one.grid) == wanted", "if one is not None",
           "index/test_index.py", "read_integers_of_the_copy"),
    Mutant("max_groups not enforced", "emit/__init__.py", "WHERE \"#group\" <= {caps.max_groups}'", "WHERE \"#group\" > 0'",
           REPLAY, "test_entity and public_keys-max_groups"),
    Mutant("max_rows_per_group not enforced", "emit/__init__.py", "WHERE \"#row\" <= {caps.max_rows_per_group}'", "WHERE \"#row\" > 0'",
           REPLAY, "test_entity and cap_of_all_rows"),
    Mutant("filters of equal aggregates forgotten",
        "bind/blocks.py",
        "if (known.aggregate, known.arguments, known.filter) == (",
        "if (known.aggregate, known.arguments, measure.filter) == (",
        PLANS, "test_entity and filters_apart"),
    # price and charge
    Mutant("AVG charged once", "pricing.py", "for term in terms:\n        loss = loss", "for term in terms[:1]:\n        loss = loss",
           REPLAY, "test_entity and aggregates-avg_integer"),
    Mutant("grouping sets charged once", "session.py", "loss = loss + blocks[at].loss", "loss = blocks[at].loss", REPLAY, "test_entity and rollup"),
    Mutant("every term gets the whole epsilon", "pricing.py", "self.allowed.epsilon / self.parts", "self.allowed.epsilon", REPLAY, "test_entity and aggregates-avg_integer"),
    Mutant("delta of a threshold not charged", "mechanisms/selection.py", "return PrivacyLoss(Fraction(0), self.delta, Fraction(0))",
           "return PrivacyLoss(Fraction(0), Fraction(0), Fraction(0))", REPLAY, "test_entity and rows_of_units"),
    Mutant("delta of one key charged for all", "mechanisms/selection.py", "self.delta_per_key).scaled(self.l0)", "self.delta_per_key)",
           REPLAY, "test_entity and private_keys-no_aggregate"),
    Mutant("Laplace scale a tenth too small", "mechanisms/laplace.py", "scale = steps_moved(sensitivity, shift) / epsilon",
           "scale = steps_moved(sensitivity, shift) / epsilon * Fraction(9, 10)", REPLAY, "test_entity and count_rows_of_units"),
    Mutant("Gaussian scale a tenth too small", "mechanisms/gaussian.py", "square_moved(sensitivity, shift) / (2 * rho)",
           "square_moved(sensitivity, shift) * 4 / (10 * rho)", GATE, "test_law"),
    Mutant("charges rounded down", "accountant.py", "charge[dimension] = ceil(value * UNITS[dimension])", "charge[dimension] = int(value * UNITS[dimension])",
           "noise/test_accountant.py"),
    Mutant("charged without looking at the budget", "ledger/ledger.py", "if all(account.fits(", "if True or all(account.fits(", SESSION, "fit_one_scope"),
    Mutant("spent forgotten", "ledger/ledger.py", "spent=added(account.spent, request.charge)", "spent=account.spent", SESSION, "charged_once"),
    Mutant("budget looked at outside the lock", "ledger/ledger.py",
           "with self._turn() as turn:\n                accounts = self._fitting(turn.connection, request)",
           "with self.store.reading() as before:\n                accounts = self._fitting(before, request)\n            with self._turn() as turn:",
           "ledger/test_contract.py", "threads_of_one_ledger and sqlite"),
    Mutant("data before the charge", "session.py", "reservation = self._reserve(receipt, loss, planned) if missing else None",
           "_ = [self._engine.run(queries[at]) for at in missing]\n        reservation = self._reserve(receipt, loss, planned) if missing else None",
           SESSION, "recorded_before_data"),
    Mutant("limits of options not kept", "options.py", "if most is not None and value > most:", "if most is not None and value < 0:",
           REFUSALS, "test_words and option_limit"),
    # keys
    Mutant("empty public keys dropped", "cells.py", "if None in domains:", "if domains:", REPLAY, "test_entity and public_keys-domain"),
    Mutant("unlisted keys kept", "cells.py", "inside &= place >= 0", "inside &= place >= -1", REPLAY, "test_entity and public_keys-rows_per_group"),
    Mutant("NULL is the first public key", "cells.py", "found.fill_null(-1)", "found.fill_null(0)", REPLAY, "test_entity and public_keys-rows_per_group"),
    Mutant("private keys in the engine's order", "cells.py", "return bool(pc.all(before, min_count=0).as_py())", "return True",
           "noise/test_perturb.py", "order_of_engine_rows"),
    Mutant("ties in the first key end the look at the order", "cells.py", "before = less if tied is None else pc.or_(before, pc.and_(tied, less))",
           "before = less if tied is None else pc.or_(before, tied)", "noise/test_perturb.py", "every_order"),
    Mutant("NULL keys anywhere", "cells.py", "less = pc.if_else(following.is_null(), this.is_valid(), pc.less(this, following)).fill_null(False)",
           "less = pc.less(this, following).fill_null(True)", "noise/test_perturb.py", "every_order"),
    Mutant("keys admitted by rows", "emit/__init__.py", "return f\"count(DISTINCT {self._hidden(block.source)[-1]})\"", "return \"count(*)\"",
           REPLAY, "test_entity and private_keys-sums"),
    Mutant("threshold one lower", "perturb.py", "counts.at_least(selection.tau)", "counts.at_least(selection.tau - 1)",
           "noise/test_selection.py noise/test_perturb.py"),
    Mutant("a lone unit counts one less", "mechanisms/selection.py", "return Threshold(column, l0, noise, lone_count(noise) + noise.tail_point(share), delta)",
           "return Threshold(column, l0, noise, lone_count(noise) + noise.tail_point(share * 2), delta)", REPLAY, "test_entity and rows_of_units"),
    # noise
    Mutant("noise without a sign", "perturb.py", ".plus(drawn[: groups.count])", ".plus(np.abs(drawn[: groups.count]))", GATE, "test_law"),
    Mutant("one noise for all cells", "perturb.py", ".plus(drawn[: groups.count])", ".plus(np.repeat(drawn[:1], groups.count))", GATE, "independent"),
    Mutant("noise on the first cell only", "perturb.py", ".plus(drawn[: groups.count])", ".plus(drawn[: groups.count] * (np.arange(groups.count) == 0))",
           GATE, "test_law"),
    Mutant("terms of one law share their noise", "perturb.py", "[next(parts) if one == noise", "[drawn[: groups.draws] if one == noise",
           "noise/test_perturb.py", "terms"),
    Mutant("runs one too long", "samplers.py", "(edges.size - at)", "(edges.size - at + 1)", GATE, "test_law"),
    Mutant("no zero has two signs", "samplers.py", "[~(negative & (magnitude == 0))]", "[:]", "noise/test_samplers.py", "test_laplace_has"),
    Mutant("seeded noise", "samplers.py", "return os.urandom(size)", "return __import__(\"random\").Random(size).randbytes(size)", GATE, "independent"),
    Mutant("an argument too many is forgotten", "arity.py", "if forgotten:", "if forgotten and len(arguments) > 9:",
           "expressions/test_arity.py"),
    # what leaves
    Mutant("the engine's words in an error", "engines/duckdb_engine.py", "fault = refuse(\"engine_failed\", incident=incident)",
           "fault = refuse(\"engine_failed\", incident=str(error))", SESSION, "engine_error"),
    Mutant("a release of other data", "reuse.py", "self.key = fingerprint((key, version, audience))",
           "self.key = fingerprint((key, audience))", SESSION, "changed_data"),
    Mutant("a broken promise is overlooked", "session.py", "if not self._engine.holds(", "if False and not self._engine.holds(",
           "audit/test_outcome.py", "broken_promise"),
    # stages
    Mutant("a released key that is not shown", "bind/results.py", "for names in unique if names <= place.keys())",
           "for names in unique if True or names)", REFUSALS, "result_without_its_key"),
    Mutant("some of the keys are unique", "contributions.py", "any(names.issuperset(unique) for unique in rows.unique)",
           "any(names & set(unique) for unique in rows.unique)", REFUSALS, "one_of_two_keys"),
    Mutant("integers equal one real each", "contributions.py", "return not (a.facts.type is Type.REAL and b.facts.type is Type.INTEGER)",
           "return True", REFUSALS, "integer_key_as_a_real"),
    Mutant("a rollup has one row for each key", "bind/results.py", "unique = _kept({frozenset(key.name for key in keys)} if sets == 1 else set(), outputs)",
           "unique = _kept({frozenset(key.name for key in keys)}, outputs)", REFUSALS, "join-rollup"),
    Mutant("any result is one value", "bind/cut.py", "if not bound.unique >= results.ONE_ROW:", "if bound.unique is None:", REFUSALS, "several_rows"),
    Mutant("of no rows a count is missing", "bind/correlated.py", "return exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])",
           "return column", "session/test_stages.py", "of_no_rows"),
    Mutant("released rows have no part in the name", "stages.py", "return replace(part, content=digest(self._tables[part.name]))",
           "return replace(part, content='')", "session/test_stages.py", "rows_of_another_stage"),
    Mutant("a later stage keeps its first name", "stages.py", "keys[at] = release_key(priced[at], self._policy)", "keys[at] = keys[at]",
           "session/test_stages.py", "other_released_rows"),
    Mutant("the first stage alone is reserved", "session.py", "            loss = loss + blocks[at].loss\n        emitter",
           "            loss = loss if planned.waiting(at) else loss + blocks[at].loss\n        emitter", "session/test_stages.py", "reserved_before"),
    Mutant("a released mean has the bounds of nobody", "bind/results.py", "return Facts(Type.REAL, argument.lower, argument.upper)",
           "return Facts(Type.REAL, argument.lower, argument.lower)", PLANS, "test_entity and mean_of_a_released_mean"),
    # plain remainders
    Mutant("half to even in vectors", "error_bars/direct.py", "np.copysign(below + (size - below >= 0.5), values)", "np.rint(values)",
           "release/test_direct.py", "alike"),
    Mutant("ascending whatever is asked", "error_bars/direct.py", "\"descending\" if down else \"ascending\"", "\"ascending\"",
           "release/test_direct.py", "orders_and_limits"),
    Mutant("filters forgotten in vectors", "error_bars/direct.py", "for name, value in tree.args.items() if name not in _SELECT",
           "for name, value in tree.args.items() if name not in {*_SELECT, \"where\"}", "release/test_direct.py", "anything_else"),
)  # fmt: skip
