#include "lib/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
