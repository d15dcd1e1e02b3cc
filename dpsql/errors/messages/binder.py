"""Sentences about names, types and forms of queries that cannot be proven."""

from __future__ import annotations

from dpsql.errors.exceptions import register

register("clause", "0A000", "{what} is not allowed here", "`dpsql help sql` says what can be asked")
register("unknown_table", "42P01", 'relation "{name}" does not exist', "")
register("unknown_column", "42703", 'column "{name}" does not exist', "")
register(
    "aggregate_in_where",
    "42803",
    "{name} is computed from groups or windows, which WHERE comes before",
    "put the condition on an aggregate behind HAVING, that on a window behind QUALIFY",
)
register("ambiguous_column", "42702", 'column reference "{name}" is ambiguous', "write table.{name}")
register("duplicate_name", "42712", 'table name "{name}" specified more than once', "give one of them another alias")
register("alias_count", "42P10", "the alias names {got} columns, there are {want}", "name as many columns as there are")
register(
    "series",
    "0A000",
    "this series of rows is not understood: {reason}",
    "write generate_series(0, 11), or generate_series(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month'), of at most "
    "{most} rows",
)
register(
    "table_function", "0A000", "functions cannot stand in FROM", "name a table of the policy (SHOW TABLES lists them)"
)
register(
    "raw_rows",
    "ZP001",
    "this would return protected rows as they are",
    "ask for an aggregate, for example SELECT COUNT(*) ... or SELECT region, AVG(age) ... GROUP BY region",
)
register(
    "rows_clause",
    "ZP002",
    "{what} over protected rows would choose rows by looking at other people's",
    "aggregate first; {what} over the results is allowed",
)
register(
    "window_in_aggregate",
    "42803",
    "a window function cannot stand inside an aggregate",
    "put the window in a subquery: SELECT SUM(p) FROM (SELECT LAG(x) OVER (PARTITION BY unit ORDER BY t) AS p FROM ...)",
)
register(
    "window_over_rows",
    "ZP003",
    "a window function over protected rows would show one person's row beside another's",
    "write PARTITION BY the privacy unit's key in a subquery (row_number, rank, dense_rank, lag, lead, first_value, count, "
    "sum, avg, min, max), or aggregate first: windows over the results are allowed, as SUM(COUNT(*)) OVER (ORDER BY ...)",
)
register(
    "subquery_in_rows",
    "ZP004",
    "this subquery cannot stand in a condition or expression over protected rows",
    "aggregate inside it, join the tables instead, or compare the privacy unit's key of both rows in IN and EXISTS",
)
register(
    "correlated",
    "0A000",
    "this subquery depends on the outer row in a way that is not proven: {reason}",
    "compare with = in its WHERE, or group it in FROM and join the result",
)
register(
    "several_rows",
    "21000",
    "this subquery stands for one value and may return several rows",
    "aggregate without GROUP BY, or add LIMIT 1",
)
register(
    "untyped_column",
    "42804",
    "the type of column {name} of this subquery does not follow from its text",
    "write CAST(... AS type) in the subquery",
)
register(
    "nested_aggregate",
    "42803",
    "{function} cannot hold an aggregate here",
    "put the inner aggregate in a subquery in FROM",
)
register(
    "unknown_function",
    "42883",
    "function {name} does not exist or is not allowed here",
    "`dpsql help sql` lists the functions that can be used",
)
register(
    "unknown_expression",
    "0A000",
    "{what} is not allowed in expressions over protected rows",
    "`dpsql help sql` lists what can be used",
)
register("unknown_type", "42704", "type {type} is not allowed", "use integer, double, text, boolean, date or timestamp")
register(
    "unknown_aggregate",
    "42883",
    "aggregate {function} is not supported",
    "`dpsql help sql` lists the aggregates that are",
)
register("row_list", "ZP005", "{function} returns rows of people as they are", "count or average them instead")
register("wrong_arguments", "42883", "{function} {reason}", "`dpsql help sql` shows how it is called")
register("not_boolean", "42804", "a condition must be boolean, this is {type}", "compare it with something")
register("bad_number", "22003", "the number {text} is out of range", "use a smaller number")
register(
    "bad_date",
    "22007",
    "'{text}' is not a {type}",
    "write dates as '2024-01-31' and timestamps as '2024-01-31 12:00:00'",
)
register(
    "unreadable_literal",
    "22P02",
    "'{text}' is not {called}",
    "write {such}; TRY_CAST makes NULL of a text that cannot be read",
)
register(
    "bad_interval",
    "22007",
    "this interval cannot be added",
    "write INTERVAL 3 DAY (second to year, literal)",
)
register(
    "heavy_expression",
    "54001",
    "written out, this expression is too long",
    "compute its inner parts in a subquery in FROM",
)
register(
    "slow_expression",
    "54001",
    "one row could take longer than a millisecond here, so the response time could reveal one person's row",
    "{way}",
)
register(
    "many_combinations",
    "54001",
    "these rows may have {rows} combinations, more than the {most} that there is time for",
    "join on columns that tell the rows of one side apart (ON a.k = b.k), or group a side in a subquery first; of private keys "
    "1,000 groups are assumed",
)
register(
    "long_list", "54000", "the IN list has more than {most} entries", "use a range, or a public table to join with"
)
register(
    "sum_distinct",
    "ZP006",
    "{function}(DISTINCT ...) over pairs is not answered: DISTINCT is for aggregates of one value",
    "use {function} without DISTINCT, or over SELECT DISTINCT in FROM",
)
register(
    "distinct_many", "0A000", "COUNT(DISTINCT ...) takes one column", "concatenate the columns into one expression"
)
register(
    "unbounded",
    "ZP007",
    "{function}({text}) has no bounds: one person could change it without limit",
    "clamp it yourself, for example {clamped}, or ask the owner to state lower and upper in the policy",
)
register(
    "not_listed",
    "ZP007",
    "{function}({text}) would name a value of the rows, and the policy lists none",
    "{few}the owner gives the column a domain (at most {most} values); or count them: {counted}",
)
register(
    "outside_label",
    "ZP018",
    "'{label}' is the group of all values of {name} that the policy does not list, and not a value of rows",
    "keep that group with GROUP BY {name} HAVING {name} = '{label}'; its rows are those of {name} NOT IN (the listed values)",
)
register(
    "value_spelling",
    "ZP018",
    "the policy lists no value '{text}' of {name}, but '{meant}'",
    "write {name} = '{meant}'; if rows with the spelling '{text}' are meant, write {name} LIKE '{text}'",
)
register(
    "not_grouped",
    "42803",
    'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
    "add it to GROUP BY, or aggregate it",
)
register(
    "group_position", "42P10", "GROUP BY position {number} is not in the select list (1 to {most})", "name the column"
)
register("null_key", "42804", "NULL cannot be grouped by", "group by a column")
register(
    "unit_key",
    "ZP008",
    "grouping by the privacy unit would return one row for each person",
    "group by something many people share; per-person results may stand in FROM and be aggregated again",
)
register(
    "one_unit_groups",
    "ZP008",
    "no group could hold more than one person: by the policy, {names} names a single person's rows",
    "group by something many people share; results for each {names} may stand in FROM and be aggregated again",
)
register(
    "unit_expression",
    "ZP008",
    "GROUP BY something computed from the privacy unit's key: hardly any group would hold more than one person",
    "group by the key itself (in FROM, and aggregate again), or by what puts many keys together, such as key % 10; "
    "COUNT(DISTINCT key) counts people",
)
register(
    "unit_sets",
    "ZP008",
    "ROLLUP, CUBE and GROUPING SETS with the privacy unit's key would put totals of many people beside rows of one",
    "group by the key and columns alone in FROM; ROLLUP may stand in the SELECT around it",
)
register(
    "clamp_over_results",
    "42883",
    "clamp works on protected rows; over results it is not needed",
    "write least(greatest(x, lower), upper)",
)
register("join", "ZP009", "this join is not proven: {reason}", "{way}")
register("set_of_rows", "ZP010", "this set operation over protected rows is not proven: {reason}", "{way}")
register("semi_join", "ZP015", "this subquery is not proven: {reason}", "{way}")
register("many_blocks", "54000", "the statement has more than {most} private aggregations", "split it")
register("many_measures", "54000", "a SELECT has more than {most} different aggregates", "split it")
register("many_keys", "54000", "GROUP BY has more than {most} keys", "group by fewer")
register("many_columns", "54000", "more than {most} columns", "name the columns that you need")
