-- The tables of `tunectl fleet --store clickhouse://...`. After an update of tunectl, apply this again:
--   clickhouse-client --database fleet --queries-file tunectl.sql
-- Who keeps needs SELECT, INSERT and ALTER DELETE on this database. Who asks: SELECT on it, and on nothing else;
-- neither a profile that sets `readonly`.

CREATE TABLE IF NOT EXISTS hosts_kept (
    session String,
    take String,
    moment DateTime64(6) DEFAULT now64(6),
    host String,
    rack String,
    expected Bool,
    answer String,
    problem String,
    verdict String,
    digest String,
    began String,
    selection String
)
ENGINE = MergeTree PARTITION BY session ORDER BY (session, host);
ALTER TABLE hosts_kept
    ADD COLUMN IF NOT EXISTS host String,
    ADD COLUMN IF NOT EXISTS rack String,
    ADD COLUMN IF NOT EXISTS expected Bool,
    ADD COLUMN IF NOT EXISTS answer String,
    ADD COLUMN IF NOT EXISTS problem String,
    ADD COLUMN IF NOT EXISTS verdict String,
    ADD COLUMN IF NOT EXISTS digest String,
    ADD COLUMN IF NOT EXISTS began String,
    ADD COLUMN IF NOT EXISTS selection String;

CREATE TABLE IF NOT EXISTS runs_kept (
    session String,
    take String,
    moment DateTime64(6) DEFAULT now64(6),
    host String,
    said String,
    made_at String,
    headline String,
    reasons Array(String),
    more_reasons Int64,
    unexplained Array(String),
    doubt String,
    hostname String,
    kernel String,
    boot_id String,
    machine String,
    microcode Nullable(String),
    bios Nullable(String),
    tunectl_version String,
    vendor Nullable(String),
    product Nullable(String),
    cpu_model Nullable(String),
    sockets Nullable(Int64),
    cores Nullable(Int64),
    cpus Nullable(Int64),
    numa_nodes Nullable(Int64),
    hypervisor Nullable(String),
    kernel_build String,
    kernel_config String,
    cards String,
    isolated String,
    clock String,
    duration_s Nullable(Float64),
    threshold_ns Nullable(Float64),
    measured_cpus Nullable(Int64),
    budget Nullable(String),
    max_ns Nullable(Float64),
    p99_9_ns Nullable(Float64),
    interruptions_per_s Nullable(Float64),
    stolen_ppm Nullable(Float64),
    loop_ns Nullable(Float64),
    smis_per_s Nullable(Float64),
    looser Array(String),
    waivers Int64,
    todo String,
    unconfirmed String,
    returned String,
    pattern String
)
ENGINE = MergeTree PARTITION BY session ORDER BY (session, host);
ALTER TABLE runs_kept
    ADD COLUMN IF NOT EXISTS host String,
    ADD COLUMN IF NOT EXISTS said String,
    ADD COLUMN IF NOT EXISTS made_at String,
    ADD COLUMN IF NOT EXISTS headline String,
    ADD COLUMN IF NOT EXISTS reasons Array(String),
    ADD COLUMN IF NOT EXISTS more_reasons Int64,
    ADD COLUMN IF NOT EXISTS unexplained Array(String),
    ADD COLUMN IF NOT EXISTS doubt String,
    ADD COLUMN IF NOT EXISTS hostname String,
    ADD COLUMN IF NOT EXISTS kernel String,
    ADD COLUMN IF NOT EXISTS boot_id String,
    ADD COLUMN IF NOT EXISTS machine String,
    ADD COLUMN IF NOT EXISTS microcode Nullable(String),
    ADD COLUMN IF NOT EXISTS bios Nullable(String),
    ADD COLUMN IF NOT EXISTS tunectl_version String,
    ADD COLUMN IF NOT EXISTS vendor Nullable(String),
    ADD COLUMN IF NOT EXISTS product Nullable(String),
    ADD COLUMN IF NOT EXISTS cpu_model Nullable(String),
    ADD COLUMN IF NOT EXISTS sockets Nullable(Int64),
    ADD COLUMN IF NOT EXISTS cores Nullable(Int64),
    ADD COLUMN IF NOT EXISTS cpus Nullable(Int64),
    ADD COLUMN IF NOT EXISTS numa_nodes Nullable(Int64),
    ADD COLUMN IF NOT EXISTS hypervisor Nullable(String),
    ADD COLUMN IF NOT EXISTS kernel_build String,
    ADD COLUMN IF NOT EXISTS kernel_config String,
    ADD COLUMN IF NOT EXISTS cards String,
    ADD COLUMN IF NOT EXISTS isolated String,
    ADD COLUMN IF NOT EXISTS clock String,
    ADD COLUMN IF NOT EXISTS duration_s Nullable(Float64),
    ADD COLUMN IF NOT EXISTS threshold_ns Nullable(Float64),
    ADD COLUMN IF NOT EXISTS measured_cpus Nullable(Int64),
    ADD COLUMN IF NOT EXISTS budget Nullable(String),
    ADD COLUMN IF NOT EXISTS max_ns Nullable(Float64),
    ADD COLUMN IF NOT EXISTS p99_9_ns Nullable(Float64),
    ADD COLUMN IF NOT EXISTS interruptions_per_s Nullable(Float64),
    ADD COLUMN IF NOT EXISTS stolen_ppm Nullable(Float64),
    ADD COLUMN IF NOT EXISTS loop_ns Nullable(Float64),
    ADD COLUMN IF NOT EXISTS smis_per_s Nullable(Float64),
    ADD COLUMN IF NOT EXISTS looser Array(String),
    ADD COLUMN IF NOT EXISTS waivers Int64,
    ADD COLUMN IF NOT EXISTS todo String,
    ADD COLUMN IF NOT EXISTS unconfirmed String,
    ADD COLUMN IF NOT EXISTS returned String,
    ADD COLUMN IF NOT EXISTS pattern String;

CREATE TABLE IF NOT EXISTS findings_kept (
    session String,
    take String,
    moment DateTime64(6) DEFAULT now64(6),
    host String,
    place Int64,
    knob String,
    instances String,
    outcome String,
    severity String,
    cause String,
    targets Int64,
    observed String,
    desired String,
    text String
)
ENGINE = MergeTree PARTITION BY session ORDER BY (session, knob, instances, cause, host);
ALTER TABLE findings_kept
    ADD COLUMN IF NOT EXISTS host String,
    ADD COLUMN IF NOT EXISTS place Int64,
    ADD COLUMN IF NOT EXISTS knob String,
    ADD COLUMN IF NOT EXISTS instances String,
    ADD COLUMN IF NOT EXISTS outcome String,
    ADD COLUMN IF NOT EXISTS severity String,
    ADD COLUMN IF NOT EXISTS cause String,
    ADD COLUMN IF NOT EXISTS targets Int64,
    ADD COLUMN IF NOT EXISTS observed String,
    ADD COLUMN IF NOT EXISTS desired String,
    ADD COLUMN IF NOT EXISTS text String;

CREATE TABLE IF NOT EXISTS patterns_kept (
    session String,
    take String,
    moment DateTime64(6) DEFAULT now64(6),
    pattern String,
    knob String,
    instances String,
    outcome String,
    targets Int64
)
ENGINE = MergeTree PARTITION BY session ORDER BY (session, knob, pattern);
ALTER TABLE patterns_kept
    ADD COLUMN IF NOT EXISTS pattern String,
    ADD COLUMN IF NOT EXISTS knob String,
    ADD COLUMN IF NOT EXISTS instances String,
    ADD COLUMN IF NOT EXISTS outcome String,
    ADD COLUMN IF NOT EXISTS targets Int64;

CREATE TABLE IF NOT EXISTS histograms_kept (
    session String,
    take String,
    moment DateTime64(6) DEFAULT now64(6),
    host String,
    cpu Int64,
    up_to_ns Array(Int64),
    gaps Array(Int64)
)
ENGINE = MergeTree PARTITION BY session ORDER BY (session, host, cpu);
ALTER TABLE histograms_kept
    ADD COLUMN IF NOT EXISTS host String,
    ADD COLUMN IF NOT EXISTS cpu Int64,
    ADD COLUMN IF NOT EXISTS up_to_ns Array(Int64),
    ADD COLUMN IF NOT EXISTS gaps Array(Int64);

CREATE TABLE IF NOT EXISTS events_kept (
    session String,
    take String,
    moment DateTime64(6) DEFAULT now64(6),
    host String,
    cpu Int64,
    at_ns Array(Int64),
    length_ns Array(Int64),
    cause Array(String)
)
ENGINE = MergeTree PARTITION BY session ORDER BY (session, host, cpu);
ALTER TABLE events_kept
    ADD COLUMN IF NOT EXISTS host String,
    ADD COLUMN IF NOT EXISTS cpu Int64,
    ADD COLUMN IF NOT EXISTS at_ns Array(Int64),
    ADD COLUMN IF NOT EXISTS length_ns Array(Int64),
    ADD COLUMN IF NOT EXISTS cause Array(String);

CREATE OR REPLACE VIEW takes AS
SELECT session, host, argMax(take, (moment, take)) AS take
FROM hosts_kept GROUP BY session, host;

CREATE OR REPLACE VIEW hosts AS
SELECT session, host, rack, expected, answer, problem, verdict, digest, began, selection
FROM (SELECT session, host, rack, expected, answer, problem, verdict, digest, began, selection, take FROM hosts_kept) AS kept
JOIN (SELECT session, host, take FROM takes) AS counted USING (session, host, take);

CREATE OR REPLACE VIEW runs AS
SELECT session, host, said, made_at, headline, reasons, more_reasons, unexplained, doubt, hostname, kernel, boot_id, machine, microcode, bios, tunectl_version, vendor, product, cpu_model, sockets, cores, cpus, numa_nodes, hypervisor, kernel_build, kernel_config, cards, isolated, clock, duration_s, threshold_ns, measured_cpus, budget, max_ns, p99_9_ns, interruptions_per_s, stolen_ppm, loop_ns, smis_per_s, looser, waivers, todo, unconfirmed, returned, pattern
FROM (SELECT session, host, said, made_at, headline, reasons, more_reasons, unexplained, doubt, hostname, kernel, boot_id, machine, microcode, bios, tunectl_version, vendor, product, cpu_model, sockets, cores, cpus, numa_nodes, hypervisor, kernel_build, kernel_config, cards, isolated, clock, duration_s, threshold_ns, measured_cpus, budget, max_ns, p99_9_ns, interruptions_per_s, stolen_ppm, loop_ns, smis_per_s, looser, waivers, todo, unconfirmed, returned, pattern, take FROM runs_kept) AS kept
JOIN (SELECT session, host, take FROM takes) AS counted USING (session, host, take);

CREATE OR REPLACE VIEW findings AS
SELECT session, host, place, knob, instances, outcome, severity, cause, targets, observed, desired, text
FROM (SELECT session, host, place, knob, instances, outcome, severity, cause, targets, observed, desired, text, take FROM findings_kept) AS kept
JOIN (SELECT session, host, take FROM takes) AS counted USING (session, host, take);

CREATE OR REPLACE VIEW patterns AS
SELECT DISTINCT session, pattern, knob, instances, outcome, targets
FROM (SELECT DISTINCT session, pattern, knob, instances, outcome, targets, take FROM patterns_kept) AS kept
JOIN (SELECT DISTINCT session, take FROM takes) AS counted USING (session, take);

CREATE OR REPLACE VIEW histograms AS
SELECT session, host, cpu, up_to_ns, gaps
FROM (SELECT session, host, cpu, up_to_ns, gaps, take FROM histograms_kept ARRAY JOIN up_to_ns, gaps) AS kept
JOIN (SELECT session, host, take FROM takes) AS counted USING (session, host, take);

CREATE OR REPLACE VIEW events AS
SELECT session, host, cpu, at_ns, length_ns, cause
FROM (SELECT session, host, cpu, at_ns, length_ns, cause, take FROM events_kept ARRAY JOIN at_ns, length_ns, cause) AS kept
JOIN (SELECT session, host, take FROM takes) AS counted USING (session, host, take);

CREATE OR REPLACE VIEW daily AS
SELECT hosts.session AS session, count() AS hosts, countIf(answer = 'document') AS documents,
    countIf(verdict = 'go') AS go, countIf(verdict = 'pending-reboot') AS pending_reboot,
    countIf(verdict = 'unknown') AS unknown, countIf(verdict = 'no-go') AS no_go,
    quantileExact(0.5)(max_ns) AS median_of_max_ns, max(max_ns) AS longest_ns
FROM hosts LEFT JOIN runs ON runs.session = hosts.session AND runs.host = hosts.host
GROUP BY session ORDER BY session SETTINGS join_use_nulls = 1;

-- What hosts insert themselves, as [report] of the host file can (docs/ten-thousand-hosts.md).
CREATE TABLE IF NOT EXISTS documents (
    document String CODEC(ZSTD(3)),
    day Date MATERIALIZED toDate(parseDateTimeBestEffortOrZero(JSONExtractString(document, 'at'), 'UTC')),
    host String MATERIALIZED JSONExtractString(document, 'host', 'hostname'),
    received DateTime DEFAULT now()
)
ENGINE = MergeTree PARTITION BY toDate(received) ORDER BY (day, host)
TTL toDate(received) + INTERVAL 30 DAY SETTINGS non_replicated_deduplication_window = 100000;

-- How long the rows of the tables stay:
-- ALTER TABLE hosts_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;
-- ALTER TABLE runs_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;
-- ALTER TABLE findings_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;
-- ALTER TABLE patterns_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;
-- ALTER TABLE histograms_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;
-- ALTER TABLE events_kept MODIFY TTL toDate(moment) + INTERVAL 400 DAY;
