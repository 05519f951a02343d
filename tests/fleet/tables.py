"""The tables in ClickHouse, of the one description of them: `python -m tests.fleet.tables` writes the shipped file."""

from pathlib import Path

from tunectl.fleet.columns import CLICKHOUSE, TABLES, columns

SHIPPED = Path(__file__).parent.parent.parent / "tunectl/shipped/clickhouse/tunectl.sql"

HEAD = """\
-- The tables of `tunectl fleet --store clickhouse://...`. After an update of tunectl, apply this again:
--   clickhouse-client --database fleet --queries-file tunectl.sql
-- Who keeps needs SELECT, INSERT and ALTER DELETE on this database. Who asks: SELECT on it, and on nothing else;
-- neither a profile that sets `readonly`.
"""

TAKES = """\
SELECT session, host, argMax(take, (moment, take)) AS take
FROM hosts_kept GROUP BY session, host"""

DAILY = """\
SELECT hosts.session AS session, count() AS hosts, countIf(answer = 'document') AS documents,
    countIf(verdict = 'go') AS go, countIf(verdict = 'pending-reboot') AS pending_reboot,
    countIf(verdict = 'unknown') AS unknown, countIf(verdict = 'no-go') AS no_go,
    quantileExact(0.5)(max_ns) AS median_of_max_ns, max(max_ns) AS longest_ns
FROM hosts LEFT JOIN runs ON runs.session = hosts.session AND runs.host = hosts.host
GROUP BY session ORDER BY session SETTINGS join_use_nulls = 1"""

DOCUMENTS = """\
-- What hosts insert themselves, as [report] of the host file can (docs/ten-thousand-hosts.md).
CREATE TABLE IF NOT EXISTS documents (
    document String CODEC(ZSTD(3)),
    day Date MATERIALIZED toDate(parseDateTimeBestEffortOrZero(JSONExtractString(document, 'at'), 'UTC')),
    host String MATERIALIZED JSONExtractString(document, 'host', 'hostname'),
    received DateTime DEFAULT now()
)
ENGINE = MergeTree PARTITION BY toDate(received) ORDER BY (day, host)
TTL toDate(received) + INTERVAL 30 DAY SETTINGS non_replicated_deduplication_window = 100000;
"""


def ddl() -> str:
    """All of them: made, and brought up to date where they are there."""
    made, views = [HEAD], {"takes": TAKES}
    for table, (_, order, unnested) in TABLES.items():
        fields = [f"{name} {kind}" for name, kind in columns(table, CLICKHOUSE).items()]
        key = ", ".join(name for name in order.split(", ") if name not in unnested)
        body = ",\n    ".join(["session String", "take String", "moment DateTime64(6) DEFAULT now64(6)", *fields])
        added = ",\n    ".join(f"ADD COLUMN IF NOT EXISTS {field}" for field in fields)
        made += [
            f"CREATE TABLE IF NOT EXISTS {table}_kept (\n    {body}\n)",
            f"ENGINE = MergeTree PARTITION BY session ORDER BY (session, {key});",
            f"ALTER TABLE {table}_kept\n    {added};\n",
        ]
        named = f"session, {', '.join(columns(table))}"
        each = f" ARRAY JOIN {', '.join(unnested)}" if unnested else ""
        rows, key = f"SELECT {named}, take FROM {table}_kept{each}", "session, host, take"
        if table == "patterns":  # of no host, and each once
            rows, key = f"SELECT DISTINCT {named}, take FROM patterns_kept", "session, take"
        once = "DISTINCT " if table == "patterns" else ""
        views[table] = f"SELECT {once}{named}\nFROM ({rows}) AS kept\nJOIN (SELECT {once}{key} FROM takes) AS counted"
        views[table] += f" USING ({key})"
    made += [f"CREATE OR REPLACE VIEW {name} AS\n{query};\n" for name, query in {**views, "daily": DAILY}.items()]
    made += [DOCUMENTS, "-- How long the rows of the tables stay:"]
    made += [f"-- ALTER TABLE {table}_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;" for table in TABLES]
    return "\n".join(made) + "\n"


if __name__ == "__main__":
    SHIPPED.write_text(ddl())
