"""Sentences about options, contribution bounds, advice on them, and prices."""

from __future__ import annotations

from dpsql.errors.exceptions import InternalError, register

register(
    "public_grid",
    "54000",
    "the public keys have {size} combinations (at most {most})",
    "group by fewer or coarser keys, for example date_trunc('month', day)",
)
register(
    "selection_needs_delta",
    "ZP013",
    "grouping by {keys} needs delta (partition selection), and none is allowed",
    "group by columns with a domain, or ask the owner for per_query.delta",
)
register(
    "mechanism_needs_delta",
    "ZP014",
    "the {mechanism} mechanism needs delta under a pure accountant, and none is allowed",
    "SET dp.mechanism = 'laplace', or ask the owner for per_query.delta",
)
register(
    "shared_noise_keys",
    "0A000",
    "dp.mechanism = {mechanism} is for public keys alone, and {keys} is private",
    "group by columns with a domain, or SET dp.mechanism = 'auto'",
)
register(
    "local_measure",
    "0A000",
    "dp.mechanism = {mechanism} is for {may} alone",
    "SET dp.mechanism = 'auto' for other questions",
)
register(
    "local_delta",
    "ZP014",
    "dp.mechanism = {mechanism} needs delta, and none is allowed",
    "SET dp.mechanism = 'auto', or ask the owner for per_query.delta",
)
register(
    "local_bars",
    "0A000",
    "the noise of smooth_sensitivity has a secret scale, so that no error bar can be shown",
    "SET dp.mechanism = 'auto' for a median with an error bar, or RESET dp.quantile_bars",
)
register(
    "local_proposal",
    "22023",
    "dp.mechanism = propose_test_release tests a sensitivity that the question proposes, and none is proposed",
    "SET dp.proposed_sensitivity to how far one person may move the answer at most, in its unit",
)
register(
    "local_bound",
    "22023",
    "dp.proposed_sensitivity = {bound} cannot be tested here: it must be {least} at least and below {most}",
    "propose how far one person may move the answer at most, in its unit",
)
register(
    "local_epsilon",
    "22023",
    "epsilon is too small for dp.mechanism = {mechanism}",
    "ask with more epsilon, or SET dp.mechanism = 'auto'",
)
register("target_error", "22023", "dp.target_error cannot be reached: {reason}", "{way}")
register(
    "target_error_choice",
    "0A000",
    "dp.target_error does not apply to medians of samples, keys of extreme rows and noise by local sensitivity: "
    "how far off they may be follows from the data",
    "SET dp.epsilon instead; EXPLAIN shows what is known of their error",
)
register(
    "many_cells",
    "54000",
    "a quantile for each of {groups} public groups would need too many cells (at least {least} each, at most {most} in all)",
    "group by fewer or coarser keys, or select fewer of them in WHERE",
)
register(
    "many_samples",
    "54000",
    "{samples} samples in each of {groups} groups are too many values (at most {most} samples in so many groups)",
    "name fewer samples as the last argument, or group by fewer keys",
)
register("analyst_unknown", "28000", "the policy names no analyst {name}", "the owner adds analysts to the policy")
register("project_unknown", "28000", "the policy names no project {name}", "the owner adds projects to the policy")
register(
    "project_fixed",
    "42501",
    "this session was opened for project {name}",
    "open another session to ask for another one",
)
register(
    "price_disagrees",
    "XX000",
    "two computations of the price disagree; nothing was run",
    "report this as a bug",
    InternalError,
)
register("internal", "XX000", "an internal check of dpsql failed ({what})", "report this as a bug", InternalError)
register("option_unknown", "42704", "there is no option {name}", "")
register("option_value", "22023", "{value} is not a value of {name}: {wanted}", "")
register(
    "clip_rows",
    "22023",
    "{name} clips the total of one privacy unit, and here every row is its own unit",
    "bound the values themselves: clamp(x, lower, upper)",
)
register(
    "values_rows",
    "22023",
    "dp.max_values bounds the different values of one privacy unit, and here every row is its own unit",
    "leave it out: a row brings one value at most, and COUNT(DISTINCT x) allows for no more",
)
register(
    "tune_blocks",
    "0A000",
    "this question measures {count} private blocks; one is tuned at a time",
    "tune each aggregation over protected tables by itself",
)
register(
    "tune_rows",
    "0A000",
    "under row privacy every row is its own unit: there is no contribution bound to tune",
    "bound the values themselves: clamp(x, lower, upper)",
)
register(
    "tune_results",
    "0A000",
    "this question reads a released result in its aggregation, which is not tuned",
    "tune the aggregation without it: write a value in its place, or leave the condition out",
)
register(
    "tune_distinct",
    "0A000",
    "rows of SELECT DISTINCT belong to no privacy unit: there is no bound on rows of a unit to tune",
    "bound the rows below: tune the question without DISTINCT",
)
register(
    "tune_nothing",
    "0A000",
    "one privacy unit has one row here: there is no contribution bound to tune",
    "",
)
register(
    "max_total_small",
    "22023",
    "max_total {total} cannot be distinguished from 0 next to {rows} rows of up to {most} that one unit may have",
    "ask for more, or clamp the values more closely: clamp(x, lower, upper)",
)
register(
    "sum_out_of_range",
    "22003",
    "the values may be so large that their squares or products leave the range of numbers",
    "clamp the values to smaller bounds: clamp(x, lower, upper)",
)
register("option_limit", "22023", "{name} = {value} is more than the owner allows ({limit})", "ask for less")
register(
    "option_floor",
    "22023",
    "{name} = {value} is less than one question must spend ({limit})",
    "ask with more epsilon; the owner sets per_query.min_epsilon, because the time of each answer tells a little for free",
)
register("option_least", "22023", "{name} = {value} is less than the owner asks for ({limit})", "ask for more")
register(
    "min_units",
    "0A000",
    "the privacy units of each group cannot be counted here: {reason}",
    "RESET dp.min_units, where the policy has no min_units; else ask without it: for rows instead of SELECT DISTINCT, or with "
    "dp.mechanism = auto",
)
register(
    "no_max_rows",
    "55000",
    "table {table} has no max_rows in the policy",
    "the owner states how many rows one unit may have",
)
register(
    "too_many_rows_per_unit",
    "ZP011",
    "one person could change {rows} rows here (at most {most})",
    "join fewer tables, or ask the owner for smaller max_rows",
)
register(
    "project_member",
    "42501",
    "{analyst} is not a member of project {name}",
    "the owner names the members of a project in the policy",
)
register(
    "watch_question",
    "0A000",
    "only one COUNT or one SUM without groups can be compared with a threshold",
    "write SELECT COUNT(*) FROM ... WHERE ..., or SELECT SUM(x) FROM ...; RESET dp.threshold for other questions",
)
register(
    "watch_option",
    "22023",
    "{name} = {value} does not go with dp.threshold: comparisons have noise of their own",
    "RESET {name}, or RESET dp.threshold",
)
register(
    "watch_units",
    "0A000",
    "what is above {threshold} may be of fewer than {least} privacy units (min_units): each adds up to {most}",
    "take {needed} or more as the threshold; one person adds least to COUNT(DISTINCT ...) of the privacy unit's key",
)
register(
    "watch_grids",
    "0A000",
    "sums that are rounded differently cannot be compared in one run",
    "name another dp.watch (--name, with a file of its own) for sums of another column",
)
register(
    "watch_law",
    "0A000",
    "the run under way in watch {name} has noise for other questions: one person can move this sum further, or in another "
    "direction",
    "name another dp.watch for this question, or begin with the sum that one person moves furthest",
)
register(
    "watch_over",
    "55000",
    "all {hits} runs of watch {name} have begun (a run that was interrupted counts)",
    "SET dp.hits (--hits) to a larger number, or name another dp.watch (--name); each run is charged",
)
