#include "lib/host.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 64 * 1024 };

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static int parse_number(const char **at, unsigned long *value)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return -EINVAL;
    *value = strtoul(*at, &end, 10);
    *at = end;
    return *value < CPU_LIMIT ? 0 : -ERANGE;
}

/* The number behind a separator. */
static int parse_part(const char **at, unsigned long *value)
{
    (*at)++;
    return parse_number(at, value);
}

/* "first-last:used/group"; a single CPU is a range of one. */
static int parse_range(const char **at, struct cpus *cpus)
{
    unsigned long first = 0;
    unsigned long used = 1;
    unsigned long group = 1;
    int rc = parse_number(at, &first);
    unsigned long last = first;
    if (!rc && **at == '-') {
        rc = parse_part(at, &last);
        if (!rc && **at == ':') {
            rc = parse_part(at, &used);
            rc = rc ? rc : **at == '/' ? parse_part(at, &group) : -EINVAL;
        }
    }
    if (rc)
        return rc;
    if (last < first || used == 0 || used > group)
        return -EINVAL;
    for (unsigned long cpu = first; cpu <= last; cpu++)
        if ((cpu - first) % group < used)
            cpus_add(cpus, (unsigned)cpu);
    return 0;
}

int cpus_parse(struct cpus *cpus, const char *text)
{
    const char *at = skip_blanks(text);
    *cpus = (struct cpus){0};
    if (strncmp(at, "(null)", 6) == 0)
        return *skip_blanks(at + 6) ? -EINVAL : 0;
    if (*at == '\0')
        return 0;
    for (;;) {
        at = skip_blanks(at);
        int rc = parse_range(&at, cpus);
        if (rc)
            return rc;
        at = skip_blanks(at);
        if (*at == '\0')
            return 0;
        if (*at++ != ',')
            return -EINVAL;
    }
}

unsigned cpus_next(const struct cpus *cpus, unsigned from)
{
    while (from < CPU_LIMIT && !cpus_have(cpus, from))
        from++;
    return from;
}

struct cpus cpus_common(const struct cpus *cpus, const struct cpus *others)
{
    struct cpus common;
    CPU_AND_S(sizeof(common), common.sets, cpus->sets, others->sets);
    return common;
}

struct cpus cpus_without(const struct cpus *cpus, const struct cpus *others)
{
    struct cpus rest = cpus_common(cpus, others);
    CPU_XOR_S(sizeof(rest), rest.sets, rest.sets, cpus->sets);
    return rest;
}

struct cpus cpus_allowed(pid_t tid)
{
    struct cpus allowed = {0};
    (void)sched_getaffinity(tid, sizeof(allowed), allowed.sets);
    return allowed;
}

int cpus_pin(pid_t tid, const struct cpus *cpus)
{
    return sched_setaffinity(tid, sizeof(*cpus), cpus->sets) ? -errno : 0;
}

/* Files of /proc tell no size, and hold no NUL: all up to one is all. */
static struct text read_all(FILE *file)
{
    struct text text = {0};
    size_t capacity = 0;
    (void)setvbuf(file, NULL, _IOFBF, BUFFER);
    ssize_t got = getdelim(&text.bytes, &capacity, '\0', file);
    text.length = got < 0 ? 0 : (size_t)got;
    if (got < 0 && ferror(file))
        text_deinit(&text);
    else if (text.bytes)
        text.bytes[text.length] = '\0';
    return text;
}

struct text file_read(const char *root, const char *path, ...)
{
    va_list args;
    char full[PATH_MAX];
    int prefix = snprintf(full, sizeof(full), "%s", root);
    if (prefix >= PATH_MAX)
        return (struct text){0};
    va_start(args, path);
    int rest = vsnprintf(full + prefix, sizeof(full) - (size_t)prefix, path, args);
    va_end(args);
    FILE *file = prefix + rest < PATH_MAX ? fopen(full, "re") : NULL;
    if (!file)
        return (struct text){0};
    struct text text = read_all(file);
    (void)fclose(file);
    return text;
}

void text_deinit(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

struct cpus cpus_of(struct text text)
{
    struct cpus cpus = {0};
    if (text.bytes && cpus_parse(&cpus, text.bytes))
        cpus = (struct cpus){0};
    text_deinit(&text);
    return cpus;
}

void snapshot_add(struct snapshot *snapshot, const char *root, const char *path, ...)
{
    struct file *file = &snapshot->files[snapshot->n++];
    va_list args;
    va_start(args, path);
    (void)vsnprintf(file->path, sizeof(file->path), path, args);
    va_end(args);
    file->text = file_read(root, "%s", file->path);
}

void snapshot_deinit(struct snapshot *snapshot)
{
    while (snapshot->n > 0)
        text_deinit(&snapshot->files[--snapshot->n].text);
}

/* What Python reads of it: kept as it stands, and written so. Of /proc/cpuinfo the first CPU: the others are like it. */
static void take_files(struct snapshot *files, const char *root)
{
    static const char *const paths[] = {
        "/proc/cpuinfo",
        "/proc/sys/kernel/sched_rt_period_us",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/sys/class/dmi/id/product_name",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/hypervisor/type",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        snapshot_add(files, root, "%s", paths[i]);
    struct text *cpuinfo = &files->files[0].text;
    char *end = cpuinfo->bytes ? strstr(cpuinfo->bytes, "\n\n") : NULL;
    if (end)
        cpuinfo->length = (size_t)(end - cpuinfo->bytes);
}

void host_facts_init(struct host_facts *facts, const char *root)
{
    *facts = (struct host_facts){.root = root};
    facts->online = cpus_of(file_read(root, "/sys/devices/system/cpu/online"));
    /* Isolated at boot, or since Linux 6.7 by a cpuset partition; older files simply are not there. */
    facts->isolated = cpus_of(file_read(root, "/sys/devices/system/cpu/isolated"));
    struct cpus partitions = cpus_of(file_read(root, "/sys/fs/cgroup/cpuset.cpus.isolated"));
    CPU_OR_S(sizeof(partitions), facts->isolated.sets, facts->isolated.sets, partitions.sets);
    facts->nohz_full = cpus_of(file_read(root, "/sys/devices/system/cpu/nohz_full"));
    take_files(&facts->files, root);
}

void host_facts_deinit(struct host_facts *facts)
{
    snapshot_deinit(&facts->files);
}

struct cpus host_core(const struct host_facts *facts, unsigned cpu)
{
    struct cpus core = cpus_of(file_read(facts->root, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu));
    cpus_add(&core, cpu);
    return core;
}

struct cpus housekeeping_move(const struct host_facts *facts, const struct cpus *measured)
{
    /* From the best on. Whoever started this process may know of more isolated CPUs than the kernel does, and keeps it off them. */
    enum { INHERITED, NOT_ISOLATED, OTHERS, SETS };
    struct cpus sets[SETS];
    struct cpus allowed = cpus_allowed(0);
    sets[OTHERS] = cpus_without(&facts->online, measured);
    sets[NOT_ISOLATED] = cpus_without(&sets[OTHERS], &facts->isolated);
    sets[INHERITED] = cpus_common(&sets[NOT_ISOLATED], &allowed);
    for (size_t i = 0; i < SETS; i++)
        if (cpus_pin(0, &sets[i]) == 0)
            return sets[i];
    return (struct cpus){0};
}
