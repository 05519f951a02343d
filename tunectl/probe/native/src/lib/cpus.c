#include "lib/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A bit for every CPU that a list can name: larger than any kernel's mask, which sched_setaffinity and its like allow. */
enum { MASK_BYTES = CPU_LIMIT / 8 };

struct mask {
    cpu_set_t sets[MASK_BYTES / sizeof(cpu_set_t)];
};

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
static int parse_range(const char **at, struct mask *mask)
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
            CPU_SET_S(cpu, MASK_BYTES, mask->sets);
    return 0;
}

static int parse_into(struct mask *mask, const char *text)
{
    const char *at = skip_blanks(text);
    if (strncmp(at, "(null)", 6) == 0)
        return *skip_blanks(at + 6) ? -EINVAL : 0;
    if (*at == '\0')
        return 0;
    for (;;) {
        at = skip_blanks(at);
        int rc = parse_range(&at, mask);
        if (rc)
            return rc;
        at = skip_blanks(at);
        if (*at == '\0')
            return 0;
        if (*at++ != ',')
            return -EINVAL;
    }
}

static int list_from_mask(struct cpu_list *list, const struct mask *mask)
{
    *list = (struct cpu_list){.ids = calloc((size_t)CPU_COUNT_S(MASK_BYTES, mask->sets) + 1, sizeof(*list->ids))};
    if (!list->ids)
        return -ENOMEM;
    for (unsigned cpu = 0; cpu < CPU_LIMIT; cpu++)
        if (CPU_ISSET_S(cpu, MASK_BYTES, mask->sets))
            list->ids[list->n++] = cpu;
    return 0;
}

int cpu_list_parse(struct cpu_list *list, const char *text)
{
    struct mask mask = {0};
    *list = (struct cpu_list){0};
    int rc = parse_into(&mask, text);
    return rc ? rc : list_from_mask(list, &mask);
}

int cpu_list_allowed(struct cpu_list *list, pid_t tid)
{
    struct mask mask = {0};
    (void)sched_getaffinity(tid, MASK_BYTES, mask.sets);
    return list_from_mask(list, &mask);
}

void cpu_list_deinit(struct cpu_list *list)
{
    free(list->ids);
    *list = (struct cpu_list){0};
}

bool cpu_list_has(const struct cpu_list *list, unsigned cpu)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->ids[i] == cpu)
            return true;
    return false;
}

char *cpu_list_format(const struct cpu_list *list, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->n; i++) {
        size_t last = i;
        while (last + 1 < list->n && list->ids[last + 1] == list->ids[last] + 1)
            last++;
        char item[32];
        int length = last == i ? snprintf(item, sizeof(item), "%s%u", i ? "," : "", list->ids[i])
                               : snprintf(item, sizeof(item), "%s%u-%u", i ? "," : "", list->ids[i], list->ids[last]);
        bool is_last = last + 1 == list->n;
        if (used + (size_t)length + (is_last ? 1 : 5) > size) {
            (void)snprintf(text + used, size - used, ",...");
            return text;
        }
        memcpy(text + used, item, (size_t)length + 1);
        used += (size_t)length;
        i = last;
    }
    return text;
}

int cpu_list_filter(struct cpu_list *out, const struct cpu_list *list, bool (*keep)(unsigned, const void *),
                    const void *context)
{
    *out = (struct cpu_list){.ids = calloc(list->n + 1, sizeof(*out->ids))};
    if (!out->ids)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++)
        if (keep(list->ids[i], context))
            out->ids[out->n++] = list->ids[i];
    return 0;
}

static bool is_absent(unsigned cpu, const void *other)
{
    return !cpu_list_has(other, cpu);
}

int cpu_list_without(struct cpu_list *out, const struct cpu_list *list, const struct cpu_list *other)
{
    return cpu_list_filter(out, list, is_absent, other);
}

int cpu_list_pin_thread(pid_t tid, const struct cpu_list *list)
{
    struct mask mask = {0};
    for (size_t i = 0; i < list->n; i++)
        CPU_SET_S(list->ids[i], MASK_BYTES, mask.sets);
    return sched_setaffinity(tid, MASK_BYTES, mask.sets) ? -errno : 0;
}

int cpu_list_pin(const struct cpu_list *list)
{
    return cpu_list_pin_thread(0, list);
}
