#include "lib/document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "lib/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

void document_write_files(struct json *j, const char *key, const struct snapshot *files)
{
    json_open(j, key, '{');
    for (const struct file *file = files->files; file < files->files + files->n; file++)
        if (file->text.length)
            json_string_n(j, file->path, file->text.bytes, file->text.length);
    json_close(j, '}');
}

void document_write_line(struct json *j, const char *key, struct text text)
{
    const char *bytes = text.bytes ? text.bytes : "";
    json_string_n(j, key, bytes, strcspn(bytes, "\n"));
    text_deinit(&text);
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

struct json document_begin(const struct command *command, const struct host_facts *facts, int64_t at_s)
{
    struct json j = {.stream = stdout};
    char schema[64];
    (void)snprintf(schema, sizeof(schema), "tunectl.probe.%s.raw/1", command->name);
    json_open(&j, NULL, '{');
    json_string(&j, "schema", schema);
    json_string(&j, "tunectl_version", TUNECTL_VERSION);
    write_host(&j, facts);
    write_at(&j, at_s);
    document_write_files(&j, "host_files", &facts->files);
    json_string(&j, "holds", command->holds);
    return j;
}

int document_end(struct json *j)
{
    json_close(j, '}');
    if (putchar('\n') == EOF || fflush(stdout) || ferror(stdout))
        return print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return EXIT_OK;
}

#if defined(__x86_64__)

/* What the processor and its hypervisor say of themselves, by CPUID leaf. Python knows where the counter's rate is in it. */
static void write_stated(struct json *j)
{
    static const unsigned leaves[] = {0, 1, 0x15, 0x40000000, 0x40000010};
    json_open(j, "cpuid", '[');
    for (size_t i = 0; i < sizeof(leaves) / sizeof(*leaves); i++) {
        unsigned eax, ebx, ecx, edx;
        __cpuid_count(leaves[i], 0, eax, ebx, ecx, edx);
        json_uints(j, NULL, (uint64_t[]){leaves[i], eax, ebx, ecx, edx}, 5);
    }
    json_close(j, ']');
}

#else

static void write_stated(struct json *j)
{
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    json_uint(j, "cntfrq", hz);
}

#endif

void document_write_clock(struct json *j, const struct clock_span *clock, const struct host_facts *facts)
{
    json_string(j, "source", TICKS_SOURCE);
    document_write_line(j, "kernel_source",
                        file_read(facts->root, "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    json_real(j, "hz", clock->rate.hz, 3);
    json_real(j, "granule_ns", (double)clock->granule_ticks * 1e9 / clock->rate.hz, 3);
    json_real(j, "drift_ppm", (clock->rate.hz / clock->initial.hz - 1.0) * 1e6, 4);
    json_real(j, "error_ppm", clock->rate.error_ppm, 4);
    json_real(j, "initial_error_ppm", clock->initial.error_ppm, 4);
    write_stated(j);
}
