#include "lib/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `first-last:used/group`; a single CPU is a range of one. */
struct range {
    unsigned long first;
    unsigned long last;
    unsigned long used;
    unsigned long group;
};

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static int parse_number(const char **at, unsigned long *value)
{
    if (!isdigit((unsigned char)**at))
        return -EINVAL;
    unsigned long v = 0;
    for (; isdigit((unsigned char)**at); (*at)++) {
        v = v * 10 + (unsigned long)(**at - '0');
        if (v >= CPU_LIMIT)
            return -ERANGE;
    }
    *value = v;
    return 0;
}

static int parse_stride(const char **at, struct range *r)
{
    (*at)++;
    int rc = parse_number(at, &r->used);
    if (rc)
        return rc;
    if (**at != '/')
        return -EINVAL;
    (*at)++;
    rc = parse_number(at, &r->group);
    if (rc)
        return rc;
    return r->used == 0 || r->group == 0 || r->used > r->group ? -EINVAL : 0;
}

static int parse_range(const char **at, struct range *r)
{
    int rc = parse_number(at, &r->first);
    if (rc)
        return rc;
    *r = (struct range){r->first, r->first, 1, 1};
    if (**at != '-')
        return 0;
    (*at)++;
    rc = parse_number(at, &r->last);
    if (rc)
        return rc;
    if (r->last < r->first)
        return -EINVAL;
    return **at == ':' ? parse_stride(at, r) : 0;
}

static int parse_into(bool *wanted, const char *text)
{
    const char *at = skip_blanks(text);
    if (strncmp(at, "(null)", 6) == 0)
        return *skip_blanks(at + 6) ? -EINVAL : 0;
    if (*at == '\0')
        return 0;
    for (;;) {
        struct range r;
        at = skip_blanks(at);
        int rc = parse_range(&at, &r);
        if (rc)
            return rc;
        for (unsigned long cpu = r.first; cpu <= r.last; cpu++)
            if ((cpu - r.first) % r.group < r.used)
                wanted[cpu] = true;
        at = skip_blanks(at);
        if (*at == '\0')
            return 0;
        if (*at++ != ',')
            return -EINVAL;
    }
}

static int list_from_flags(struct cpu_list *list, const bool *wanted)
{
    size_t n = 0;
    for (size_t cpu = 0; cpu < CPU_LIMIT; cpu++)
        n += wanted[cpu];
    *list = (struct cpu_list){.ids = calloc(n + 1, sizeof(*list->ids))};
    if (!list->ids)
        return -ENOMEM;
    for (unsigned cpu = 0; cpu < CPU_LIMIT; cpu++)
        if (wanted[cpu])
            list->ids[list->n++] = cpu;
    return 0;
}

int cpu_list_parse(struct cpu_list *list, const char *text)
{
    *list = (struct cpu_list){0};
    bool *wanted = calloc(CPU_LIMIT, sizeof(*wanted));
    if (!wanted)
        return -ENOMEM;
    int rc = parse_into(wanted, text);
    if (!rc)
        rc = list_from_flags(list, wanted);
    free(wanted);
    return rc;
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

char *cpu_list_mask(const struct cpu_list *list)
{
    enum { GROUP_BITS = 32, GROUP_TEXT = 9 };
    size_t groups = list->n ? list->ids[list->n - 1] / GROUP_BITS + 1 : 1;
    char *text = malloc(groups * GROUP_TEXT + 1);
    size_t used = 0;
    for (size_t group = groups; text && group-- > 0;) {
        unsigned long bits = 0;
        for (size_t i = 0; i < list->n; i++)
            if (list->ids[i] / GROUP_BITS == group)
                bits |= 1UL << (list->ids[i] % GROUP_BITS);
        used += (size_t)snprintf(text + used, groups * GROUP_TEXT + 1 - used, used ? ",%08lx" : "%lx", bits);
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
    if (list->n == 0)
        return -EINVAL;
    size_t cpus = (size_t)list->ids[list->n - 1] + 1;
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
        return -ENOMEM;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, set);
    for (size_t i = 0; i < list->n; i++)
        CPU_SET_S(list->ids[i], bytes, set);
    int rc = sched_setaffinity(tid, bytes, set) ? -errno : 0;
    CPU_FREE(set);
    return rc;
}

int cpu_list_pin(const struct cpu_list *list)
{
    return cpu_list_pin_thread(0, list);
}
