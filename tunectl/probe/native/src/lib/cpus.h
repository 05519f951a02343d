/* Sets of CPU numbers, read from the kernel's text for them. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* No kernel has more CPUs than this (NR_CPUS is at most 8192); a list beyond it is a typing error. */
enum { CPU_LIMIT = 65536 };

/* A bit for each: a value, larger than any kernel's mask, which sched_setaffinity and its like allow. */
struct cpus {
    cpu_set_t sets[CPU_LIMIT / 8 / sizeof(cpu_set_t)];
};

/*
 * The kernel's input grammar: "0,2-5,8-31:1/4" (`used`/`group`), blanks around items. An empty text, blanks or "(null)" (what
 * /sys/devices/system/cpu/nohz_full can hold) is the empty set. Returns 0, -EINVAL (not a list) or -ERANGE.
 */
int cpus_parse(struct cpus *cpus, const char *text);

static inline void cpus_add(struct cpus *cpus, unsigned cpu)
{
    CPU_SET_S(cpu, sizeof(*cpus), cpus->sets);
}

static inline bool cpus_have(const struct cpus *cpus, unsigned cpu)
{
    return CPU_ISSET_S(cpu, sizeof(*cpus), cpus->sets);
}

static inline unsigned cpus_count(const struct cpus *cpus)
{
    return (unsigned)CPU_COUNT_S(sizeof(*cpus), cpus->sets);
}

/* The first of them that is not below `from`; CPU_LIMIT where there is none. */
unsigned cpus_next(const struct cpus *cpus, unsigned from);

struct cpus cpus_common(const struct cpus *cpus, const struct cpus *others);
struct cpus cpus_without(const struct cpus *cpus, const struct cpus *others);

/* Where the thread may run; 0 is the calling one. Empty where it has ended. */
struct cpus cpus_allowed(pid_t tid);

/* Confines the thread to them; 0 is the calling one. Returns 0 or -errno. */
int cpus_pin(pid_t tid, const struct cpus *cpus);
