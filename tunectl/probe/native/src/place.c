#include "place.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "sysfile.h"

/* This process's CPUs, whatever their number: sched_getaffinity needs a mask of the kernel's size. */
static int allowed_cpus(struct cpu_list *list)
{
    static const char key[] = "\nCpus_allowed_list:";
    struct text text;
    *list = (struct cpu_list){0};
    if (text_read(&text, "", "/proc/self/status"))
        return 0;
    char *found = strstr(text.bytes, key);
    int rc = 0;
    if (found) {
        found += sizeof(key) - 1;
        found[strcspn(found, "\n")] = '\0';
        rc = cpu_list_parse(list, found);
    }
    text_deinit(&text);
    return rc == -ENOMEM ? rc : 0;
}

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

static int parse_pair(struct place *place, const struct host_facts *facts, const char *text)
{
    const char *at = text;
    bool is_pair = parse_cpu(&at, &place->sender) == 0 && *at++ == ',' && parse_cpu(&at, &place->receiver) == 0 && !*at;
    if (!is_pair)
        return complain(EXIT_USAGE, "--cpus %s: expected the sender's CPU and the receiver's, like 2,3", text);
    const unsigned both[] = {place->sender, place->receiver};
    for (size_t i = 0; i < 2; i++)
        if (!is_online(both[i], facts))
            return complain(EXIT_USAGE, "CPU %u is not online on this host", both[i]);
    return EXIT_OK;
}

/* The nearest CPU below the last that is on another core; one on the same core, or the last itself, where there is none. */
static void choose_from(struct place *place, const struct host_facts *facts, const struct cpu_list *list)
{
    size_t last = list->n - 1;
    place->receiver = list->ids[last];
    place->sender = list->n > 1 ? list->ids[last - 1] : place->receiver;
    for (size_t i = last; i-- > 0;) {
        if (is_sibling(facts, place->receiver, list->ids[i]))
            continue;
        place->sender = list->ids[i];
        return;
    }
}

static int choose(struct place *place, const struct host_facts *facts, const char *among)
{
    struct cpu_list all;
    struct cpu_list list;
    int rc = among ? cpu_list_parse(&all, among) : facts->isolated.n >= 2 ? 0 : allowed_cpus(&all);
    if (rc == -ENOMEM)
        return complain(EXIT_FAILED, "out of memory");
    if (rc)
        return complain(EXIT_USAGE, "--among %s is not a CPU list; write one like 2-5,8", among);
    bool is_isolated = !among && facts->isolated.n >= 2;
    rc = cpu_list_filter(&list, is_isolated ? &facts->isolated : &all, is_online, facts);
    if (!is_isolated)
        cpu_list_deinit(&all);
    if (rc)
        return complain(EXIT_FAILED, "out of memory");
    place->is_fallback = !among && !is_isolated;
    int status = EXIT_OK;
    if (list.n)
        choose_from(place, facts, &list);
    else if (among)
        status = complain(EXIT_USAGE, "none of the CPUs --among %s is online on this host", among);
    else
        status = complain(EXIT_USAGE, "no CPU can be chosen; name two with --cpus S,R");
    cpu_list_deinit(&list);
    return status;
}

int place_choose(struct place *place, const struct host_facts *facts, const char *cpus, const char *among)
{
    *place = (struct place){0};
    int status = cpus ? parse_pair(place, facts, cpus) : choose(place, facts, among);
    place->is_same_cpu = place->sender == place->receiver;
    place->is_same_core = !place->is_same_cpu && is_sibling(facts, place->sender, place->receiver);
    return status;
}

static bool is_elsewhere(unsigned cpu, const void *context)
{
    const struct place *place = context;
    return cpu != place->sender && cpu != place->receiver;
}

static bool is_not_isolated(unsigned cpu, const void *facts)
{
    return !cpu_list_has(&((const struct host_facts *)facts)->isolated, cpu);
}

/* A cpuset may allow less than the host has: the best choice that is allowed. */
int place_leave(struct place *place, const struct host_facts *facts)
{
    struct cpu_list elsewhere;
    struct cpu_list quiet;
    struct cpu_list with_sender = {&place->sender, 1};
    int rc = cpu_list_filter(&elsewhere, &facts->online, is_elsewhere, place);
    if (!rc)
        rc = cpu_list_filter(&quiet, &elsewhere, is_not_isolated, facts);
    if (rc)
        return complain(EXIT_FAILED, "out of memory");
    place->shares_main = cpu_list_pin(&quiet) && cpu_list_pin(&elsewhere);
    if (place->shares_main)
        (void)cpu_list_pin(&with_sender);
    cpu_list_deinit(&quiet);
    cpu_list_deinit(&elsewhere);
    return EXIT_OK;
}
