#include "lib/document.h"

#include <math.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>

#include "lib/ticks.h"

void document_write_files(struct json *j, const char *key, const struct snapshot *files)
{
    json_open(j, key, '{');
    for (size_t i = 0; i < files->n; i++)
        if (files->texts[i].length)
            json_string_n(j, files->paths[i], files->texts[i].bytes, files->texts[i].length);
    json_close(j, '}');
}

void document_write_line(struct json *j, const char *key, struct text text)
{
    char line[256];
    json_string(j, key, line_of(text, line, sizeof(line)));
}

void document_write_cpu(struct json *j, const char *root, unsigned cpu)
{
    document_write_line(j, "governor", file_read(root, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu));
    document_write_line(j, "core_cpus", file_read(root, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu));
}

static void write_host(struct json *j, const struct host_facts *facts)
{
    struct utsname name;
    (void)uname(&name);
    json_open(j, "host", '{');
    json_string(j, "hostname", name.nodename);
    json_string(j, "kernel", name.release);
    document_write_line(j, "boot_id", file_read(facts->root, "/proc/sys/kernel/random/boot_id"));
    json_string(j, "machine", name.machine);
    json_close(j, '}');
}

static void write_at(struct json *j, int64_t at_s)
{
    char text[32];
    struct tm utc;
    time_t seconds = (time_t)at_s;
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_string(j, "at", text);
}

void document_write_header(struct json *j, const char *schema, const struct host_facts *facts, int64_t at_s)
{
    json_string(j, "schema", schema);
    json_string(j, "tunectl_version", TUNECTL_VERSION);
    write_host(j, facts);
    write_at(j, at_s);
    document_write_files(j, "host_files", &facts->files);
}

void document_write_clock(struct json *j, const struct clock_span *clock, const struct host_facts *facts)
{
    double stated_hz = clock_stated_hz();
    json_string(j, "source", TICKS_SOURCE);
    document_write_line(j, "kernel_source",
                        file_read(facts->root, "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    json_real(j, "hz", clock->rate.hz, 3);
    json_real(j, "granule_ns", (double)clock->granule_ticks * 1e9 / clock->rate.hz, 3);
    json_real(j, "drift_ppm", (clock->rate.hz / clock->initial.hz - 1.0) * 1e6, 4);
    json_real(j, "error_ppm", clock->rate.error_ppm, 4);
    json_real(j, "initial_error_ppm", clock->initial.error_ppm, 4);
    json_real(j, "stated_hz", stated_hz > 0.0 ? stated_hz : NAN, 0);
}
