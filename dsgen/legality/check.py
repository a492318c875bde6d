"""Which rows of the legality table a plan breaks, for the versions of its target."""

from dsgen.facts.versions import version_key
from dsgen.legality.table import TABLE
from dsgen.legality.values import Case, Row
from dsgen.plan import Plan
from dsgen.target import Target


def broken(case: Case) -> list[Row]:
    """Every row that forbids the plan, in the table's order."""
    return broken_of(case, rows_for(case.target))


def rows_for(target: Target) -> tuple[Row, ...]:
    """The rows that are about a target's format and versions."""
    return tuple(row for row in TABLE if _applies(row, target))


def broken_of(case: Case, rows: tuple[Row, ...]) -> list[Row]:
    """Those of ``rows`` that forbid the plan: who asks for many plans of one target looks the rows up once."""
    return [row for row in rows if row.forbidden(case)]


def _applies(row: Row, target: Target) -> bool:
    if target.format not in row.formats:
        return False
    if row.since is None and row.until is None:
        return True
    version = version_key(target.version(row.library))
    return (row.since is None or version >= version_key(row.since)) and (
        row.until is None or version < version_key(row.until)
    )


def explain(row: Row, plan: Plan) -> str:
    """The row's sentence, with the plan's own values in it."""
    values = {name: getattr(plan, name) for name in (*plan.__slots__, "data_parallel", "global_batch", "shards")}
    return row.why.format(**values)
