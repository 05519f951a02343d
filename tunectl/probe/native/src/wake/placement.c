#include "wake/placement.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/housekeeping.h"
#include "lib/output.h"
#include "lib/thread.h"

static bool is_sibling(const struct host_facts *facts, unsigned cpu, unsigned other)
{
    struct cpu_list siblings;
    if (host_siblings(&siblings, facts, cpu))
        return false;
    bool is = cpu_list_has(&siblings, other);
    cpu_list_deinit(&siblings);
    return is;
}

static bool is_online(unsigned cpu, const void *facts)
{
    return cpu_list_has(&((const struct host_facts *)facts)->online, cpu);
}

static int parse_cpu(const char **at, unsigned *cpu)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return -EINVAL;
    unsigned long value = strtoul(*at, &end, 10);
    if (value >= CPU_LIMIT)
        return -EINVAL;
    *cpu = (unsigned)value;
    *at = end;
    return 0;
}

static int parse_pair(struct placement *placement, const struct host_facts *facts, const char *text)
{
    const char *at = text;
    bool is_pair = parse_cpu(&at, &placement->sender) == 0 && *at++ == ',' && parse_cpu(&at, &placement->receiver) == 0 && !*at;
    if (!is_pair)
        return print_error(EXIT_USAGE, "--cpus %s: expected the sender's CPU and the receiver's, like 2,3", text);
    const unsigned both[] = {placement->sender, placement->receiver};
    for (size_t i = 0; i < 2; i++)
        if (!is_online(both[i], facts))
            return print_error(EXIT_USAGE, "CPU %u is not online on this host", both[i]);
    return EXIT_OK;
}

/* The nearest CPU below the last that is on another core; one on the same core, or the last itself, where there is none. */
static void choose_from(struct placement *placement, const struct host_facts *facts, const struct cpu_list *list)
{
    size_t last = list->n - 1;
    placement->receiver = list->ids[last];
    placement->sender = list->n > 1 ? list->ids[last - 1] : placement->receiver;
    for (size_t i = last; i-- > 0;) {
        if (is_sibling(facts, placement->receiver, list->ids[i]))
            continue;
        placement->sender = list->ids[i];
        return;
    }
}

static int choose(struct placement *placement, const struct host_facts *facts, const char *among)
{
    struct cpu_list all;
    struct cpu_list list;
    int rc = among ? cpu_list_parse(&all, among) : facts->isolated.n >= 2 ? 0 : host_allowed_cpus(&all);
    if (rc == -ENOMEM)
        return print_error(EXIT_FAILED, "out of memory");
    if (rc)
        return print_error(EXIT_USAGE, "--among %s is not a CPU list; write one like 2-5,8", among);
    bool is_isolated = !among && facts->isolated.n >= 2;
    rc = cpu_list_filter(&list, is_isolated ? &facts->isolated : &all, is_online, facts);
    if (!is_isolated)
        cpu_list_deinit(&all);
    if (rc)
        return print_error(EXIT_FAILED, "out of memory");
    placement->is_fallback = !among && !is_isolated;
    int status = EXIT_OK;
    if (list.n)
        choose_from(placement, facts, &list);
    else if (among)
        status = print_error(EXIT_USAGE, "none of the CPUs --among %s is online on this host", among);
    else
        status = print_error(EXIT_USAGE, "no CPU can be chosen; name two with --cpus S,R");
    cpu_list_deinit(&list);
    return status;
}

int placement_choose(struct placement *placement, const struct host_facts *facts, const char *cpus, const char *among)
{
    *placement = (struct placement){0};
    int status = cpus ? parse_pair(placement, facts, cpus) : choose(placement, facts, among);
    placement->is_same_cpu = placement->sender == placement->receiver;
    placement->is_same_core = !placement->is_same_cpu && is_sibling(facts, placement->sender, placement->receiver);
    return status;
}

int placement_leave(struct placement *placement, const struct host_facts *facts, struct cpu_list *chosen)
{
    unsigned both[] = {placement->sender, placement->receiver};
    struct cpu_list measured = {both, 2};
    if (housekeeping_move(chosen, facts, &measured))
        return print_error(EXIT_FAILED, "out of memory");
    placement->shares_main = chosen->n == 0;
    if (placement->shares_main)
        (void)thread_pin(placement->sender);
    return EXIT_OK;
}
