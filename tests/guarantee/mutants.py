"""One-line bugs and the tests that must notice them. Read by `test_mutants`.

`old` stands exactly once in `function` ("": the module) of `file`, whatever its layout. `tests` are paths in tests/, `only` is pytest's
-k: the fewest that must turn red.
"""

from __future__ import annotations

from dataclasses import dataclass

REPLAY = "guarantee/test_replay.py"
GATE = "guarantee/test_gate_law.py"
PLANS = "sql/test_accepted.py"
REFUSALS = "sql/test_refused.py"
CLIPPING = "guarantee/test_clipping.py"
GENERATED = "guarantee/test_neighbours.py"
SOURCES = "guarantee/test_neighbouring_sources.py"
TIGHT = "guarantee/test_tight_sensitivity.py"
PLAIN = f"{GENERATED}::test_missing_and_infinite_values_count_as_nothing"
SESSION = "unit/session/test_session.py"


@dataclass(frozen=True)
class Mutant:
    """A bug: the expression or statements `new` in place of `old` in `function` of dpsql/`file`, compared as syntax trees."""

    name: str
    file: str
    function: str
    old: str
    new: str
    tests: str
    only: str = ""


MUTANTS = (
    # sensitivity
    Mutant("half the L1 sensitivity", "pricing/sensitivity.py", "sensitivity", "total * b * factor", "(total * b * factor + 1) // 2", REPLAY, 'test_one_entity_moves_sums_within_the_claim and count_rows_of_units'),
    Mutant("L2 for L1", "pricing/sensitivity.py", "sensitivity", "total * b * factor", "int((in_group * total) ** 0.5) * b * factor", REPLAY, 'test_one_entity_moves_sums_within_the_claim and public_keys-max_rows_per_group'),
    Mutant("one group moves", "pricing/sensitivity.py", "sensitivity", "Sensitivity(l0=groups * factor, l1=total * b * factor, l2_squared=in_group * total * b * b * factor * factor, linf=in_group * b * factor)", "Sensitivity(l0=factor, l1=total * b * factor, l2_squared=in_group * total * b * b * factor * factor, linf=in_group * b * factor)", REPLAY, 'test_one_entity_moves_sums_within_the_claim and rows_per_group'),
    Mutant("one step of Linf", "pricing/sensitivity.py", "sensitivity", "in_group * b * factor", "b", REPLAY, 'test_one_entity_moves_sums_within_the_claim and count_rows_of_units'),
    Mutant("units are in one group", "pricing/sensitivity.py", "sensitivity", "Sensitivity(groups * factor, groups * factor, groups * factor * factor, min(1, groups) * factor)", "Sensitivity(factor, factor, groups * factor * factor, min(1, groups) * factor)", REPLAY, 'test_one_entity_moves_sums_within_the_claim and units_per_group'),
    Mutant("half of a clip", "pricing/sensitivity.py", "_clipped", "clip.most * factor", "clip.most * factor // 2", CLIPPING, 'test_the_claimed_sensitivity_is_reached'),
    Mutant("a clip in L2 claimed in L1", "pricing/sensitivity.py", "_clipped", "isqrt(groups * clip.most * clip.most) * factor", "most", REPLAY, 'test_one_entity_moves_sums_within_the_claim and clipping-gaussian'),
    Mutant("a clip counted once for two units", "pricing/sensitivity.py", "_clipped", "clip.most * factor", "clip.most", REPLAY, 'test_one_entity_moves_sums_within_the_claim and clipping-sum'),
    Mutant("change one as add or remove", "privacy/loss.py", "Neighbours.factor", "2 if self is Neighbours.CHANGE_ONE else 1", "1", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_both_signs'),
    Mutant("upper bound instead of both", "pricing/sum_terms.py", "_real_sum", "(lower, upper)", "(upper,)", REPLAY, 'test_one_entity_moves_sums_within_the_claim and far_below_zero'),
    Mutant("union of the larger side", "plan/stability.py", "_rows", "sum((_rows(source, policy) for source in relation.sources))", "max((_rows(source, policy) for source in relation.sources))", REPLAY, 'test_one_entity_moves_sums_within_the_claim and union_all'),
    Mutant("one row for each unit and key", "plan/stability.py", "_rows", "1 if not relation.keys else _rows(relation.source, policy)", "1", REPLAY, 'test_one_entity_moves_sums_within_the_claim and further_key'),
    Mutant("a join repeats no row", "plan/stability.py", "_joined_rows", "left * relation.multiplicity", "left", REPLAY, 'test_one_entity_moves_sums_within_the_claim and public_join_multiplicity'),
    Mutant("a protected join repeats no row", "plan/stability.py", "_joined_rows", "left * min(relation.multiplicity, right)", "left", REPLAY, 'test_one_entity_moves_sums_within_the_claim and cte_over_rows_twice'),
    Mutant("a cross join meets one row", "sql/binder/joins.py", "_all_rows", "max(1, len(listed[1]))", "1", f'{REPLAY} {TIGHT}', 'unpaired_rows-cross_join or CROSS_JOIN'),
    Mutant("kept rows count for nothing", "sql/binder/unpaired_rows.py", "check_ignored", "counted = any((not _ignores(measure, branch) for branch in left for measure in measures))", "counted = False", "sql/test_refused.py", 'join and (kept or public or full)'),
    Mutant("one row for any group of a per-unit aggregation", "plan/stability.py", "rows_in_group", "columns.issuperset((name for name, _ in base.keys))", "True", TIGHT, 'diagnosis or by_ward'),
    Mutant("a unit's part of a group is not clamped", "sql/binder/group_bounds.py", "of_units", "call('clamp', Column(name, facts), *measure.per_group)", "call('clamp', Column(name, facts), *measure.per_group).arguments[0]", "sql/test_accepted.py", 'group_bounds'),
    Mutant("rows for units of a small group", "sql/binder/least_units.py", "with_unit_count", "_ROWS if policy.privacy_unit is None else _UNITS", "_ROWS", "unit/session/test_min_units.py", "by_their_units"),
    Mutant("a small group one unit smaller", "sql/binder/least_units.py", "with_unit_count", "exp.Literal.number(least)", "exp.Literal.number(least - 1)", "unit/session/test_min_units.py", "by_their_units"),
    Mutant("small groups instead of HAVING", "sql/binder/least_units.py", "with_unit_count", "exp.And(this=exp.Paren(this=where.this), expression=condition)", "condition", "unit/session/test_min_units.py", "holds_as_well"),
    Mutant("rows of nobody count as units", "sql/binder/least_units.py", "with_unit_count", "policy.privacy_unit is not None and (not owned(source, policy))", "False", REFUSALS, "min_units"),
    Mutant("an analyst lowers min_units", "pricing/options.py", "_check_limit", "value is None or value < limits.min_units", "value is None", "unit/session/test_min_units.py", "cannot_be_lowered"),
    Mutant("rows that meet none are left out", "plan/stability.py", "_joined_rows", "left - back if relation.kind == 'left' else 0", "0", f'{REPLAY} {TIGHT}', 'left_join_counted_from_the_right or LEFT_JOIN_labs'),
    Mutant("a lone unit counts one row", "privacy/mechanisms/partition_selection.py", "lone_count", "noise.sensitivity.linf", "1", "unit/privacy/test_partition_selection.py", "division_of_rows or follows_linf"),
    Mutant("rows admit keys whatever units would show", "pricing/pricing.py", "_admitting_by_rows", "products[0] <= products[1]", "products[0] >= 0", "unit/pricing/test_selection.py", "units_admit_private_keys or is_paid_for"),
    Mutant("a filtered count admits keys", "pricing/private_keys.py", "_counts_all_rows", "term.filter is None", "True", "unit/pricing/test_selection.py", "only_a_count_of_all_rows"),
    Mutant("rows of one key alone set the threshold", "privacy/mechanisms/partition_selection.py", "lone_delta", "(l0 - full) * _tail(noise, tau)", "0", "unit/privacy/test_partition_selection.py", "division_of_rows"),
    Mutant("weights as for half of the keys", "privacy/mechanisms/partition_selection.py", "weights_within", "WEIGHT // most", "WEIGHT // (most + 1 >> 1)", "unit/privacy/test_partition_selection.py unit/pricing/test_selection.py", "any_number_of_keys"),
    Mutant("squares of weights beyond one", "privacy/mechanisms/partition_selection.py", "weights_within", "isqrt(WEIGHT * WEIGHT // most)", "isqrt(WEIGHT * WEIGHT * 2 // most)", "unit/privacy/test_partition_selection.py", "any_number_of_keys"),
    Mutant("weights of one unit for two", "privacy/mechanisms/partition_selection.py", "weighted_sensitivity", "l1 * factor", "l1", REPLAY, 'test_one_entity_moves_sums_within_the_claim and private_keys'),
    Mutant("a unit in few keys sets no threshold", "privacy/mechanisms/partition_selection.py", "weighted_threshold", "beyond < 1 or _tail(noise, beyond) > share", "False", "unit/privacy/test_partition_selection.py", "any_number_of_keys"),
    Mutant("one key's delta for all keys of a unit", "privacy/mechanisms/partition_selection.py", "WeightedThreshold._lone_delta", "most * _tail(self.noise, self.tau - on_noise_grid(weight, self.noise))", "_tail(self.noise, self.tau - on_noise_grid(weight, self.noise))", "unit/privacy/test_partition_selection.py", "any_number_of_keys"),
    Mutant("weights of every row", "engine/emit/emitter.py", "Emitter._weighed", "f'SELECT {columns} FROM \"#held\" GROUP BY {columns}'", "f'SELECT {columns} FROM \"#held\"'", "unit/pricing/test_selection.py", "shares_one_weight"),
    Mutant("every unit has the weight of one key", "engine/emit/emitter.py", "Emitter._weighed", "f'WHEN count(*) <= {most} THEN {weight}'", "f'WHEN count(*) >= {most} THEN {weight}'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and private_keys'),
    # tables measured as one
    Mutant("shares are rounded up", "pricing/budget_shares.py", "_rounded", "floor(share * STEPS)", "floor(share * STEPS) + 1", "unit/pricing/test_budget_shares.py unit/pricing/test_workloads.py", "relative_error or no_more_than_apart"),
    Mutant("a tile spends another's share", "pricing/workloads.py", "share_by_set", "zip(workload.tiles, workload.shares, strict=True)", "zip(workload.tiles, workload.shares[::-1], strict=True)", "unit/pricing/test_workloads.py", "no_more_than_apart"),
    Mutant("tables over other rows are one workload", "pricing/workloads.py", "_restricted", "axis not in own_axes", "axis in own_axes", "unit/pricing/test_workloads.py unit/session/test_workloads.py", "leaves_out or left_out"),
    Mutant("clipped sums add up", "pricing/workloads.py", "_adds_up", "term.clip is None", "True", "unit/pricing/test_workloads.py", "clipped"),
    Mutant("capped tables add up", "pricing/workloads.py", "axes_of", "block.caps.bounds.drops_rows_by_group", "False", "unit/pricing/test_workloads.py", "depend_on_groups"),
    Mutant("distinct values add up", "pricing/workloads.py", "_adds_up", "(TermKind.COUNT, TermKind.SUM)", "tuple(TermKind)", "unit/pricing/test_workloads.py", "measured_apart"),
    Mutant("groups that HAVING left add up", "pricing/workloads.py", "_usable", "key.whole", "True", "unit/pricing/test_workloads.py", "measured_apart"),
    Mutant("least squares of equal weights", "pricing/marginals.py", "Marginals.reconciled", "1 / (cells * variance) / information[number]", "1 / sum((part_ <= set(t) for t in self.tiles for part_ in [set(part)]))", "unit/pricing/test_marginals.py", "whole_matrix"),
    Mutant("bars forget the other tables", "pricing/marginals.py", "Marginals.weights", "elsewhere * prod(self.sizes[key] - 1 for key in common if key not in agreeing)", "1", "unit/pricing/test_marginals.py unit/release/test_reconciled.py", "whole_matrix or cover_at"),
    Mutant("noise that two tables share counts twice", "release/reconciled.py", "can_be_consistent", "can_be_weighted(terms[name].noise)", "True", "unit/release/test_reconciled.py", "share_noise"),
    Mutant("replicates are drawn apart", "release/error_bars/draws.py", "replicates", "isinstance(term, ConsistentTerm)", "False", "unit/release/test_reconciled.py", "joint_law or over_groups"),
    Mutant("rows after the last value are in the last range", "pricing/running_totals.py", "_by_ranges", "call('and', call('ge', key.expression, first), call('le', key.expression, last))", "call('ge', key.expression, first)", "unit/pricing/test_running_totals.py", "without_noise"),
    Mutant("ranges whatever they help", "pricing/running_totals.py", "is_better", "mean_variances(workload, measured)[0] < alone * mean_terms(workload)", "True", "unit/pricing/test_running_totals.py", "only_where_they_help"),
    # what exists for an analyst
    Mutant("a row filter is dropped", "sql/binder/base_tables.py", "_protected", "scan if condition is None else filtered(scan, condition)", "scan", "unit/session/test_access.py", "the_filter_holds_wherever"),
    Mutant("hidden columns can be named", "sql/binder/base_tables.py", "_protected", "column.name in names", "True", "unit/session/test_access.py", "a_hidden_column_is_refused"),
    Mutant("hidden tables can be named", "policy/types.py", "Policy.table", "self.visible.get(name) or _folded(self.visible, name)", "self.tables.get(name) or _folded(self.tables, name)", "unit/session/test_access.py", "a_hidden_table_is_refused"),
    Mutant("a wider policy is taken over", "frontends/pgwire/server.py", "Server.reload", "if wider:\n    raise refuse('policy_widened', places=', '.join(wider))", "pass", "unit/frontends/pgwire/test_reload.py", "widens_or_is_wrong"),
    Mutant("sessions go on under a policy that is gone", "frontends/pgwire/connection.py", "Connection._require_policy", "current is begun", "True", "unit/frontends/pgwire/test_reload.py", "narrower_policy"),
    Mutant("the head elsewhere is not compared", "ledger/ledger.py", "Ledger._write_transaction", "tip(connection, elsewhere)", "None", "unit/ledger/test_off_machine_head.py", "under_an_open_ledger"),
    Mutant("the head elsewhere does not follow", "ledger/ledger.py", "Ledger._write_transaction", "second.advance(writer.last)", "None", "unit/ledger/test_off_machine_head.py", "every_answered_charge"),
    # real sources, over the neighbour law
    Mutant("collations of columns kept, over pairs", "engine/duckdb/literals.py", "cast_column", "type_ is Type.TEXT", "type_ is Type.NULL", SOURCES, 'test_sources_without_a_unit_move_within_the_claim and duckdb'),
    Mutant("a record goes on while its quotes are odd", "engine/csv_lines.py", "_ends", "dialect.multiline and dialect.quote", "dialect.quote", SOURCES, 'test_sources_without_a_unit_move_within_the_claim and csv-'),
    Mutant("odd lines are left to the parser", "engine/csv_lines.py", "records", """if len(odd):
    text, lines = _split(text, ends, odd)
    odd_rows = [row for line in lines if (row := cells(line, layout, broken)) is not None]""", """if len(odd) > 99:
    text, lines = _split(text, ends, odd)
    odd_rows = [row for line in lines if (row := cells(line, layout, broken)) is not None]""", SOURCES, 'test_sources_without_a_unit_move_within_the_claim and csv-'),
    # terms that share each row
    Mutant("a NULL is in two terms of a set", "engine/emit/joint_sums.py", "companion_sum", "f\"count({('*' if term.absent else row)}){filtered}\"", "f'count(*){filtered}'", 'unit/pricing/test_joint_sums.py', 'adds_its_width'),
    Mutant("a shared count counts all rows", "engine/emit/joint_sums.py", "companion_sum", "f\"({dialect.wide(f'count(*){filtered} - count({row}){filtered}')} * {term.magnitude})\"", "f\"({dialect.wide(f'count(*){filtered}')} * {term.magnitude})\"", 'unit/pricing/test_joint_sums.py', 'adds_its_width'),
    Mutant("entries of one term of a set", "pricing/pricing.py", "_moved", "moved.l0 * sharing", "moved.l0", 'unit/pricing/test_joint_sums.py', 'adds_its_width'),
    Mutant("a count is told with the error of its sum", "pricing/expected_error.py", "_stands_for", "(1 / term.magnitude, [1.0, 1.0])", "(step, [1.0])", 'unit/pricing/test_joint_sums.py', 'explain_tells or error_to_reach'),
    Mutant("a sum around another end", "pricing/expected_error.py", "_stands_for", "(1 + moved, moved)", "(1.0, 0.0)", 'unit/pricing/test_joint_sums.py', 'explain_tells'),
    # clipping
    Mutant("clipped one step too far out", "engine/emit/clipping.py", "_ends", "f'least(greatest({term.name}, {dialect.constant(-most)}), {dialect.constant(most)})'", "f'least(greatest({term.name}, {dialect.constant(-most)}), {dialect.constant(most + 1)})'", CLIPPING, 'test_without_keys_a_total_is_cut_at_both_ends'),
    Mutant("shares rounded to the nearest", "engine/emit/clipping.py", "_share", "f\"least({dialect.constant(whole)}, {dialect.whole_quotient(dialect.constant(most), f'greatest({total}, 1)')})\"", "f\"least({dialect.constant(whole)}, {dialect.whole_quotient(f'({most} + {total} // 2)', f'greatest({total}, 1)')})\"", CLIPPING, 'test_one_unit_is_scaled_to_the_bound or test_rounding'),
    Mutant("clipped by the largest group", "engine/emit/clipping.py", "_norms", "f'CAST(sum(abs({v})) AS BIGINT) AS \"n.{v}\"'", "f'CAST(max(abs({v})) AS BIGINT) AS \"n.{v}\"'", CLIPPING, 'test_one_unit_is_scaled_to_the_bound'),
    Mutant("shares in L2 as doubles have them", "engine/emit/clipping.py", "_share", "f'WHEN {dialect.wide(share)} * {share} * {squares} <= {dialect.wide(str(most * most))} THEN {share}'", "f'WHEN {dialect.wide(share)} * {share} * {squares} <= {dialect.wide(str(2 * most * most))} THEN {share}'", CLIPPING, 'test_at_the_bound'),
    Mutant("clipped within each group alone", "engine/emit/clipping.py", "shares", "f\"SELECT {', '.join([grouped.unit, *norms])} FROM {dialect.derived(sums)} GROUP BY {grouped.unit}\"", "f\"SELECT {', '.join([grouped.unit, *norms])} FROM {dialect.derived(sums)} GROUP BY {', '.join(keys)}\"", CLIPPING, 'test_one_unit_is_scaled_to_the_bound or test_the_claimed_sensitivity_is_reached'),
    Mutant("units that exceed a bound overlooked", "engine/emit/clipping.py", "shares", "f'{_size(clipped)} > {dialect.constant(_clip(clipped.term).most >> clipped.term.finer)}'", "f'{_size(clipped)} > {dialect.constant(_clip(clipped.term).most * 2 >> clipped.term.finer)}'", CLIPPING, 'test_one_unit_is_scaled_to_the_bound'),
    Mutant("rows that cancel taken for the norm", "engine/emit/clipping.py", "_one_sign", "term.lower - term.centre >= 0", "term.lower - term.centre <= 0", CLIPPING, 'test_one_unit_is_scaled_to_the_bound'),
    Mutant("a unit without a share has two", "engine/emit/clipping.py", "shared_sum", "f'coalesce({share_name(clipped.term)}, {dialect.constant(1 << clipped.term.finer)})'", "f'coalesce({share_name(clipped.term)}, {dialect.constant(2 << clipped.term.finer)})'", CLIPPING, 'test_one_unit_is_scaled_to_the_bound or test_wide'),
    Mutant("a bit too little room for a unit", "pricing/sum_terms.py", "clipped", "UNIT_BITS - (rows - 1).bit_length()", "UNIT_BITS + 1 - (rows - 1).bit_length()", CLIPPING, 'test_grids_leave_room_in_64_bits'),
    Mutant("noise recommends a bound", "tuning/choices.py", "marked_table", "3 * measured.least", "0", 'unit/tuning/test_tuning.py', 'test_noise_drowns'),
    Mutant("a histogram of rows, not of units", "tuning/histograms.py", "_units", "UnitAggregate(UnitAggregate(_inside(block), keys, tuple(columns)), (), tuple(totals))", "UnitAggregate(UnitAggregate(_inside(block), keys, tuple(columns)), keys, tuple(totals))", 'unit/tuning/test_tuning.py', 'test_price_first or test_one_unit'),
    Mutant("the first few rows are one", "plan/stability.py", "_first", "{'le': bound.value, 'lt': bound.value - 1, 'eq': 1}", "{'le': 1, 'lt': bound.value - 1, 'eq': 1}", REPLAY, 'test_one_entity_moves_sums_within_the_claim and first_three'),
    Mutant("fewer rows than below a number", "plan/stability.py", "_first", "bound.value - 1", "bound.value - 2", REPLAY, 'test_one_entity_moves_sums_within_the_claim and below_a_number'),
    Mutant("a rank is the number of one row", "plan/stability.py", "_is_row_number", "window.word == 'row_number'", "window.word != 'lag'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and all_of_rank_one'),
    Mutant("numbers start anew for each kind", "plan/stability.py", "_is_row_number", "window.word == 'row_number' and (not window.keys)", "window.word == 'row_number'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and first_of_each_kind'),
    Mutant("rows of nobody are people", "engine/emit/emitter.py", "Emitter._selection_count", "'count(*)' if most == 1 else self.dialect.whole_quotient(f'(count(*) + {most - 1})', str(most))", "'count(*)' if most else self.dialect.whole_quotient(f'(count(*) + {most - 1})', str(most))", f'{GENERATED}::test_rows_of_nobody_admit_keys_as_units_do'),
    Mutant("a distinct row is one of each unit", "plan/stability.py", "_rows", """if isinstance(relation, (Project, Distinct)):
    return _rows(relation.source, policy)""", """if isinstance(relation, (Project, Distinct)):
    return min(1, _rows(relation.source, policy))""", REPLAY, 'test_one_entity_moves_sums_within_the_claim and relations-distinct_rows'),
    Mutant("a window over everybody", "engine/emit/per_unit.py", "unit_window", "dialect.identifier(UNIT)", "'1'", f'{GENERATED}::test_ties_follow_from_a_units_own_rows'),
    Mutant("ties of a window broken by the engine", "engine/emit/per_unit.py", "unit_window", "order += ties", "order += ties[:0]", f'{GENERATED}::test_ties_follow_from_a_units_own_rows'),
    # the bounded view, clamps and caps
    Mutant("no clamp of reals", "engine/emit/quantization.py", "grid_real", "f'CASE WHEN {outside} THEN {clamped} ELSE {dialect.nearest_integer(value, type_)} END'", "f'TRY_CAST({value} AS BIGINT)'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_real'),
    Mutant("no clamp above", "engine/emit/quantization.py", "grid_integer", "f'CASE WHEN {value} < {low} THEN {ends[0]} WHEN {value} > {high} THEN {ends[1]} ELSE {inside} END'", "f'CASE WHEN {value} < {low} THEN {ends[0]} WHEN {value} > {high} THEN {inside} ELSE {inside} END'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_integer'),
    Mutant("no clamp below", "engine/emit/quantization.py", "grid_integer", "f'CASE WHEN {value} < {low} THEN {ends[0]} WHEN {value} > {high} THEN {ends[1]} ELSE {inside} END'", "f'CASE WHEN {value} < {low} THEN {value} WHEN {value} > {high} THEN {ends[1]} ELSE {inside} END'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_integer'),
    Mutant("clamped to twice the bounds", "engine/emit/quantization.py", "grid_real", "f'abs({value}) > {last}'", "f'abs({value}) > 2 * {last}'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_both_signs'),
    Mutant("NaN is a large number", "engine/emit/quantization.py", "grid_real", "f'CASE WHEN {value} < {first} THEN {ends[0]} WHEN NOT {dialect.is_nan(value)} THEN {ends[1]} END'", "f'CASE WHEN {value} < {first} THEN {ends[0]} ELSE {ends[1]} END'", PLAIN),
    Mutant("NULL is the lower bound", "engine/emit/quantization.py", "grid_integer", "f'CASE WHEN {value} < {low} THEN {ends[0]} WHEN {value} > {high} THEN {ends[1]} ELSE {inside} END'", "f'CASE WHEN ({value} < {low}) IS NOT FALSE THEN {ends[0]} WHEN {value} > {high} THEN {ends[1]} ELSE {inside} END'", PLAIN),
    Mutant("one row more of each unit", "engine/emit/bounded_view.py", "BoundedView.within_max_rows", "f'SELECT {columns} FROM {text.derived(ranked)} WHERE {RANK} <= {self.most}'", "f'SELECT {columns} FROM {text.derived(ranked)} WHERE {RANK} <= {self.most} + 1'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and count_rows_of_units'),
    Mutant("all rows of each unit", "engine/emit/bounded_view.py", "BoundedView.within_max_rows", "f'SELECT {columns} FROM {text.derived(ranked)} WHERE {RANK} <= {self.most}'", "f'SELECT {columns} FROM {text.derived(ranked)} WHERE {RANK} > 0'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_real'),
    Mutant("all units keep the same values", "engine/emit/bounded_view.py", "keyed_order", "[dialect.identifier(UNIT), *content]", "[*content]", 'unit/engine/test_contribution_caps.py', 'different'),
    Mutant("some values are kept too often", "engine/duckdb/dialect.py", "DuckDBDialect.keyed_order", "f\"hash(hash({', '.join([self.constant(key), *content])}))\"", "f\"abs(hash({', '.join([self.constant(key), *content])}))\"", 'unit/engine/test_contribution_caps.py', 'all_orders'),
    Mutant("collations of columns kept", "engine/duckdb/literals.py", "cast_column", "type_ is Type.TEXT", "type_ is Type.NULL", 'unit/engine/test_collations.py', 'columns-groups or prepared-units'),
    Mutant("statistics of a Parquet file say that there is no NaN", "engine/duckdb/sources.py", "Sources.place", "f'read_parquet({constant(source)}{united}, can_have_nan = true)'", "f'read_parquet({constant(source)}{united})'", 'unit/engine/test_sources.py', 'rows_with_nan'),
    Mutant("settings of a connection kept", "engine/duckdb/settings.py", "PinnedSettings.pin", "not self._owned", "False", 'unit/engine/test_collations.py', 'default-groups or default-division'),
    Mutant("an unknown law is taken for another", "privacy/mechanisms/registry.py", "from_json", "MECHANISMS[facts['mechanism']]", "MECHANISMS.get(facts['mechanism'], MECHANISMS['laplace'])", 'unit/reuse/test_other_rows.py', 'unknown_law_is_not_read'),
    Mutant("an unknown law is taken as it comes", "privacy/mechanisms/registry.py", "registered", "not is_registered(noise)", "False", 'unit/reuse/test_other_rows.py', 'said_of_an_unknown_law'),
    Mutant("under caps conditions stand anywhere", "reuse/derive.py", "_Derivation._same_rows", "self.stored.conditions != self.source_conditions.keys()", "False", 'unit/reuse/test_other_rows.py', 'cut_other_rows'),
    Mutant("other sums rank rows alike", "reuse/derive.py", "_Derivation._same_rows", "self.stored.bounds.max_rows_per_group is None", "True", 'unit/reuse/test_other_rows.py', 'cut_other_rows'),
    Mutant("a condition that is never true is left out", "functions/neutral_conditions.py", "_joined", "return _truth(deciding)", "continue", 'sql/test_same_question.py'),
    Mutant("a NULL in a condition is left out", "functions/neutral_conditions.py", "_joined", "value is None", "value is None and (not isinstance(part, Literal))", 'sql/test_same_question.py'),
    Mutant("rows kept as they come", "engine/emit/bounded_view.py", "rank", "f\"{function}() OVER (PARTITION BY {', '.join(partition)} ORDER BY {', '.join(order)})\"", "f\"{function}() OVER (PARTITION BY {', '.join(partition)} ORDER BY 1)\"", REPLAY, 'test_one_entity_moves_sums_within_the_claim and rows_per_group'),
    Mutant("a copy for all bounds", "engine/contribution_index.py", "ContributionIndex._shape", "(name, t.lower, t.upper, t.centre, t.grid)", "name", 'unit/engine/test_contribution_index.py', 'another_policy_is_not_used'),
    Mutant("31 bits are 32", "engine/emit/quantization.py", "integer_type", "term.magnitude >> term.finer < 2 ** 31", "term.magnitude >> term.finer < 2 ** 32", 'unit/engine/test_bounded_view.py', 'kept_in_32_bits'),
    Mutant("a grid for kept columns two bits coarser", "pricing/sum_terms.py", "", "KEPT_BITS = 30", "KEPT_BITS = 28", 'unit/engine/test_quantization.py', 'kept_narrow'),
    Mutant("a small clip on a coarse grid", "pricing/sum_terms.py", "clipped", "total >= most and isinstance(value, Column)", "isinstance(value, Column)", 'unit/engine/test_quantization.py', 'kept_narrow'),
    Mutant("a kept integer for all clamps", "engine/emit/quantization.py", "kept_integer", "(stored.lower, stored.upper, stored.centre, stored.grid) == summed", "stored is not None", 'unit/engine/test_contribution_index.py', 'read_integers_of_the_copy'),
    Mutant("one value for all constants of a type", "engine/emit/bind_parameters.py", "_Constants._constant", "self._dialect.constant(value)", "node.facts.type.value", 'unit/engine/test_bind_parameters.py', 'answers_are_those'),
    Mutant("constants of no type", "engine/dialect.py", "Dialect.parameter", "f'CAST(${parameter.number} AS {self.types[parameter.type]})'", "f'${parameter.number}'", 'unit/engine/test_bind_parameters.py', 'values_put_back'),
    Mutant("columns below DISTINCT left out", "engine/emit/column_pruning.py", "_narrowed", "_narrowed(node.source, None)", "_narrowed(node.source, frozenset())", 'unit/engine/test_bind_parameters.py', 'told_apart'),
    Mutant("a filter reads nothing", "engine/emit/column_pruning.py", "_narrowed", "_with(needed, [node.predicate])", "needed", REPLAY, 'test_one_entity_moves_sums_within_the_claim and filters'),
    Mutant("max_groups not enforced", "engine/emit/emitter.py", "Emitter._capped", "f'SELECT * FROM {self.dialect.derived(ranked)} WHERE \"#group\" <= {bounds.max_groups}'", "f'SELECT * FROM {self.dialect.derived(ranked)} WHERE \"#group\" > 0'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and public_keys-max_groups'),
    Mutant("max_rows_per_group not enforced", "engine/emit/emitter.py", "Emitter._capped", "f'SELECT * FROM {self.dialect.derived(ranked)} WHERE \"#row\" <= {bounds.max_rows_per_group}'", "f'SELECT * FROM {self.dialect.derived(ranked)} WHERE \"#row\" > 0'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and cap_of_all_rows'),
    Mutant("filters of equal aggregates forgotten", "sql/binder/private_block.py", "_Cut._measure", "replace(measure, name=entered.name)", "replace(measure, name=entered.name, filter=entered.filter)", PLANS, 'test_each_query_has_its_keys_and_sensitivities and filters_apart'),
    # price and charge
    Mutant("VAR charged once", "pricing/pricing.py", "_price_block", "charged_noises(terms)", "charged_noises(terms)[:1]", REPLAY, 'test_one_entity_moves_sums_within_the_claim and aggregates-variance'),
    Mutant("grouping sets charged once", "session/pipeline.py", "_answered", "loss + blocks[index].loss", "blocks[index].loss", REPLAY, 'test_one_entity_moves_sums_within_the_claim and rollup'),
    Mutant("every term gets the whole epsilon", "pricing/pricing.py", "_Shares.__init__", "self.allowed.divided(self.parts)", "self.allowed", REPLAY, 'test_one_entity_moves_sums_within_the_claim and aggregates-variance'),
    Mutant("delta of a threshold not charged", "privacy/mechanisms/partition_selection.py", "Threshold.loss", "PrivacyLoss(Fraction(0), self.delta, Fraction(0))", "PrivacyLoss(Fraction(0), Fraction(0), Fraction(0))", REPLAY, 'test_one_entity_moves_sums_within_the_claim and rows_of_units'),
    Mutant("delta of one key charged for all", "privacy/mechanisms/partition_selection.py", "TruncatedGeometric.loss", "PrivacyLoss.pure(self.epsilon_per_key, self.delta_per_key).scaled(self.l0)", "PrivacyLoss.pure(self.epsilon_per_key, self.delta_per_key)", "unit/privacy/test_partition_selection.py", "costs_add_up"),
    Mutant("Laplace scale a tenth too small", "privacy/mechanisms/laplace.py", "noise_for", "steps_moved(sensitivity, shift) / epsilon", "steps_moved(sensitivity, shift) / epsilon * Fraction(9, 10)", REPLAY, 'test_one_entity_moves_sums_within_the_claim and count_rows_of_units'),
    Mutant("Gaussian scale a tenth too small", "privacy/mechanisms/gaussian.py", "noise_for", "square_moved(sensitivity, shift) / (2 * rho)", "square_moved(sensitivity, shift) * 4 / (10 * rho)", GATE, 'test_noise_fits_its_scale_and_no_other'),
    Mutant("noise without a pure epsilon is free of delta", "privacy/accounting/pure.py", "Pure.charge", "loss.delta + delta", "loss.delta", 'unit/privacy/test_accounting.py', 'hardly_less'),
    Mutant("a part is the whole", "privacy/loss.py", "PrivacyLoss.divided", "None if self.epsilon is None else self.epsilon / parts", "self.epsilon", 'unit/privacy/test_accounting.py', 'add_up'),
    Mutant("an unknown law is free in the audit", "audit/noise_laws.py", "law_of", "isinstance(noise, Constant)", "type(noise) not in LAWS", 'unit/privacy/test_registered_mechanisms.py', 'derived'),
    Mutant("the audit counts one entry", "audit/noise_laws.py", "_laplace_loss", "(sum(steps) * rate, sum((pure_rho(step * rate) for step in steps), Fraction(0)))", "(steps[0] * rate, pure_rho(2 * steps[0] * rate))", 'unit/privacy/test_registered_mechanisms.py', 'audit_has'),
    Mutant("half of what a bit reveals", "privacy/pure_to_zcdp.py", "rho_of_pure", "epsilon * (1 - fall) / (1 + fall)", "epsilon * (1 - fall) / (2 + 2 * fall)", 'unit/privacy/test_pure_to_zcdp.py', 'both_roads or no_order'),
    Mutant("the way back is not checked", "privacy/pure_to_zcdp.py", "pure_of_rho", "max(least, epsilon) if rho_of_pure(epsilon) <= rho else least", "epsilon * 2", 'unit/privacy/test_pure_to_zcdp.py', 'way_back'),
    Mutant("entries move one step each", "privacy/mechanisms/laplace.py", "Laplace.loss", "Fraction(steps, most) * rho_of_pure(most * rate)", "steps * rho_of_pure(rate)", 'unit/privacy/test_pure_to_zcdp.py', 'entries_together'),
    Mutant("entries cross no grid line", "privacy/mechanisms/laplace.py", "entry_moved", "min(sensitivity.linf, sensitivity.l1) + (1 << shift) - 1 >> shift", "max(1, min(sensitivity.linf, sensitivity.l1) >> shift)", 'unit/privacy/test_pure_to_zcdp.py', 'entries'),
    Mutant("noise for the rho of one entry", "privacy/mechanisms/laplace.py", "noise_for_rho", "rho * Fraction(most, steps)", "rho", 'unit/privacy/test_pure_to_zcdp.py', 'spends_it'),
    Mutant("a derived class has the sampler of its base", "noise/noise_samplers.py", "sample", "SAMPLERS.get(type(noise))", "next((draw for law, draw in SAMPLERS.items() if isinstance(noise, law)), None)", 'unit/privacy/test_registered_mechanisms.py', 'derived'),
    Mutant("what is stored has another scale", "privacy/mechanisms/registry.py", "from_json", "noise: Noise = mechanism.law(sensitivity=Sensitivity(*facts['sensitivity']), **numbers)", """numbers['shift'] = 0
noise: Noise = mechanism.law(sensitivity=Sensitivity(*facts['sensitivity']), **numbers)""", 'unit/privacy/test_registered_mechanisms.py', 'round_trip'),
    Mutant("charges rounded down", "privacy/accounting/ledger_units.py", "charge_units", "ceil(value * UNITS[dimension])", "int(value * UNITS[dimension])", 'unit/privacy/test_accounting.py'),
    Mutant("charged without looking at the budget", "ledger/ledger.py", "Ledger._fitting", "all((account.fits(request.charge) for account in accounts.values()))", "True or all((account.fits(request.charge) for account in accounts.values()))", SESSION, 'fit_one_scope'),
    Mutant("spent forgotten", "ledger/ledger.py", "Ledger._charge", "added(account.spent, request.charge)", "account.spent", SESSION, 'charged_once'),
    Mutant("budget looked at outside the lock", "ledger/ledger.py", "Ledger._charge_all", """with self._write_transaction() as writer:
    for submission in submissions:
        try:
            accounts = self._fitting(writer.connection, submission.request)
        except Error as error:
            submission.error = error
        else:
            submission.result = self._charge(writer, submission.request, accounts)
    if all((submission.result is None for submission in submissions)):
        raise _NothingCharged""", """with self.store.reading() as before:
    early = [self._fitting(before, submission.request) for submission in submissions]
with self._write_transaction() as writer:
    for submission, accounts in zip(submissions, early, strict=True):
        try:
            pass
        except Error as error:
            submission.error = error
        else:
            submission.result = self._charge(writer, submission.request, accounts)
    if all((submission.result is None for submission in submissions)):
        raise _NothingCharged""", 'unit/ledger/test_contract.py unit/ledger/test_group_commit.py', '(two_machines or fits_only_some) and sqlite'),
    Mutant("one flush for each charge", "ledger/group_commit.py", "GroupCommit.submit", "(queue.waiting, [], True)", "([mine], [submission for submission in queue.waiting if submission is not mine], True)", 'unit/ledger/test_group_commit.py', 'share_one_flush and sqlite'),
    Mutant("one failure is told to one thread", "ledger/group_commit.py", "GroupCommit.submit", """for submission in batch:
    submission.error = error if submission is mine else _for_another(error)""", "mine.error = error", 'unit/ledger/test_group_commit.py', 'tells_each and sqlite'),
    Mutant("one error for all threads", "ledger/group_commit.py", "_for_another", "copy(error) if isinstance(error, Error) else refuse('ledger_commit_unknown', charged=True)", "error if isinstance(error, Error) else refuse('ledger_commit_unknown', charged=True)", 'unit/ledger/test_group_commit.py', 'tells_each and sqlite'),
    Mutant("charged after it was given up", "ledger/group_commit.py", "GroupCommit.submit", "queue.waiting = [submission for submission in queue.waiting if submission is not mine]", "pass", 'unit/ledger/test_group_commit.py', 'too_long'),
    Mutant("a used ledger takes any unit", "ledger/unit.py", "must_hold", "recorded is not None and (not change) and (connection.execute(_CHARGE).first() is not None)", "recorded == change and connection.execute(_CHARGE).first() is not None", 'unit/ledger/test_privacy_unit.py', 'used_ledger_keeps'),
    Mutant("an id belongs to everybody", "ledger/records.py", "charge_id", "f'{asker(analyst)}/{request_id}'", "f'owner/{request_id}'", 'unit/reuse/test_askers.py', 'request_id'),
    Mutant("an analyst called owner is the owner", "ledger/records.py", "asker", "'owner' if analyst is None else f\"analyst:{quote(analyst, safe='')}\"", "analyst or 'owner'", 'unit/reuse/test_askers.py', 'called_owner'),
    Mutant("an id is charged again", "ledger/ledger.py", "Ledger._fitting", "charged is not None", "False", 'unit/ledger/test_contract.py', 'charged_once and sqlite'),
    Mutant("another release is replaced", "reuse/store.py", "_insert_new", "releases.insert().prefix_with('OR IGNORE')", "releases.insert().prefix_with('OR REPLACE')", 'unit/reuse/test_store.py', 'first_release_stands and sqlite'),
    Mutant("a charge that is not flushed", "ledger/store.py", "Store.writing", "self._begin_durable if durable else self._begin_lossy", "self._begin_lossy", 'unit/ledger/test_contract.py', 'flushed and sqlite'),
    Mutant("two writers at once", "ledger/store.py", "Store._begin_writing", "self._driver.execute('BEGIN IMMEDIATE')", "self._driver.execute('BEGIN')", 'unit/ledger/test_contract.py', 'two_machines and sqlite'),
    Mutant("the head stays behind", "ledger/ledger.py", "Ledger._write_transaction", "seat.advance(writer.last)", "pass", 'unit/ledger/test_contract.py', 'head_never_moves and sqlite'),
    Mutant("the slot of the head that holds is overwritten", "ledger/witness.py", "Witness._newest", "(Head(int(fields[0]), fields[1]), fields[2], 1 - slot)", "(Head(int(fields[0]), fields[1]), fields[2], slot)", 'unit/ledger/test_tamper.py', 'torn_head and sqlite'),
    Mutant("totals believed without their MAC", "ledger/account.py", "_account", "same(account_mac(key, ledger_id, facts), stored_mac)", "stored_mac", 'unit/ledger/test_tamper.py', 'totals_edited or limits and sqlite'),
    Mutant("an outcome stops a charge", "ledger/outcomes.py", "Outcomes.write", "_RESOLVED.rows(writer.connection, resolves=outcome.resolves)", "False", 'unit/ledger/test_outcomes.py', 'already and sqlite'),
    Mutant("an outcome is lost when the ledger is closed", "ledger/ledger.py", "Ledger.close", "self.settle()", "pass", 'unit/ledger/test_outcomes.py', 'reads_or_closes and sqlite'),
    Mutant("a child writes what its parent noted", "ledger/outcomes.py", "Outcomes._of_this_process", "self._process, self._waiting, self._timer = (os.getpid(), {}, None)", "pass", 'unit/ledger/test_outcomes.py', 'child_writes and sqlite'),
    Mutant("a refused charge takes the outcome of another with it", "ledger/outcomes.py", "Outcomes.write", """for outcome in outcomes:
    if _RESOLVED.rows(writer.connection, resolves=outcome.resolves):
        _log.warning('charge %d: %s not noted: it has an outcome', outcome.resolves, outcome.kind)
    else:
        writer.append(outcome.kind, {'resolves': outcome.resolves, 'note': outcome.note})""", """self._waiting.clear()
for outcome in outcomes:
    if _RESOLVED.rows(writer.connection, resolves=outcome.resolves):
        _log.warning('charge %d: %s not noted: it has an outcome', outcome.resolves, outcome.kind)
    else:
        writer.append(outcome.kind, {'resolves': outcome.resolves, 'note': outcome.note})""", 'unit/ledger/test_outcomes.py', 'refused_charge and sqlite'),
    Mutant("an outcome is written again", "ledger/ledger.py", "Ledger._write_transaction", "self._outcomes.written(noted)", "pass", 'unit/ledger/test_outcomes.py', 'in_one_transaction and sqlite'),
    Mutant("data before the charge", "session/pipeline.py", "_answered", "reservation = reserve(context, receipt_id, loss, planned, request.work)", """_ = [context.engine.run(query) for named in measurement._queries.values() for query in named.values()]
reservation = reserve(context, receipt_id, loss, planned, request.work)""", SESSION, 'recorded_before_data'),
    Mutant("promises are looked at before the charge", "session/pipeline.py", "_answered", "reservation = reserve(context, receipt_id, loss, planned, request.work)", """[check_promises(context, blocks[index].block.source) for index in missing]
reservation = reserve(context, receipt_id, loss, planned, request.work)""", 'unit/session/test_pipeline.py', 'steps_of_every_answer'),
    Mutant("an answer before its charge is settled", "session/pipeline.py", "MissingBlocks.run", "reservation.commit()", "pass", 'unit/session/test_pipeline.py', 'steps_of_every_answer'),
    Mutant("limits of options not kept", "pricing/options.py", "_check_limit", "value > most", "value < 0", REFUSALS, 'test_each_refusal_has_its_words_and_place and option_limit'),
    # keys
    Mutant("empty public keys dropped", "noise/group_layout.py", "lay_out", "None in domains", "domains", REPLAY, 'test_one_entity_moves_sums_within_the_claim and public_keys-domain'),
    Mutant("unlisted keys kept", "noise/group_layout.py", "_product", "np.where(nowhere, count, numbers)", "np.where(nowhere, count - 1, numbers)", 'unit/noise/test_perturb.py', 'every_combination'),
    Mutant("private keys beside unlisted ones", "noise/group_layout.py", "_observed", "place < len(key.values or ())", "place <= len(key.values or ())", 'unit/noise/test_perturb.py', 'selected_and_sorted'),
    Mutant("integers one beyond the last", "noise/group_layout.py", "_places.by_distance", "np.uint64(size)", "np.uint64(size - 1)", 'unit/noise/test_perturb.py', 'follow_each_other'),
    Mutant("a hole among integers", "noise/group_layout.py", "_domain", "(present.cast(pa.int64()).to_numpy() == np.arange(first, after)).all", "(present.cast(pa.int64()).to_numpy() == np.arange(first, after)).any", 'unit/noise/test_perturb.py', 'follow_each_other'),
    Mutant("NULL is the first public key", "noise/group_layout.py", "_places", "pc.index_in(column, value_set=domain.cast(column.type)).fill_null(size)", "pc.index_in(column, value_set=domain.cast(column.type)).fill_null(0)", 'answers/test_public_keys.py', 'promise_that_the_data_break'),
    # public keys
    Mutant("NULL is no public key", "functions/public_domains.py", "_with_null", "(*values, None) if values is not None and facts.nullable and (None not in values) else values", "values", 'answers/test_public_keys.py', 'groups_of_sql'),
    Mutant("the label of other values is no public key", "functions/public_domains.py", "_labelled", "(*values, facts.outside)", "(*values,)", 'answers/test_outside_values.py', 'group_of_other_values'),
    Mutant("other values keep their own keys", "functions/public_domains.py", "as_key", "facts.outside is None", "facts", 'answers/test_outside_values.py', 'group_of_other_values'),
    Mutant("no row is left out", "release/release.py", "drop_notices", """if not names:
    return ()""", """if names:
    return ()""", 'answers/test_outside_values.py', 'leave_rows_out'),
    Mutant("a comparison loses its edge", "functions/possible_values.py", "_outcomes", "(operator.le, operator.gt)", "(operator.lt, operator.gt)", 'unit/functions/test_key_narrowing.py', 'what_an_expression'),
    Mutant("the first value is in no cell", "functions/column_cells.py", "cut", "map(single, ordered)", "map(single, ordered[1:])", 'unit/functions/test_key_narrowing.py', 'plain_conditions'),
    Mutant("every row of an outer join has a partner", "plan/origins.py", "_joined", "node.kind == 'left'", "not node", 'unit/functions/test_key_narrowing.py', 'outer_join'),
    Mutant("a key that one branch leaves is gone", "functions/key_narrowing.py", "remaining", "[parts for parts in parts_by_branch if all((len(part.cells) for part in parts))]", "[parts for parts in parts_by_branch[:1] if all((len(part.cells) for part in parts))]", 'unit/functions/test_key_narrowing.py', 'a_union_keeps'),
    Mutant("one combination of a branch is gone", "functions/key_narrowing.py", "_union", "np.unique(np.concatenate([_numbers(parts, remaining_positions) for parts in branch_parts]))", "np.unique(np.concatenate([_numbers(parts, remaining_positions) for parts in branch_parts]))[1:]", 'unit/functions/test_key_combinations.py', 'combination_that_a_row'),
    Mutant("rows that are looked for among others", "functions/row_search.py", "_partners", "index.get(row.values[name], [])", "index.get(row.values[name], [])[:1]", 'unit/functions/test_key_combinations.py', 'rows_of_public'),
    Mutant("rows without a partner are those with one", "plan/origins.py", "_met", "_pair(branch, partner, node.keys)", "branch", 'unit/functions/test_key_combinations.py', 'semi_joins'),
    Mutant("combinations that are not listed are shown", "noise/group_layout.py", "_product", "nowhere |= unlisted", "nowhere |= False", 'unit/noise/test_perturb.py', 'listed_combinations'),
    Mutant("a unit is in fewer groups than there are", "plan/combinations.py", "group_count", "len(listed.numbers)", "len(listed.numbers) - 1", 'answers/test_key_combinations.py', 'no_more_groups'),
    Mutant("groups that HAVING left out use up caps", "engine/emit/columns.py", "in_groups", "not listed.whole", "listed.whole", 'answers/test_key_combinations.py', 'use_up_no_cap'),
    Mutant("combinations that HAVING left out are summed over", "reuse/derive.py", "_Derivation.answer", "self.stored.gaps and self.dropped", "self.stored.gaps and (not self.stored)", 'answers/test_key_combinations.py', 'which_combinations_they_lack'),
    Mutant("a quantile of other rows", "reuse/derive.py", "_Derivation._numbers", "self.stored.conditions != self.source_conditions.keys()", "False", 'unit/reuse/test_chosen_numbers.py', 'other_rows'),
    Mutant("a quantile of other cells", "reuse/measurements.py", "measure_of", "replace(measurement.term, name='')", "measurement.term.kind", 'unit/reuse/test_chosen_numbers.py', 'other_rows or filtered'),
    Mutant("a quantile under other caps", "reuse/derive.py", "_Derivation.answer", "bool(numbers)", "False", 'unit/reuse/test_chosen_numbers.py', 'caps or other_rows'),
    Mutant("a quantile from half of the noise of its counts", "reuse/ranked_counts.py", "RankedCounts.most_off", "summed(self.term.noise, self.summands, self.term.whole)", "summed(self.term.noise, max(1, self.summands // 4), self.term.whole)", 'unit/reuse/test_quantiles_from_counts.py', 'rank_error_is_within'),
    Mutant("a quantile from counts at the other end", "reuse/ranked_counts.py", "RankedCounts.chosen", "total * float(quantile)", "total * float(1 - quantile)", 'unit/reuse/test_quantiles_from_counts.py', 'rank_error_is_within'),
    Mutant("a quantile from counts is one value late", "reuse/ranked_counts.py", "RankedCounts.chosen", "self.before_rank(ranks)[:, :-1]", "self.before_rank(ranks)[:, 1:]", 'unit/reuse/test_quantiles_from_counts.py', 'without_noise'),
    Mutant("the smallest value from counts lies outside the data", "reuse/ranked_counts.py", "counted_numbers", "ceil(most_off) + 1 if requested.quantile in (0, 1) else 0", "1 if requested.quantile in (0, 1) else 0", 'unit/reuse/test_quantiles_from_counts.py', 'inside_the_data'),
    Mutant("bars from counts without their noise", "reuse/ranked_counts.py", "RankedCounts.ends", "self.most_off(quantile, float(missed)) + 1", "1", 'unit/reuse/test_quantiles_from_counts.py', 'bars_hold'),
    Mutant("a quantile of NULLs", "reuse/ranked_counts.py", "ranked_counts", "cells >= 0", "cells >= -1", 'unit/reuse/test_quantiles_from_counts.py', 'without_nulls'),
    Mutant("modes are taken for quantiles of counts", "reuse/derive.py", "_Derivation._from_counts", "not isinstance(measurement, RankHistogram) or measurement.word != RANK_HISTOGRAM", "False", 'unit/reuse/test_quantiles_from_counts.py', 'other_rows'),
    Mutant("a bar of another confidence", "reuse/measurements.py", "_end", "missed", "0", 'unit/reuse/test_chosen_numbers.py', 'its_own_confidence'),
    Mutant("quantiles of groups in another order", "reuse/derive.py", "_Derivation._placed", "np.argsort(self._groups()[0])", "np.arange(rows)", 'unit/reuse/test_chosen_numbers.py', 'keys_in_another_order'),
    Mutant("the same quantiles with less epsilon", "reuse/lookup.py", "_equal", "match.error_ratio == 1", "True", 'unit/reuse/test_chosen_numbers.py', 'larger_epsilon'),
    Mutant("a combination that is not stored is 0", "reuse/derive.py", "_Derivation._groups", "len(np.unique(codes[~outside])) < count", "not len(codes)", 'answers/test_key_combinations.py', 'which_combinations_they_lack'),
    Mutant("groups that HAVING left out are summed over", "sql/binder/public_keys.py", "narrowed", "values == inside", "True", 'answers/test_public_keys.py', 'derived_answers'),
    Mutant("private keys in the engine's order", "noise/group_layout.py", "_ascending", "bool(pc.all(before, min_count=0).as_py())", "True", 'unit/noise/test_perturb.py', 'order_of_engine_rows'),
    Mutant("ties in the first key end the look at the order", "noise/group_layout.py", "_ascending", "pc.and_(tied, less)", "tied", 'unit/noise/test_perturb.py', 'every_order'),
    Mutant("NULL keys anywhere", "noise/group_layout.py", "_ascending", "pc.if_else(following.is_null(), this.is_valid(), pc.less(this, following)).fill_null(False)", "pc.less(this, following).fill_null(True)", 'unit/noise/test_perturb.py', 'every_order'),
    Mutant("keys admitted by rows", "engine/emit/emitter.py", "Emitter._selection_count", "f'count(DISTINCT {self._hidden(block.source)[-1]})'", "'count(*)'", "unit/pricing/test_selection.py", "units_of_one_key_count_once"),
    Mutant("threshold one lower", "noise/perturb.py", "Gate.select", "selection.tau", "selection.tau - 1", 'unit/privacy/test_partition_selection.py unit/noise/test_perturb.py'),
    Mutant("a lone unit counts one less", "privacy/mechanisms/partition_selection.py", "_lowest", "lone + noise.tail_point(delta / l0)", "lone - 1 + noise.tail_point(delta / l0)", "unit/privacy/test_partition_selection.py", "counts_its_own_mass"),
    # noise
    Mutant("noise without a sign", "noise/perturb.py", "Gate.add", "drawn[:groups.count][rows]", "np.abs(drawn[:groups.count][rows])", GATE, 'test_noise_fits_its_scale_and_no_other'),
    Mutant("one noise for all cells", "noise/perturb.py", "Gate.add", "drawn[:groups.count]", "np.repeat(drawn[:1], groups.count)", GATE, 'independent'),
    Mutant("noise on the first cell only", "noise/perturb.py", "Gate.add", "drawn[:groups.count]", "drawn[:groups.count] * (np.arange(groups.count) == 0)", GATE, 'test_noise_fits_its_scale_and_no_other'),
    Mutant("later cells get the noise of the first", "noise/perturb.py", "Gate.add", "drawn[:groups.count][rows]", "drawn[:groups.count][:len(exact.part(rows))]", GATE, 'its_own_noise_whatever'),
    Mutant("terms of one law share their noise", "noise/perturb.py", "Gate.draw", "next(parts) if other == noise else before", "drawn[:groups.draws] if other == noise else before", 'unit/noise/test_perturb.py', 'terms'),
    Mutant("blocks one too far", "noise/inversion.py", "tails", "edges.size - np.bincount(begins, minlength=1 << 16).cumsum()", "edges.size + 1 - np.bincount(begins, minlength=1 << 16).cumsum()", GATE, 'test_noise_fits_its_scale_and_no_other'),
    Mutant("what 16 bits leave open is decided", "noise/inversion.py", "tails", "above[begins] = _OPEN", "pass", 'unit/noise/test_inversion.py', 'sixteen'),
    Mutant("what a word leaves open is decided", "noise/inversion.py", "Tails.draw", "self.edges[edge - 1] == read", "self.edges[edge - 1] < 0", 'unit/noise/test_inversion.py', 'read_further'),
    Mutant("a candidate never looks back", "noise/samplers.py", "_candidates", "accepted[near] = _survives(j[near], y[near], law, randomness)", "pass", 'unit/noise/test_samplers.py', 'fractions'),
    Mutant("looks a step too low", "noise/samplers.py", "_caps", "-(worst << LOOK_BITS)", "worst << LOOK_BITS", 'unit/noise/test_samplers.py', 'too_rare'),
    Mutant("the look is tossed twice", "noise/randomness.py", "bernoulli_exp", "numerators << np.uint64(LOOK_BITS)", "numerators * looks", 'unit/noise/test_randomness.py', 'branches'),
    Mutant("words beyond the last share", "noise/randomness.py", "bernoulli", "drawn >= shares * bounds", "drawn > shares * bounds", 'unit/noise/test_randomness.py', 'equally_many'),
    Mutant("places beyond the last share", "noise/samplers.py", "_candidates", "places <= places.dtype.type(share * 2 * law.width - 1)", "places >= places.dtype.type(0)", 'unit/noise/test_samplers.py', 'favour_a_place'),
    Mutant("far blocks survive", "noise/samplers.py", "_survives", "_runs(far.size, randomness) >= whole[far]", "_runs(far.size, randomness) >= 0", 'unit/noise/test_samplers.py', 'fractions'),
    Mutant("no doubt about sums of weights", "noise/weighted_runs.py", "_inverted", "passed_over * np.uint64(runs.error) + np.uint64(1)", "passed_over * np.uint64(0)", 'unit/noise/test_rank_choice.py', 'boundary'),
    Mutant("weights less enclosed than they are", "noise/weighted_runs.py", "near_runs", "tables.error + 1", "0", 'unit/noise/test_rank_choice.py', 'lower_bounds'),
    Mutant("a cell is as far as the gap before it", "noise/rank_choice.py", "_near_runs", "np.maximum(np.maximum(e[:-1], -e[1:]), 0)", "np.abs(e[:-1])", 'unit/noise/test_rank_choice.py', '120_digits'),
    Mutant("ranks are whole", "noise/rank_choice.py", "_near_runs", "np.minimum(np.maximum(before - whole[of_row], -farthest), farthest) * b - part[of_row]", "np.minimum(np.maximum(before - whole[of_row], -farthest), farthest) * b", 'unit/noise/test_rank_choice.py', '120_digits'),
    Mutant("the first cell of a gap", "noise/weighted_runs.py", "drawn", "first + uniform_below(width, draws, randomness)", "first", 'unit/noise/test_rank_choice.py', 'empty_group'),
    Mutant("twice the epsilon of ranks", "noise/rank_choice.py", "_near_runs", "law.rate / b", "2 * law.rate / b", 'unit/noise/test_rank_choice.py', 'no_other_epsilon'),
    Mutant("digits of an exponent left out", "noise/fixed_point_exp.py", "ExpTables.lower", "self.digits[1:]", "self.digits[1:1]", 'unit/noise/test_rank_choice.py', 'exp_is_enclosed'),
    Mutant("no zero has two signs", "noise/samplers.py", "_candidates", "accepted &= (y != 0) | (sign == 0)", "pass", 'unit/noise/test_samplers.py', 'test_laplace_has'),
    Mutant("seeded noise", "noise/randomness.py", "KernelRandomness.read", "os.urandom(size)", "__import__('random').Random(size).randbytes(size)", GATE, 'independent'),
    Mutant("an argument too many is forgotten", "sql/dropped_arguments.py", "check_arguments", """if forgotten:
    most = min(len(arguments), MOST_ASKED) - len(forgotten)
    reason = f"takes {most} argument{('' if most == 1 else 's')} here, got {len(arguments)}"
    place = arguments[forgotten[0]].start + 1
    raise refuse('wrong_arguments', function=name.text.upper(), reason=reason, position=place)""", """if forgotten and len(arguments) > 9:
    most = min(len(arguments), MOST_ASKED) - len(forgotten)
    reason = f"takes {most} argument{('' if most == 1 else 's')} here, got {len(arguments)}"
    place = arguments[forgotten[0]].start + 1
    raise refuse('wrong_arguments', function=name.text.upper(), reason=reason, position=place)""", 'unit/sql/test_dropped_arguments.py'),
    # what leaves
    Mutant("the engine's words in an error", "engine/faults.py", "fault_of", "refuse('engine_failed', incident=incident)", "refuse('engine_failed', incident=str(error))", SESSION, 'engine_error'),
    Mutant("a look holds whoever had the turn", "reuse/single_flight.py", "measuring_lock", "alone and stamp[1] % 2 == 0 and (stamps_before <= {stamp})", "True", 'unit/reuse/test_single_flight.py', 'paid_twice'),
    Mutant("a turn that is held leaves no trace", "reuse/single_flight.py", "_counted", "_write(descriptor, counter + 1 | 1)", "pass", 'unit/reuse/test_single_flight.py', 'held_while'),
    Mutant("a release of other data", "reuse/lookup.py", "_Names.__init__", "(key, version, audience)", "(key, audience)", SESSION, 'changed_data'),
    Mutant("a broken promise is overlooked", "session/pipeline.py", "check_promises", "not context.engine.holds(emitter.promise(promise))", "False and (not context.engine.holds(emitter.promise(promise)))", 'guarantee/test_same_outcome.py', 'broken_promise'),
    # stages
    Mutant("a released key that is not shown", "sql/binder/result_facts.py", "_output_positions", "names <= place.keys()", "True or names", REFUSALS, 'result_without_its_key'),
    Mutant("some of the keys are unique", "plan/stability.py", "unique_on", "names.issuperset(unique)", "names & set(unique)", REFUSALS, 'one_of_two_keys'),
    Mutant("integers equal one real each", "plan/stability.py", "told_apart", "not (a.facts.type is Type.REAL and b.facts.type is Type.INTEGER)", "True", REFUSALS, 'integer_key_as_a_real'),
    Mutant("what RIGHT JOIN merges is of the left side", "sql/binder/scope.py", "using", "side == 'RIGHT'", "side == 'LEFT'", 'answers/test_answers.py', 'right_join_merges'),
    Mutant("what FULL JOIN merges is of the first side", "sql/binder/scope.py", "using", "side == 'FULL'", "side == 'FULL OUTER'", 'answers/test_answers.py', 'full_join_merges'),
    Mutant("a rollup has one row for each key", "sql/binder/result_facts.py", "over_block", "{frozenset((key.name for key in keys))} if sets == 1 else set()", "{frozenset((key.name for key in keys))}", REFUSALS, 'join-rollup'),
    Mutant("any result is one value", "sql/binder/query.py", "QueryBinder.value", "not bound.unique >= results.ONE_ROW", "bound.unique is None", REFUSALS, 'several_rows'),
    Mutant("of no rows a count is missing", "sql/binder/correlated_subqueries.py", "_Inner.value", "exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])", "column", 'unit/session/test_stages.py', 'of_no_rows'),
    Mutant("released rows have no part in the name", "session/stages.py", "Stages._with_released", "digest(self._tables[part.name])", "''", 'unit/session/test_stages.py', 'rows_of_another_stage'),
    Mutant("a later stage keeps its first name", "session/stages.py", "Stages.fill", "release_key(priced[index], self._policy)", "keys[index]", 'unit/session/test_stages.py', 'other_released_rows'),
    Mutant("the first stage alone is reserved", "session/pipeline.py", "_answered", "loss + blocks[index].loss", "loss if planned.waiting(index) else loss + blocks[index].loss", 'unit/session/test_stages.py', 'reserved_before'),
    Mutant("a released mean has the bounds of nobody", "aggregates/average.py", "_facts", "argument.upper", "argument.lower", PLANS, 'test_each_query_has_its_keys_and_sensitivities and mean_of_a_released_mean'),
    # distinct values
    Mutant("a distinct sum moves by one", "pricing/sensitivity.py", "sensitivity", "term.magnitude", "1 if term.kind is TermKind.DISTINCT_SUM else term.magnitude", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_distinct'),
    Mutant("distinct values are not clamped", "engine/emit/quantization.py", "distinct_sum", "row_integer(term, summand(term, summed, element, dialect), dialect)", "f'CAST({summand(term, summed, element, dialect)} AS BIGINT)'", REPLAY, 'test_one_entity_moves_sums_within_the_claim and sum_distinct'),
    Mutant("equal values are summed again", "engine/duckdb/dialect.py", "DuckDBDialect.distinct_sum", "f\"list_sum(list_transform(list(DISTINCT {value}){condition}, lambda e: {integer('e')}))\"", "f\"list_sum(list_transform(list({value}){condition}, lambda e: {integer('e')}))\"", 'answers/test_answers.py', 'different_values'),
    Mutant("distinct sums are plain ones", "sql/binder/aggregates.py", "_numbers", "Measure(call.name, call.aggregate.word, arguments, distinct, call.condition)", "Measure(call.name, call.aggregate.word, arguments, False, call.condition)", 'answers/test_answers.py', 'different_values'),
    # the unit's key behind expressions
    Mutant("rows of a function of the key are those of many", "sql/binder/unit_keys.py", "_kind", "return Kind.IMAGE", "return Kind.OTHER", 'answers/test_answers.py', 'behind_expressions'),
    Mutant("any function of the key is a private key", "sql/binder/unit_keys.py", "_kind", "Kind.OTHER if node.function in _COARSE else Kind.MIXED", "Kind.OTHER", REFUSALS, 'unit_expression'),
    Mutant("grouping sets of units read as one", "sql/binder/private_block.py", "_by_unit", "(not names <= chosen for chosen in work.sets)", "(not names <= chosen for chosen in work.sets[:1])", REFUSALS, 'unit_sets'),
    # time
    Mutant("a cancel stops the scan", "session/session.py", "Session.interrupt", """for work in list(self._running):
    work.leave()""", """for work in list(self._running):
    work.leave()
self.context.engine.interrupt()""", 'unit/session/test_response_times.py', 'interrupt_ends_the_waiting'),
    Mutant("a cancel takes effect at once", "session/background_work.py", "Work.result", "self.pace.hold()", "pass", 'unit/session/test_response_times.py', 'takes_effect_at_a_time'),
    Mutant("late releases are stored", "session/background_work.py", "Work.require_open", "self._closed", "False", 'unit/session/test_response_times.py', 'stays_one'),
    Mutant("scans left behind pile up", "session/background_work.py", "MeasurementQueue._may_enter", "other.session != work.session", "True", 'unit/session/test_response_times.py', 'places_at_the_data'),
    Mutant("scans left behind take every place", "session/background_work.py", "MeasurementQueue._may_enter", "self._most_left", "99", 'unit/session/test_response_times.py', 'places_at_the_data'),
    Mutant("what is not charged begins though nobody waits", "session/background_work.py", "Work.begun", "self.check()", "pass", 'unit/session/test_response_times.py', 'does_not_begin'),
    Mutant("a scan outlives the constant time", "session/response_times.py", "Pace.left", "min(timeout_seconds, max(self.latest - time.monotonic(), _LEAST_SECONDS))", "max(timeout_seconds, max(self.latest - time.monotonic(), _LEAST_SECONDS))", 'unit/session/test_response_times.py', 'the_times_of_responses or stays_one'),
    Mutant("no least epsilon", "pricing/options.py", "_check_limit", "value < limits.min_epsilon", "value < 0", 'unit/session/test_response_times.py', 'spends_the_least'),
    Mutant("a stored part makes the rest cheap", "planning/planner.py", "Planner.require_least", "2 * spent.get(name, 0) < amount", "spent.get(name, 0) < 0 * amount", 'unit/session/test_response_times.py', 'part_of_a_question'),
    Mutant("a target below the least", "pricing/pricing.py", "_cheapest", "policy.per_query.min_epsilon", "Fraction(0)", 'unit/session/test_response_times.py', 'target_that_needs_less'),
    Mutant("a target leaves quantiles out", "pricing/pricing.py", "price.error", "max(farthest(priced.blocks, options.confidence), of_sums(priced))", "of_sums(priced)", 'unit/planning/test_targets_of_choices.py', 'least_epsilon'),
    Mutant("a target of the smallest value leaves its rank out", "pricing/rank_histograms.py", "RankHistogramPricing.worst_error", "chosen.law.rank + _rank_error(plan, chosen, 1 - confidence)", "_rank_error(plan, chosen, 1 - confidence)", 'unit/planning/test_targets_of_choices.py', 'smallest_value'),
    Mutant("stored quantiles meet any target", "reuse/lookup.py", "StoredReleases._usable", "(match.worst_error for match in derived.matches)", "()", 'unit/planning/test_targets_of_choices.py', 'farther_off'),
    Mutant("free questions scan", "session/pipeline.py", "MissingBlocks._measure", "is_charged(priced)", "True", 'unit/session/test_response_times.py', 'cannot_move'),
    Mutant("texts without end", "functions/row_costs.py", "part_read", "REGISTRY[function].reads_text and argument.facts.type is Type.TEXT and (size(argument) is None)", "REGISTRY[function].reads_text and False", 'unit/functions/test_row_costs.py', 'first_characters'),
    Mutant("repetitions count once", "functions/row_costs.py", "program", "stack[-1][-1] * _most(text)", "stack[-1][-1]", 'unit/functions/test_row_costs.py', 'repeat'),
    Mutant("subqueries cost nothing again", "functions/row_costs.py", "_relation", "{name: cost(value, columns) for name, value in source.columns}", "{name: 1 for name, value in source.columns}", REFUSALS, 'slow_expression-subqueries'),
    Mutant("branches cost as one", "functions/row_costs.py", "cost", "sum((cost(argument, columns) for argument in node.arguments))", "max((cost(argument, columns) for argument in node.arguments), default=0)", 'unit/functions/test_row_costs.py', 'branches'),
    # which groups there are
    Mutant("the groups of a block are those of the data", "release/error_bars/lineage.py", "lineage", "Level.EXACT if not keys else Level.EMPTY if groups.complete else Level.MISSING", "Level.EXACT if not keys or groups.complete else Level.EMPTY if groups.complete else Level.MISSING", 'unit/release/test_group_notices.py', 'depends_on_the_groups'),
    Mutant("private keys lack no group", "release/error_bars/lineage.py", "lineage", "Level.EMPTY if groups.complete else Level.MISSING", "Level.EMPTY", 'unit/release/test_group_notices.py', 'may_lack_groups'),
    Mutant("zero rows are more than none", "release/error_bars/empty_groups.py", "", "lambda bound: bound <= 0", "lambda bound: bound < 0", 'unit/release/test_group_notices.py', 'depends_on_the_groups'),
    Mutant("groups of two blocks told apart by one", "release/error_bars/lineage.py", "_Select.lineage", "sum((inner.rows >= Level.EMPTY for inner in self.sources.values())) > 1", "sum((inner.rows >= Level.EMPTY for inner in self.sources.values())) > 9", 'unit/release/test_group_notices.py', 'depends_on_the_groups'),
    # plain remainders
    Mutant("half to even in vectors", "release/formulas.py", "_whole", "np.copysign(below + (size - below >= 0.5), value)", "np.rint(value)", 'unit/release/test_formulas.py', 'last_bit'),
    Mutant("equal values are correlated", "aggregates/regression.py", "", "('corr', 'Corr', True, lambda p: p.covariance / p.root)", "('corr', 'Corr', True, lambda p: within(p.covariance / p.root, -1, 1))", 'unit/aggregates/test_regression.py', 'does_not_spread'),
    Mutant("a mean may leave its bounds", "aggregates/average.py", "_mean", "within(float(centre) + total / greatest(count, 1), low, high)", "within(float(centre) + total / greatest(count, 1), 2 * low, 2 * high)", 'unit/aggregates/test_contract.py', 'interval_of_its_facts'),
    Mutant("a unit's sums have the bounds of a row", "aggregates/sum.py", "_of_unit", "(min(facts.lower * rows, facts.lower), max(facts.upper * rows, facts.upper))", "(facts.lower, facts.upper)", 'unit/aggregates/test_contract.py', 'rows_of_a_unit'),
    Mutant("a second argument is forgotten", "sql/binder/aggregates.py", "_numbers", "len(operands) != count", "len(operands) < count", REFUSALS, 'wrong_arguments-two_means'),
    Mutant("numbers without bounds are summed", "sql/binder/aggregates.py", "_numbers", "_check_bounded(word, argument, part, call.scalars)", "pass", REFUSALS, 'unbounded'),
    Mutant("times at the ends of months keep their order", "functions/calendar.py", "around_month_ends", "isinstance(upper, datetime) and upper.date() == last_day(upper)", "False", 'unit/functions/test_facts.py', 'last_day_of_a_month'),
    Mutant("tokens are made at every use", "sql/lexer.py", "Piece.tokens", "dialect not in self._lexed", "True", 'unit/frontends/pgwire/test_one_pass.py', ''),
    Mutant("a lock is had in any case", "storage/file_locks.py", "try_lock", "return False", "return True", 'unit/storage/test_files.py', ''),
    Mutant("a logarithm has the bounds of its argument", "functions/elementary.py", "_logarithm.infer", "logarithm(float(end))", "float(end) / 3", 'unit/functions/test_facts.py', ''),
    Mutant("an exponential grows no further than its lower end", "functions/elementary.py", "_exp", "max(high, -_MOST_EXPONENT)", "max(low or high, -_MOST_EXPONENT)", 'unit/functions/test_facts.py', ''),
    Mutant("the arc sine of anything", "engine/duckdb/functions.py", "", "_TEXTS.guarded('asin', 'BETWEEN -1 AND 1')", "_TEXTS.of_reals('asin')", 'unit/functions/test_evaluate.py', 'each_function'),
    Mutant("-0.0 is a number of its own", "plan/formulas.py", "Number.__post_init__", "float(self.value) + 0.0", "float(self.value)", 'unit/release/test_formulas.py', 'one_sign'),
    Mutant("a NULL is a number in vectors", "release/formulas.py", "_null_if", """if np.any(value == other):
    raise FloatingPointError""", "pass", 'unit/release/test_formulas.py', 'left_to_the_sandbox'),
    Mutant("negative numbers lose their sign", "release/formulas.py", "number_sql", "positive if value >= 0 else exp.Neg(this=positive)", "positive if True else exp.Neg(this=positive)", 'unit/release/test_formulas.py', 'last_bit'),
    Mutant("ascending whatever is asked", "release/error_bars/direct.py", "Direct.run", "'descending' if down else 'ascending'", "'ascending'", 'unit/release/test_direct.py', 'orders_and_limits'),
    Mutant("filters forgotten in vectors", "release/error_bars/direct.py", "direct", "name not in _SELECT", "name not in {*_SELECT, 'where'}", 'unit/release/test_direct.py', 'anything_else'),
    # error bars
    Mutant("bars a fifth too narrow", "release/error_bars/ends.py", "percentiles", "(1 - confidence) / 2", "1 - confidence", 'unit/release/test_bars.py', 'same_law and 50'),
    Mutant("exact bars a fifth too narrow", "release/error_bars/affine.py", "half_widths", "np.abs(part.factor)", "0.8 * np.abs(part.factor)", 'unit/release/test_coverage.py', 'test_count'),
    Mutant("bars of sums a fifth too narrow", "release/error_bars/affine.py", "_drawn", "np.asarray(widths)", "0.8 * np.asarray(widths)", 'unit/release/test_coverage.py', 'sum_of_several_terms'),
    Mutant("simulated bars a fifth too narrow", "release/error_bars/simulation.py", "Simulation._drawn", "deviates(term, self._uniform(name))", "0.8 * deviates(term, self._uniform(name))", 'unit/release/test_coverage.py', 'sum_average_variance'),
    Mutant("bars of shown keys a fifth too narrow", "release/error_bars/conditional.py", "values_given_shown", "step * term.noise_unit", "0.8 * step * term.noise_unit", 'unit/release/test_bars.py', 'shown_for_their_count'),
    Mutant("the largest group had no luck", "release/error_bars/bootstrap.py", "", "(0, 3)", "(2, 3)", 'unit/release/test_extremes.py', 'held_as_often and max and equal'),
    Mutant("the smallest group had no luck", "release/error_bars/bootstrap.py", "", "(2, 1)", "(2, 3)", 'unit/release/test_extremes.py', 'held_as_often and min and equal'),
    Mutant("extremes of rows that noise chose", "release/error_bars/bootstrap.py", "_extreme_at", "always == ever", "True", 'unit/release/test_extremes.py', 'that_noise_chooses'),
    Mutant("extremes widen what stands beside them", "release/error_bars/extremes.py", "_of_item", "Extreme.NONE", "Extreme.INSIDE", 'unit/release/test_extremes.py', 'leaves_the_bars or has_of_extremes'),
    Mutant("made-up releases know what is chosen", "planning/expected_bars.py", "expected_bars", "answered.of_groups | answered.chosen", "answered.of_groups", 'unit/planning/test_expected_bars.py', 'hides_no_error'),
    Mutant("outputs of one name share an error", "session/explanation.py", "error_lines", "names[column.name] > 1", "names[column.name] > 9", 'unit/planning/test_expected_bars.py', 'errors_of_their_own'),
    Mutant("replicated bars a fifth too narrow", "release/error_bars/bootstrap.py", "Replicates._replicated", "uniforms(key, 2 * self.draws * len(released))", "(0.025 + 0.95 * uniforms(key, 2 * self.draws * len(released)))", 'unit/release/test_bars.py', 'differences_from_a_mean'),
    Mutant("groups are not likely anywhere", "release/error_bars/bootstrap.py", "Rerun.families", "4", "3", 'unit/release/test_bars.py', 'above_a_threshold'),
    Mutant("empty bins hide nothing", "tuning/choices.py", "NoisyHistogram.margin", "self.least", "0.0", 'unit/tuning/test_light_tails.py', ''),
    Mutant("the winner had no luck", "release/error_bars/answers.py", "_Run.widen", "self.confidence = 1 - (1 - self.confidence) * row_count / most", "pass", 'unit/release/test_bars.py', 'put_first_are_held and 1'),
    Mutant("stages end with the measurement", "session/pipeline.py", "_release", "(*(part.remark for part in stored if part.remark), *unlisted_notices(planned, context.policy), *row_notices(planned, context.policy), *target_notices(planned), *workload_notices(planned), *(notice for workload in planned.price.workloads for notice in inconsistent_notice(workload, blocks)), *drop_notices(planned.plan.blocks), *min_units_notice(planned, context.policy), *stage_notices(planned), *choice_notices(planned, blocks, context.sandbox, context.public_table))", "(*(part.remark for part in stored if part.remark), *unlisted_notices(planned, context.policy), *row_notices(planned, context.policy), *target_notices(planned), *workload_notices(planned), *(notice for workload in planned.price.workloads for notice in inconsistent_notice(workload, blocks)), *drop_notices(planned.plan.blocks), *min_units_notice(planned, context.policy))", 'unit/session/test_notices.py', 'says_what_its_bars_hold'),
    Mutant("no row is chosen for certain", "release/error_bars/bootstrap.py", "surely_and_maybe", "_CANDIDATE_DRAWS + 1", "_CANDIDATE_DRAWS + 2", 'unit/session/test_notices.py', 'counted'),
    Mutant("shown keys had no luck", "release/error_bars/simulation.py", "Simulation._part", "least is None", "True", 'unit/release/test_bars.py', 'shown_for_their_count'),
    Mutant("an analyst may draw exact numbers", "frontends/cli/plot.py", "plot", "errors or analyst", "errors", 'unit/frontends/test_plots.py', 'are_for_the_owner'),
    Mutant("pictures of exact numbers are for all to read", "frontends/rendering/plots.py", "write_owners_plot", "place.chmod(0o600)", "place.chmod(0o644)", 'unit/frontends/test_plots.py', 'owner_sees'),
    Mutant("bars of quotients are too narrow", "release/error_bars/quotients.py", "quotient_ends", "confidence * (_DRAWS + 1)", "0.9 * confidence * (_DRAWS + 1)", 'unit/release/test_quotients.py', 'any_size and laplace and 50'),
    Mutant("quotients of counts are inverted on a lattice", "release/error_bars/quotients.py", "quotient", "part.rounded or all((terms[name].whole for name in part.weights))", "False", 'unit/release/test_quotients.py', 'left_to_simulation'),
    Mutant("a denominator that may be zero is known", "release/error_bars/quotients.py", "quotient_ends", "np.abs(v) > quantiles[-1]", "np.abs(v) > 0", 'unit/release/test_quotients.py', 'may_be_zero'),
    Mutant("the noise of a denominator is left out", "release/error_bars/quotients.py", "quotient_ends", "np.outer(np.sin(angles), y / deviations[1])", "0 * np.outer(np.sin(angles), y)", 'unit/release/test_quotients.py', 'any_size and laplace and 50 and 1.0'),
    Mutant("weights of a quotient may differ by row", "release/error_bars/quotients.py", "_weighted", "factor is None or None in weights.values()", "False", 'unit/release/test_quotients.py', 'no_quotient'),
    Mutant("bars leave the range", "release/error_bars/ends.py", "hull_of", "np.fmax(np.fmin.reduce([low for low, _ in ends]), within[0])", "np.fmin.reduce([low for low, _ in ends])", 'unit/release/test_bars.py', 'a_mean_is_held and join'),
    Mutant("no draw is lost", "release/error_bars/ends.py", "percentiles", "np.isnan(cells)", "np.zeros_like(cells, dtype=bool)", 'unit/release/test_bars.py', 'said_to_be_unknown'),
    Mutant("negative counts stay", "release/remainder.py", "ReleasedBlock.with_counts_from_zero", "name in self.groups.counts", "False", 'unit/release/test_bars.py', 'counts_from_zero'),
    Mutant("parameters of what is not written", "engine/emit/bind_parameters.py", "_Constants.expression", "not isinstance(node, Call) or is_always_null(node)", "not isinstance(node, Call)", 'unit/engine/test_bind_parameters.py', 'values_put_back'),
    Mutant("months outside the bounds count nowhere", "pricing/rank_histograms.py", "cell_term", "call('clamp', steps, *ends)", "steps", 'answers/test_quantiles.py', 'months'),
    Mutant("quantiles of months are seconds", "pricing/rank_histograms.py", "periods", "not value.facts.type.temporal or not isinstance(value, Call)", "True", 'answers/test_quantiles.py', 'months'),
    # what has no value over results
    Mutant("casts over results keep their width", "release/total_sql.py", "_total", "node.to.copy() if days else _widest(node.to)", "node.to.copy()", 'unit/release/test_sandbox.py', 'no_value'),
    Mutant("remainders by zero are tried alone", "release/total_sql.py", "_total", "isinstance(node, (exp.Mod, exp.IntDiv))", "False", 'unit/release/test_sandbox.py', 'no_value'),
    Mutant("rehearsals leave out what has no value", "release/error_bars/answers.py", "answer", "run.in_sandbox(strict=rehearsal)", "run.in_sandbox()", 'sql/test_refused.py', 'sandbox_query or sandbox_text'),
    Mutant("days beyond the calendar are shown", "release/sandbox.py", "plain", "_within_calendar(_typed(values))", "_typed(values)", 'unit/release/test_sandbox.py', 'no_client'),
    # comparisons with a threshold
    Mutant("a threshold without noise", "noise/perturb.py", "noisy_threshold", "int(drawn[0])", "0 * int(drawn[0])", 'unit/noise/test_comparisons.py', ''),
    Mutant("compared sums without noise", "noise/perturb.py", "compare", "gate.add(name, layout.integers(table, name), law.noise, layout.groups, drawn)", "gate.add(name, layout.integers(table, name), law.noise, layout.groups, 0 * drawn)", 'unit/noise/test_comparisons.py', 'their_scale'),
    Mutant("a run costs one noise less", "privacy/mechanisms/above_threshold.py", "", "_PARTS = {True: 2, False: 3}", "_PARTS = {True: 1, False: 2}", 'unit/privacy/test_above_threshold.py', 'as_alike or both_roads or counts_the_noise'),
    Mutant("every run is monotone", "pricing/above_threshold.py", "run_law", "len(directions) == 1 and 0 not in directions", "True", 'unit/session/test_watches.py', 'of_both_signs'),
    Mutant("sums of both signs move up", "pricing/above_threshold.py", "_direction", "-1 if term.upper <= term.centre else 0", "-1 if term.upper <= term.centre else 1", 'guarantee/test_comparison_neighbours.py', 'in_its_direction'),
    Mutant("replaced units move sums in one direction", "pricing/above_threshold.py", "compared_sum", "policy.neighbours is not Neighbours.ADD_REMOVE", "False", 'guarantee/test_comparison_neighbours.py', 'replaced'),
    Mutant("a run outlives a comparison that failed", "session/watches.py", "_begun", "watch.run = None", "pass", 'unit/session/test_watches.py', 'stops_a_comparison'),
    Mutant("a run outlives what is above", "session/watches.py", "_compared", "run.left != 0", "True", 'unit/session/test_watches.py', 'pays_for'),
    Mutant("a law covers every sum", "privacy/mechanisms/above_threshold.py", "AboveThreshold.covers", "steps_moved(sensitivity, self.noise.shift) <= steps_moved(self.noise.sensitivity, self.noise.shift)", "True", 'unit/privacy/test_above_threshold.py unit/session/test_watches.py', 'covers or another_law'),
    Mutant("a child goes on with its parent's run", "session/watch_register.py", "_forget_all", "register.forget()", "pass", 'unit/session/test_watches.py', 'forked'),
    Mutant("late bars are as narrow as early ones", "privacy/mechanisms/above_threshold.py", "AboveThreshold.gap_half_width", "comparison * (comparison + 1)", "1", 'unit/privacy/test_above_threshold.py', 'bar_of_whichever'),
    Mutant("hits are not counted", "session/watches.py", "_reserve", "number <= options.hits", "True", 'unit/session/test_watches.py', 'counted_in_the_ledger'),
    # most frequent values
    Mutant("a mode's weights fall twice as fast", "privacy/mechanisms/most_frequent.py", "MostFrequent.rate", "self.epsilon_0", "2 * self.epsilon_0", 'unit/privacy/test_most_frequent.py', 'both_roads'),
    Mutant("half the rho of a mode", "privacy/mechanisms/permute_and_flip.py", "choice_loss", "range_of_a_row ** 2 * sensitivity.l2_squared / 8", "range_of_a_row ** 2 * sensitivity.l2_squared / 16", 'unit/privacy/test_most_frequent.py', 'divergences or both_roads'),
    Mutant("a mode costs its largest group alone", "privacy/mechanisms/most_frequent.py", "MostFrequent.loss", "choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)", "choice_loss(self.mechanism, self.epsilon_0 * self.sensitivity.linf / self.sensitivity.l1, self.sensitivity)", 'unit/privacy/test_most_frequent.py', 'both_roads'),
    Mutant("a mode of replaced units costs what one of added units does", "pricing/most_frequent.py", "MostFrequentPricing.planned", "sensitivity(Term('', TermKind.COUNT, None, None, 1), caps, neighbours)", "sensitivity(Term('', TermKind.COUNT, None, None, 1), caps, Neighbours.ADD_REMOVE)", 'answers/test_quantiles.py', 'charges'),
    Mutant("a unit has one row of a mode", "pricing/most_frequent.py", "MostFrequentPricing.planned", "TermKind.COUNT", "TermKind.UNITS", 'answers/test_quantiles.py', 'charges'),
    Mutant("a mode claims to be exact to half the rows", "privacy/mechanisms/most_frequent.py", "MostFrequent.count_error", "(cells - 1) * share / beta", "share / beta", 'unit/privacy/test_most_frequent.py', 'worst_case'),
    Mutant("a mode is drawn with twice the epsilon", "noise/count_choice.py", "choose_most", "exp_tables(law.rate)", "exp_tables(2 * law.rate)", 'unit/noise/test_count_choice.py', 'no_other_epsilon'),
    Mutant("an empty cell is as far as the least frequent one", "noise/count_choice.py", "choose_most", "most[between.group]", "most[between.group] - 1", 'unit/noise/test_count_choice.py', 'no_other_epsilon or 120_digits'),
    Mutant("the key of a row at the wrong end", "aggregates/mode.py", "_end.formula", "basis.end_key(key, value, measure.filter, last)", "basis.end_key(key, value, measure.filter, not last)", 'answers/test_modes.py', 'the_engines'),
    Mutant("end rows' weights fall twice as fast", "privacy/mechanisms/end_rows.py", "EndKey.rate", "self.epsilon_0 / 2", "self.epsilon_0", 'unit/privacy/test_end_rows.py', 'both_roads'),
    Mutant("half the rho of a key of end rows", "privacy/mechanisms/permute_and_flip.py", "choice_loss", "range_of_a_row ** 2 * sensitivity.l2_squared / 8", "range_of_a_row ** 2 * sensitivity.l2_squared / 16", 'unit/privacy/test_end_rows.py', 'divergences or both_roads'),
    Mutant("a key of end rows costs its largest group alone", "privacy/mechanisms/end_rows.py", "EndKey.loss", "choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)", "choice_loss(self.mechanism, self.epsilon_0 * self.sensitivity.linf / self.sensitivity.l1, self.sensitivity)", 'unit/privacy/test_end_rows.py', 'both_roads'),
    Mutant("a key of end rows of replaced units costs what one of added units does", "pricing/end_rows.py", "EndRowsPricing.planned", "sensitivity(Term('', TermKind.COUNT, None, None, 1), caps, neighbours)", "sensitivity(Term('', TermKind.COUNT, None, None, 1), caps, Neighbours.ADD_REMOVE)", 'answers/test_quantiles.py', 'charges'),
    Mutant("a unit has one of the end rows", "pricing/end_rows.py", "EndRowsPricing.planned", "TermKind.COUNT", "TermKind.UNITS", 'answers/test_quantiles.py', 'charges'),
    Mutant("a cell at the boundary of the end rows is in them whole", "privacy/mechanisms/end_rows.py", "EndKey.end_counts", "np.minimum(count, np.maximum(self.rows - nearer, 0))", "np.where(nearer < self.rows, count, 0)", 'unit/noise/test_count_choice.py', 'rows_at_an_end or fewer_rows'),
    Mutant("end rows are those of the other end", "privacy/mechanisms/end_rows.py", "EndKey.end_counts", "total - before - count if self.last else before", "before if self.last else total - before - count", 'unit/noise/test_count_choice.py', 'rows_at_an_end'),
    Mutant("a key of end rows claims half its lead", "privacy/mechanisms/end_rows.py", "EndKey.count_error", "(self.keys - 1) * share / beta", "share / beta", 'unit/privacy/test_end_rows.py', 'worst_case'),
    Mutant("keys of extreme rows lack their order", "pricing/end_rows.py", "measured", "call('add', call('mul', cell, _literal(len(keys))), place_of(key, keys))", "call('add', call('mul', place_of(key, keys), _literal(top + 1)), cell)", 'answers/test_modes.py', 'the_engines'),
    # samples
    Mutant("a value of a sample that changes is one row", "privacy/mechanisms/sample_values.py", "entries_moved", "2 * touched.l1", "touched.l1", 'unit/privacy/test_sample_values.py', 'replaced or as_hidden'),
    Mutant("a value of a sample that changes is one row in zCDP", "privacy/mechanisms/sample_values.py", "entries_moved", "4 * touched.l2_squared", "2 * touched.l2_squared", 'unit/privacy/test_sample_values.py', 'replaced'),
    Mutant("rows of nobody are in one sample", "pricing/sample_values.py", "_touched", "TermKind.UNITS if measurement.by_unit else TermKind.COUNT", "TermKind.UNITS", 'unit/privacy/test_sample_values.py', 'one_sample'),
    Mutant("samples of replaced units cost what those of added units do", "pricing/sample_values.py", "_touched", "sensitivity(Term('', kind, None, None, 1), caps, neighbours)", "sensitivity(Term('', kind, None, None, 1), caps, Neighbours.ADD_REMOVE)", 'unit/privacy/test_sample_values.py', 'one_sample'),
    Mutant("samples without a value are left out", "noise/sample_values.py", "completed", "with_rows(histograms, plan.middle, missing)", "histograms", 'unit/privacy/test_sample_values.py', 'middle'),
    Mutant("samples without a value are at the lower bound", "noise/sample_values.py", "completed", "with_rows(histograms, plan.middle, missing)", "with_rows(histograms, 0, missing)", 'unit/privacy/test_sample_values.py', 'middle'),
    Mutant("the rows of a unit are in several samples", "engine/emit/sample_values.py", "_in_samples", "dialect.sample_number(secret, [rows.unit], measurement.samples)", "dialect.sample_number(secret, ['random()'], measurement.samples)", 'answers/test_samples.py', 'disjoint'),
    Mutant("equal rows of nobody are in one sample", "engine/emit/sample_values.py", "_in_samples", "[*columns, _NUMBER]", "columns", 'answers/test_samples.py', 'equal_rows'),
    Mutant("an infinite value of a sample is at a bound", "engine/emit/sample_values.py", "sample_values", "f'CASE WHEN abs({_VALUE}) <= {dialect.constant(_LARGEST)} THEN {_VALUE} END'", "_VALUE", 'unit/engine/test_sample_statistics.py', 'infinite'),
    Mutant("sums of samples are sums of doubles", "engine/emit/sample_values.py", "_read", "f'CAST({value} AS {dialect.types[Type.INTEGER]})'", "f'CAST({value} AS DOUBLE) * 0.1 / 0.1'", 'unit/engine/test_sample_statistics.py', 'changes_a_bit'),
    Mutant("enough samples are half of enough", "privacy/mechanisms/sample_values.py", "enough_samples", "_QUARTER * law.rank_error(cells, missed)", "2 * law.rank_error(cells, missed)", 'unit/privacy/test_sample_values.py', 'enough'),
    Mutant("a sample moves the sum of all by one cell", "privacy/mechanisms/sample_values.py", "sum_moved", "steps * touched.l1", "touched.l1", 'unit/privacy/test_sample_means.py', 'another_sensitivity or follows_from'),
    Mutant("a sample moves the sum of all by one cell in zCDP", "privacy/mechanisms/sample_values.py", "sum_moved", "steps * steps * touched.l2_squared", "steps * touched.l2_squared", 'unit/privacy/test_sample_means.py', 'another_sensitivity or follows_from'),
    Mutant("noise of any sensitivity is taken for a mean", "privacy/mechanisms/sample_values.py", "NoisySampleMean.__post_init__", "self.noise.sensitivity != sum_moved(self.sensitivity, self.steps)", "False", 'unit/privacy/test_sample_means.py', 'another_sensitivity'),
    Mutant("samples without a value count as the lower bound in a mean", "noise/sample_values.py", "sample_sums", "histograms.cell - plan.middle", "histograms.cell", 'unit/privacy/test_sample_means.py', 'middle'),
    Mutant("a mean of samples has two thirds of its noise", "noise/perturb.py", "Gate.release_sample_sums", "self.add(name, Int128.from_int64(sums), law.noise, groups, drawn)", "self.add(name, Int128.from_int64(sums), law.noise, groups, np.rint(0.67 * np.asarray(drawn)).astype(np.int64))", 'unit/privacy/test_sample_means.py', 'no_other'),
    Mutant("a mean of samples leaves its bounds", "noise/sample_values.py", "released_sample_mean", "np.clip(noisy, low, high)", "noisy", 'unit/privacy/test_sample_means.py', 'bars_hold'),
    Mutant("the bar of a mean of samples is too narrow", "pricing/sample_values.py", "SampleMeanPricing.planned", "noise.half_width(float(measurement.confidence))", "0.5 * noise.half_width(float(measurement.confidence))", 'unit/privacy/test_sample_means.py', 'bars_hold'),
    Mutant("a mean of samples is that of one sample fewer", "pricing/sample_values.py", "measured_mean", "1 / samples", "1 / (samples - 1)", 'answers/test_samples.py', 'exact_mean'),
    # local sensitivity
    Mutant("smooth sensitivity looks one row too near", "noise/local_sensitivity.py", "Ranks.spread", '(distance + 1) * self.moved(rows)', 'distance * self.moved(rows) + rows // 2', 'unit/privacy/test_local_sensitivity.py', 'ranks_of_neighbours or scale_is_smooth'),
    Mutant("smooth sensitivity forgets that all rows may change", "noise/local_sensitivity.py", "largest_spread", 'weights[np.minimum(k, weights.size - 1)]', 'np.where(k < weights.size, weights[np.minimum(k, weights.size - 1)], 0)', 'unit/privacy/test_local_sensitivity.py', 'equal_rows'),
    Mutant("smooth sensitivity looks only where medians rise", "noise/local_sensitivity.py", "Ranks.widening", 'n - 2 * through', '0 * through', 'unit/privacy/test_local_sensitivity.py', 'as_each_by_itself'),
    Mutant("spreads that grow one unit late are missed", "noise/local_sensitivity.py", "Ranks.widening", '2 * through + 1 - n', '2 * through - n', 'unit/privacy/test_local_sensitivity.py', 'as_each_by_itself'),
    Mutant("a grid of one cell has no noise to draw", "noise/local_sensitivity.py", "smooth_medians", 'np.maximum(largest_spread(ranks, law), 1)', 'largest_spread(ranks, law)', 'unit/privacy/test_local_sensitivity.py', 'cannot_differ'),
    Mutant("weights of smooth sensitivity are rounded down", "privacy/mechanisms/local_sensitivity.py", "_weights", '-(-weights[-1] * (_ONE - fall) // _ONE)', 'weights[-1] * (_ONE - fall) // _ONE - 9 * (weights[-1] > 99)', 'unit/privacy/test_local_sensitivity.py', 'pays_for_each'),
    Mutant("smooth sensitivity with twice the epsilon for the shift", "privacy/mechanisms/local_sensitivity.py", "smooth_for", 'min(floor(epsilon_0 / 2 * _ONE), _MOST_ALPHA)', 'min(floor(epsilon_0 * 2 * _ONE), _MOST_ALPHA)', 'unit/privacy/test_local_sensitivity.py', 'need_no_more or pays_for_each'),
    Mutant("the fall of smooth sensitivity is not checked", "privacy/mechanisms/local_sensitivity.py", "_allowed", 'epsilon_0 - alpha + ln_lower(ratio) >= least * (ratio - 1)', 'epsilon_0 - alpha + 2 * ln_lower(ratio) >= least * (ratio - 1) / 2', 'unit/privacy/test_local_sensitivity.py', 'need_no_more or pays_for_each or known_in_ranks'),
    Mutant("smooth sensitivity costs one group", "privacy/mechanisms/local_sensitivity.py", "SmoothSensitivity.loss", 'PrivacyLoss.pure(self.epsilon_0, self.delta_0).scaled(self.sensitivity.l0)', 'PrivacyLoss.pure(self.epsilon_0, self.delta_0)', 'unit/privacy/test_local_sensitivity.py', 'pays_for_each'),
    Mutant("the threshold of lecture notes", "privacy/mechanisms/local_sensitivity.py", "propose_for", 'test.tail_point(delta_0) - 1', 'test.tail_point(delta_0) // 2', 'unit/privacy/test_local_sensitivity.py', 'lecture_notes or pays_for_each'),
    Mutant("a test costs nothing", "privacy/mechanisms/local_sensitivity.py", "ProposeTestRelease.loss", 'self.test.loss + self.noise.loss', 'self.noise.loss', 'unit/privacy/test_local_sensitivity.py', 'pays_for_each'),
    Mutant("each step of a test has the whole epsilon", "privacy/mechanisms/local_sensitivity.py", "propose_for", 'part.epsilon / (2 * groups)', 'part.epsilon / groups', 'unit/privacy/test_local_sensitivity.py', 'pays_for_each'),
    Mutant("tested means count rows for units", "noise/local_sensitivity.py", "distance", '(ranks.rows - min(least, most + 1)) // min(rows, most + 1)', 'ranks.rows - min(least, most + 1)', 'unit/privacy/test_local_sensitivity.py', 'distance_is'),
    Mutant("a mean moves with one row", "noise/local_sensitivity.py", "distance", '-(-(ranks.last << law.finer) * rows // law.bound)', '-(-(ranks.last << law.finer) // law.bound)', 'unit/privacy/test_local_sensitivity.py', 'distance_is'),
    Mutant("what was refused is shown", "noise/local_sensitivity.py", "tested_numbers", 'np.where(passed, noisy, REFUSED)', 'noisy', 'unit/privacy/test_local_sensitivity.py', 'have_their_law or without_rows'),
    Mutant("a test without noise", "noise/local_sensitivity.py", "tested_numbers", 'distance(ranks, law) + test[:ranks.groups] > law.threshold', 'distance(ranks, law) > law.threshold', 'unit/privacy/test_local_sensitivity.py', 'have_their_law'),
    Mutant("rounded noise is rounded down", "noise/rounded_laplace.py", "rounded_laplace", '(rest + whole * bounds.astype(np.int64) + numerator) // (2 * numerator)', '(rest + whole * bounds.astype(np.int64)) // (2 * numerator)', 'unit/privacy/test_local_sensitivity.py', 'rounded_noise'),
    Mutant("rests of rounded noise are uniform", "noise/rounded_laplace.py", "_kept_rests", '_survives(drawn, below, randomness)', 'np.ones(drawn.size, dtype=bool)', 'unit/privacy/test_local_sensitivity.py', 'rounded_noise'),
    Mutant("local sensitivity of a replaced unit is that of an added one", "pricing/local_sensitivity.py", "LocalNumberPricing.planned", "sensitivity(Term('', TermKind.COUNT, None, None, 1), caps, neighbours)", "sensitivity(Term('', TermKind.COUNT, None, None, 1), caps, Neighbours.ADD_REMOVE)", 'answers/test_local_sensitivity.py', 'costs_its'),
    Mutant("local sensitivity of a unit with one row", "pricing/local_sensitivity.py", "LocalNumberPricing.planned", "TermKind.COUNT", "TermKind.UNITS", 'answers/test_local_sensitivity.py', 'costs_its'),
    Mutant("numbers by local sensitivity share no delta", "pricing/local_sensitivity.py", "LocalNumberPricing.deltas", "1", "0", 'answers/test_local_sensitivity.py', 'not_passed'),
    Mutant("a refusal is the lower bound", "pricing/local_sensitivity.py", "_null", "null_if(NoisyValue(name), float(REFUSED)) * 0.0", "NoisyValue(name) * 0.0", 'answers/test_local_sensitivity.py', 'not_passed'),
    Mutant("another proposal is the same question", "reuse/measurements.py", "LocalNumberRecord.labels", "measurement.bound", "measurement.mean", 'answers/test_local_sensitivity.py', 'not_passed'),
    # estimates
    Mutant("estimates lean too far", "aggregates/estimates.py", "", "_DEVIATIONS = 1.5", "_DEVIATIONS = 4.0", 'unit/aggregates/test_estimates.py', 'lose_nothing'),
    Mutant("estimates hardly lean", "aggregates/estimates.py", "", "_DEVIATIONS = 1.5", "_DEVIATIONS = 0.2", 'unit/aggregates/test_estimates.py', 'never_more'),
    Mutant("variances are what noise makes them", "aggregates/variance.py", "_variance", "nearer(value, assumed_variance(bounds.lower, bounds.upper), noise)", "value", 'unit/aggregates/test_estimates.py', 'mostly_noise'),
    Mutant("variances that no values have", "aggregates/variance.py", "_variance", "(inside - lower) * (-inside + upper)", "(upper - lower) * (upper - lower) / 4", 'unit/aggregates/test_estimates.py', 'no_values'),
    Mutant("variances never give way", "aggregates/regression.py", "_shrunk", "Deviation(column.squares) / rows", "Deviation(column.squares) / rows * 1e-9", 'unit/aggregates/test_estimates.py', 'explode'),
    Mutant("assumed rows at the upper bound", "aggregates/estimates.py", "assumed_mean", "float((middle + nearest) / 2)", "float(upper)", 'unit/aggregates/test_estimates.py', 'never_more or assumed'),
    Mutant("bars about the estimate", "release/error_bars/ends.py", "Interval.around_displayed", "np.minimum(self.low, low)", "low", 'unit/release/test_estimates_shown.py', 'holds_as_often'),
    Mutant("the sandbox shows plain ratios", "release/remainder.py", "ReleasedBlock.measures", "columns.get(name, tree)", "tree", 'unit/release/test_estimates_shown.py', 'every_road'),
    # quantiles
    Mutant("permute-and-flip at the price of a bounded range", "privacy/mechanisms/permute_and_flip.py", "choice_loss", "mechanism == EXPONENTIAL", "mechanism in CHOICE_MECHANISMS", 'unit/privacy/test_permute_and_flip.py', 'as_alike or groups_cost'),
    Mutant("permute-and-flip in zCDP", "privacy/mechanisms/permute_and_flip.py", "mechanism_for", "EXPONENTIAL if part.epsilon is None else PERMUTE_AND_FLIP", "PERMUTE_AND_FLIP", 'unit/privacy/test_permute_and_flip.py', 'a_part_of_epsilon'),
    Mutant("a far cell is chosen a quarter as often", "privacy/mechanisms/permute_and_flip.py", "share_of_weights", "Fraction(1, 2)", "Fraction(1, 8)", 'unit/privacy/test_permute_and_flip.py', 'worst_case'),
    Mutant("coins without their last bits", "noise/coin_choice.py", "_single_heads", "shows = begins < low", "shows = begins >> np.uint64(54) <= low >> np.uint64(54)", 'unit/noise/test_coin_choice.py', 'single_coins'),
    Mutant("coins of a run have the other bit", "noise/coin_choice.py", "_heads", "np.where(next_is_one, ones, left - ones)", "np.where(next_is_one, left - ones, ones)", 'unit/noise/test_coin_choice.py', 'read_together or binomial'),
    Mutant("spare bits of a word are counted", "noise/coin_choice.py", "_ones", "bits[ends - 1] >>= spare", "pass", 'unit/noise/test_coin_choice.py', 'read_together or binomial'),
    Mutant("cells far away are never chosen", "noise/coin_choice.py", "flipped", "begins > np.uint64(_WORD - cells)", "begins > np.uint64(_WORD)", 'unit/noise/test_coin_choice.py', 'far_away'),
    Mutant("coins far away at twice their chance", "noise/coin_choice.py", "_far_heads", "EXACT_BITS - _FAR_BITS", "EXACT_BITS - _FAR_BITS - 1", 'unit/noise/test_coin_choice.py', 'far_away'),
    Mutant("the first cell with heads", "noise/coin_choice.py", "flipped", "uniform_below(total, draws, randomness)", "0 * uniform_below(total, draws, randomness)", 'unit/noise/test_coin_choice.py', 'have_their_chances'),
    Mutant("a quantile's weights fall twice as fast", "privacy/mechanisms/exponential.py", "Choice.rate", "2 * self.most_move * self.slices", "self.most_move * self.slices", 'unit/privacy/test_exponential.py', 'as_alike or part_of_the_budget'),
    Mutant("a quantile moves like the nearer end", "privacy/mechanisms/exponential.py", "Choice.most_move", "max(self.quantile, 1 - self.quantile)", "min(self.quantile, 1 - self.quantile) or Fraction(1)", 'unit/privacy/test_exponential.py', 'as_alike or many_times'),
    Mutant("half the rho of a quantile", "privacy/mechanisms/permute_and_flip.py", "choice_loss", "range_of_a_row ** 2 * sensitivity.l2_squared / 8", "range_of_a_row ** 2 * sensitivity.l2_squared / 16", 'unit/privacy/test_exponential.py', 'divergences or part_of_the_budget'),
    Mutant("a quantile costs its largest group alone", "privacy/mechanisms/exponential.py", "epsilon_of_a_row", "sensitivity.l1", "sensitivity.linf", 'unit/privacy/test_exponential.py', 'part_of_the_budget'),
    Mutant("the smallest value is that of rank 0", "privacy/mechanisms/exponential.py", "Choice.targets", "2 * self.rank - 1", "0", 'unit/privacy/test_exponential.py', 'targets or smallest'),
    Mutant("a level of quantiles costs nothing", "privacy/mechanisms/rank_histogram.py", "RankHistogramPlan.charged", "sorted({choice.search.level for choice in self.quantiles})", "sorted({choice.search.level for choice in self.quantiles})[:1]", 'unit/noise/test_recursion.py', 'joint or charged or costs'),
    Mutant("quantiles of one level look at all rows", "noise/rank_histograms.py", "chosen_quantiles", "between(histograms, low, high)", "histograms", 'unit/noise/test_recursion.py', 'all_places or bend'),
    Mutant("a place belongs to both sides", "noise/rank_histograms.py", "between", "np.minimum(histograms.cell + width, high[of_span])", "np.minimum(histograms.cell + width, high[of_span] + 1)", 'unit/noise/test_recursion.py', 'all_places or between'),
    Mutant("a slice of a row is a row", "privacy/mechanisms/exponential.py", "Choice.rate", "2 * self.most_move * self.slices", "2 * self.most_move", 'unit/noise/test_recursion.py', 'all_places'),
    Mutant("two choices from one part of the data", "privacy/mechanisms/rank_histogram.py", "RankHistogramPlan.__post_init__", "same != [search]", "False", 'unit/noise/test_recursion.py', 'never_look'),
    Mutant("near spans are not taken apart", "noise/rank_choice.py", "_near_spans", "through[:-1] - target_ranks <= farthest", "through[:-1] - target_ranks < -farthest", 'unit/noise/test_recursion.py', 'spans_are'),
    Mutant("ends of quantiles cost nothing", "privacy/mechanisms/rank_histogram.py", "RankHistogramPlan.charged", "(*levels, *(end.law for end in self.ends))", "tuple(levels)", 'unit/noise/test_quantile_bars.py', 'costs'),
    Mutant("ends of quantiles are a quarter as far", "privacy/mechanisms/exponential.py", "end_for", "ln_upper(max(Fraction(1), share_of_weights(mechanism) * cells / missed))", "ln_upper(max(Fraction(1), share_of_weights(mechanism) * cells / missed)) / 4", 'unit/noise/test_quantile_bars.py', 'worst_case'),
    Mutant("small groups have no rows beside their own", "noise/rank_histograms.py", "padded", "abs(padding)", "1", 'unit/noise/test_quantile_bars.py', 'no_ones or as_often'),
    Mutant("a unit has one row of a quantile", "pricing/rank_histograms.py", "RankHistogramPricing.moved", "TermKind.COUNT", "TermKind.UNITS", 'answers/test_quantiles.py', 'charges'),
    Mutant("quantiles are not charged", "pricing/pricing.py", "_price_block", "loss + shares.accountant.charge(law.loss, shares.delta)", "loss", 'answers/test_quantiles.py', 'charged_once'),
    Mutant("quantiles have a whole budget each", "pricing/pricing.py", "_Shares.__init__", "measured + apart + numbers", "measured + apart", 'answers/test_quantiles.py', 'charged_once'),
    Mutant("quantiles of groups that are not shown", "noise/rank_histograms.py", "_numbers", "nowhere |= places.is_null().to_numpy(zero_copy_only=False)", "nowhere &= places.is_null().to_numpy(zero_copy_only=False)", 'unit/noise/test_rank_histograms.py', 'order_of_cells or leaves_out'),
    Mutant("quantiles claim to be exact", "release/error_bars/lineage.py", "lineage", "Level.CHOSEN if name in groups.chosen else Level.NOISE", "Level.NOISE", 'answers/test_quantiles.py', 'no_error_is_claimed'),
    # PostgreSQL
    Mutant("clipped where rows may change between two readings", "engine/emit/emitter.py", "Emitter.block", "self.dialect.require_clipping()", "pass", CLIPPING, 'refuses_before_the_charge'),
    Mutant("PostgreSQL: texts under the collation of their column", "engine/postgresql/literals.py", "binary", "f'({text} COLLATE \"C\")'", "f'({text})'", 'unit/engine/test_postgresql_engine.py', 'ordered_by_code_point'),
    Mutant("PostgreSQL: rows are ordered by their key alone", "engine/postgresql/dialect.py", "PostgreSQLDialect.keyed_order", "[literals.constant(key), *content]", "[literals.constant(key)]", 'unit/engine/test_postgresql_engine.py', 'change_no_meaning'),
    Mutant("PostgreSQL: transactions may write", "engine/postgresql/connections.py", "", "_BEGIN = f'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {MEANING}'", "_BEGIN = f'BEGIN ISOLATION LEVEL REPEATABLE READ; {MEANING}'", 'unit/engine/test_postgresql_engine.py', 'read_only_snapshots'),
    Mutant("PostgreSQL: functions of the role's search path", "engine/postgresql/connections.py", "", "MEANING = \"SET LOCAL search_path TO pg_catalog; SET LOCAL TimeZone TO 'UTC'; SET LOCAL DateStyle TO 'ISO, YMD'; SET LOCAL IntervalStyle TO 'postgres'; SET LOCAL extra_float_digits TO 1; SET LOCAL bytea_output TO 'hex'; SET LOCAL standard_conforming_strings TO on; SET LOCAL transform_null_equals TO off; SET LOCAL client_encoding TO 'UTF8'; SET LOCAL statement_timeout TO {milliseconds}\"", "MEANING = \"SET LOCAL TimeZone TO 'UTC'; SET LOCAL DateStyle TO 'ISO, YMD'; SET LOCAL IntervalStyle TO 'postgres'; SET LOCAL extra_float_digits TO 1; SET LOCAL bytea_output TO 'hex'; SET LOCAL standard_conforming_strings TO on; SET LOCAL transform_null_equals TO off; SET LOCAL client_encoding TO 'UTF8'; SET LOCAL statement_timeout TO {milliseconds}\"", 'unit/engine/test_postgresql_engine.py', 'change_no_meaning'),
    Mutant("PostgreSQL: copies hold all rows of a unit", "engine/postgresql/stored_views.py", "_rows", "view.within_max_rows(view.rows, key, (unit,))", "view.rows", 'unit/engine/test_prepared_on_postgresql.py', 'same_with'),
    Mutant("PostgreSQL: copies keep other rows than questions", "engine/postgresql/stored_views.py", "ServerViews._fill", "_rows(view, key)", "_rows(view, _NO_KEY)", 'unit/engine/test_prepared_on_postgresql.py', 'same_with or definitions'),
    Mutant("PostgreSQL: a copy stands for every version of the data", "engine/served_tables.py", "ServedTables.data_version", "f'declared:{declared}'", "'declared'", 'unit/engine/test_prepared_on_postgresql.py', 'one_version'),
    Mutant("EXPLAIN tells when a server has prepared", "engine/contribution_index.py", "ContributionIndex.notes", "self._policy.prepare.automatic", "False", 'unit/engine/test_prepared_on_postgresql.py', 'says_nothing'),
    Mutant("PostgreSQL: products overflow", "engine/postgresql/reals.py", "product_of", "f'abs((a * {_power(-512)}) * (b * {_power(-512)})) >= {_ONE}'", "f'abs((a * {_power(-512)}) * (b * {_power(-512)})) > {_ONE}'", 'unit/engine/test_postgresql_functions.py', 'ieee_754'),
    Mutant("PostgreSQL: dates before the year 1", "engine/postgresql/literals.py", "in_calendar", "f'(CASE WHEN {value} BETWEEN {constant(first)} AND {constant(last)} THEN {value} END)'", "f'(CASE WHEN {value} BETWEEN {constant(first)} AND {constant(last)} THEN {value} ELSE {value} END)'", 'unit/engine/test_postgresql_engine.py', 'read_in_the_type'),
    Mutant("PostgreSQL: NaN counts as the upper bound", "engine/postgresql/dialect.py", "PostgreSQLDialect.moved_to_grid", "f'(CASE WHEN v < {literals.constant(lower)} THEN {ends[0]} WHEN v <= {literals.constant(upper)} THEN {scaled} WHEN v < {literals.NAN} THEN {ends[1]} ELSE v END)'", "f'(CASE WHEN v < {literals.constant(lower)} THEN {ends[0]} WHEN v <= {literals.constant(upper)} THEN {scaled} WHEN v <= {literals.NAN} THEN {ends[1]} ELSE v END)'", 'unit/engine/test_engines_agree.py', 'aggregates'),
    Mutant("PostgreSQL: a text is charged before it is planned", "session/pipeline.py", "MissingBlocks.__init__", "context.engine.rehearse(request.stages.with_results(query, waiting))", "pass", 'unit/engine/test_postgresql_engine.py', 'does_not_plan'),
    Mutant("noise counts as people", "tuning/choices.py", "least_count", "CHANCE / bins", "0.05 / bins", 'unit/tuning/test_tuning.py', 'noise_alone'),
    Mutant("targets of terms", "planning/planner.py", "Planner.priced", "price(blocks, options, self.policy, self.accountant, widest)", "price(blocks, options, self.policy, self.accountant)", 'unit/planning/test_expected_bars.py', 'target_is_that_of'),
    Mutant("a renamed column is read from another", "engine/csv_files.py", "CsvFiles._layout", "tuple((folded.index(in_header.lower()) for in_header in self._columns.values()))", "tuple((folded.index(column.lower()) if column in folded else folded.index(in_header.lower()) for column, in_header in self._columns.items()))", "unit/engine/test_sources.py", "name_that_its_header_has"),
    # budget windows
    Mutant("a clock behind opens an earlier window", "ledger/windows.py", "require_open", "latest is not None and latest > start", "latest is None", "unit/ledger/test_windows.py", "clock_that_is_behind and sqlite"),
    Mutant("an earlier window stays open", "ledger/windows.py", "open_in", "_limit(writer, witness, account, account.spent)", "pass", "unit/ledger/test_windows.py", "clock_that_is_behind and sqlite"),
    Mutant("the data set carries over what a window left", "ledger/windows.py", "_dataset_limits", "added(spent, account.remaining)", "added(spent, account.limits)", "unit/ledger/test_windows.py", "limit_of_a_window_changes and sqlite"),
    Mutant("the limit of all windows is not kept", "ledger/windows.py", "_dataset_limits", "window.in_all is None", "True", "unit/ledger/test_windows.py", "lifetime_limit_ends and sqlite"),
    Mutant("a charge leaves the window out", "session/budget.py", "scopes_of", "(in_all, BudgetScope(windows.window_scope(start), dataset, budget.every), *in_window)", "(in_all, *in_window)", "unit/session/test_windows.py", "lifetime_ends"),
    Mutant("a restored ledger opens a spent window anew", "ledger/backup.py", "restore", "open_in(writer, witness, accounts, window)", "pass", "unit/ledger/test_windows.py", "restored"),
    Mutant("a year has eleven months", "privacy/accounting/windows.py", "windows_in_a_year", "_CALENDAR[every][1]", "_CALENDAR[every][1] - 1", "unit/session/test_windows.py", "at_every_door"),
    Mutant("a sum of budgets has the delta of one", "privacy/accounting/zcdp.py", "Zcdp.repeated", "times * self.delta_conversion", "self.delta_conversion", "unit/privacy/test_accounting.py", "several_budgets"),
    Mutant("a backup holds whatever was seen", "ledger/backup.py", "_holds", "digest is not None and same(digest, last_head.digest)", "True", "unit/ledger/test_backup.py"),
    # exports of randomised rows
    Mutant("the ratio of a law is rounded up", "privacy/mechanisms/local_randomizers.py", "ratio_of", "floor(exp_lower(epsilon) * 2**RATIO_BITS)", "floor(exp_lower(epsilon) * 2**RATIO_BITS) + 1", 'unit/privacy/test_local_randomizers.py', 'tells_more'),
    Mutant("half of an export's epsilon is added", "privacy/mechanisms/local_randomizers.py", "_whole_weight", "int(ratio * 2**RATIO_BITS)", "int(ratio * ratio * 2**RATIO_BITS)", 'unit/privacy/test_local_randomizers.py', 'tells_more'),
    Mutant("a second law that trusts the first", "pricing/row_export.py", "_require_ratio", "max(column.law.recomputed_ratios()) > exp_lower(column.law.epsilon)", "False", 'unit/session/test_row_export.py', 'more_than_it_costs'),
    Mutant("rows of a unit cost one row", "pricing/row_export.py", "plan_export", "loss + column.law.loss.scaled(rows)", "loss + column.law.loss", 'unit/session/test_row_export.py', 'five_times'),
    Mutant("a unit moves the number of rows by one", "pricing/row_export.py", "_count_noise", "Sensitivity(1, rows, rows * rows, rows)", "Sensitivity(1, 1, 1, 1)", 'unit/session/test_row_export.py', 'five_times'),
    Mutant("the number of rows is exact for all", "pricing/row_export.py", "_is_count_public", "policy.privacy_unit is None and policy.neighbours is Neighbours.CHANGE_ONE", "policy.neighbours is Neighbours.CHANGE_ONE", 'unit/session/test_row_export.py', 'replacing_a_unit'),
    Mutant("rows that are left out are counted by nobody", "pricing/row_export.py", "_is_count_public", "replaced and isinstance(source, Scan) and all(map(_keeps_all, columns))", "replaced and isinstance(source, Scan)", 'unit/session/test_row_export.py', 'equally_many'),
    Mutant("a row filter leaves the number of rows as it is", "pricing/row_export.py", "_is_count_public", "replaced and isinstance(source, Scan) and all(map(_keeps_all, columns))", "replaced and all(map(_keeps_all, columns))", 'unit/session/test_row_export.py', 'equally_many'),
    Mutant("an export forgets the row filter", "pricing/row_export.py", "_source", "filtered(scan, condition)", "scan", 'unit/session/test_row_export.py', 'exists_for_an_analyst'),
    Mutant("columns have the whole epsilon each", "pricing/row_export.py", "plan_export", "epsilon / len(names)", "epsilon", 'unit/session/test_row_export.py', 'share_the_epsilon'),
    Mutant("the key of a unit is exported", "pricing/row_export.py", "_names", "column.name in keys", "False", 'unit/session/test_row_export.py', 'refused_uncharged'),
    Mutant("a window one output to the left", "noise/local_randomizers.py", "in_windows", "chosen >= starts", "chosen > starts", 'unit/noise/test_local_randomizers.py', 'categories_follow or numbers_follow'),
    Mutant("small numbers come more often", "noise/local_randomizers.py", "below", "(drawn >= end).nonzero()[0]", "(drawn >= _TOP).nonzero()[0]", 'unit/noise/test_local_randomizers.py', 'below_a_bound'),
    Mutant("a set without its own value has it", "noise/local_randomizers.py", "_subsets", "moved[rows, codes] = included", "moved[rows, codes] = True", 'unit/noise/test_local_randomizers.py', 'categories_follow'),
    Mutant("numbers are rounded down", "noise/local_randomizers.py", "rounded_at_random", "whole + (below(values.size, most, randomness) < rest)", "whole", 'unit/noise/test_local_randomizers.py', 'rounding_at_random'),
    Mutant("an order of equal words", "noise/local_randomizers.py", "random_order", "(ascending[1:] == ascending[:-1]).any()", "False", 'unit/noise/test_local_randomizers.py', 'equal_words'),
    Mutant("padding is the first value", "noise/randomised_rows.py", "randomise_rows", "outputs[padding] = padding_categories(int(padding.sum()), law, randomness)", "pass", 'unit/session/test_row_export.py', 'padding_rows_look or neighbours_differ'),
    Mutant("rows are written in the engine's order", "noise/randomised_rows.py", "randomise_rows", "random_order(max(written, rows.count), randomness)", "np.arange(max(written, rows.count))", 'unit/session/test_row_export.py', 'in_another_order_each_time'),
    Mutant("the number of rows is written as it is", "noise/perturb.py", "Gate.count_rows", "max(0, exact + int(drawn[0]))", "exact", 'unit/session/test_row_export.py', 'noise_of_the_count'),
    Mutant("a written file appears before its time", "session/row_export.py", "RowExport._write", "file.write(rows)", "(file.write(rows), file.publish())", 'unit/session/test_row_export.py', 'at_the_response_time'),
    Mutant("an export is charged after data is read", "session/row_export.py", "RowExport._write", "context.engine.rehearse(query)", "context.engine.run(query)", 'unit/session/test_row_export.py', 'before_data_is_read'),
    Mutant("IS NOT NULL as IS NULL", "exports/question.py", "_condition", "node.args.get('negate')", "False", 'unit/exports/test_estimates.py', 'bars_hold'),
    Mutant("bars of counts forget the other rows", "exports/estimates.py", "_Estimator._half", "self._z * sqrt(max(variance, 0.0)) + max(step, float(np.ptp(parts))) / 2", "0.7 * self._z * sqrt(max(variance, 0.0))", 'unit/exports/test_estimates.py', 'bars_hold'),
    Mutant("bars forget padding rows", "exports/estimates.py", "_Estimator.__init__", "described.rows_missed(1 - wrong * _COUNT_PART) if noisy else 0.0", "0.0", 'unit/exports/test_estimates.py', 'bars_hold'),
)  # fmt: skip
