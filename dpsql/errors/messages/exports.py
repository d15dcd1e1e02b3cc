"""Sentences about tables of randomised rows, and estimates from them."""

from __future__ import annotations

from dpsql.errors.exceptions import InterfaceError, register

register(
    "export_public",
    "0A000",
    "table {table} is public: it is exported as it is",
    "copy it from its source",
)
register(
    "export_unit_key",
    "42501",
    "{column} leads to the privacy unit: it is never exported, not even randomised",
    "leave it out of --columns",
)
register("export_columns", "22023", "an export has 1 to {most} columns", "name them: --columns a,b")
register(
    "export_column",
    "0A000",
    "{column} cannot be randomised: {reason}",
    "the owner declares a domain of at least two values, or lower and upper, in the policy; or leave it out",
)
register(
    "export_epsilon",
    "22023",
    "--epsilon leaves {part} to each of {columns} columns, which has to be {least} to {most}",
    "export fewer columns for more each, or choose another epsilon",
)
register(
    "export_count",
    "22023",
    "the number of rows would be off by more than {most}",
    "choose a larger --count-epsilon",
)
register(
    "export_ending",
    "22023",
    "{place} ends in neither .parquet nor .csv",
    "name a file that does: its ending says how rows are written",
    InterfaceError,
)
register(
    "export_sets",
    "0A000",
    "{column} has so many values that a set of them is written for each row, which a CSV file cannot hold",
    "write a .parquet file",
    InterfaceError,
)
register("export_exists", "58P02", "{place} exists already", "name another file, or move it away", InterfaceError)
register(
    "export_file",
    "55000",
    "{place} is not a table that dpsql export has written",
    "name its .parquet file, or its .csv file with the .csv.json beside it",
    InterfaceError,
)
register(
    "estimate_sql",
    "0A000",
    "{problem} (randomised rows answer COUNT, SUM and AVG by categories)",
    "SELECT category, COUNT(*), AVG(number) FROM rows WHERE category = value GROUP BY category",
    InterfaceError,
)
register(
    "estimate_groups",
    "54000",
    "there are {groups} groups (at most {most})",
    "group by fewer columns, or name some of their values in WHERE",
    InterfaceError,
)
