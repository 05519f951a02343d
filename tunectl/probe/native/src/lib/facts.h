/* What this host is, as far as it decides whether a measurement means anything. Read before the run. */
#ifndef TUNECTL_LIB_FACTS_H
#define TUNECTL_LIB_FACTS_H

#include <stdbool.h>

#include "lib/cpus.h"

struct host_facts {
    const char *root;
    struct cpu_list online;
    struct cpu_list isolated;       /* isolcpus=domain, and isolated cpuset partitions (Linux 6.7) */
    struct cpu_list nohz_full;
    bool is_virtual;
    bool has_stable_tsc;            /* constant_tsc and nonstop_tsc; always true where the counter is architected so */
    char clocksource[64];           /* empty when unknown */
    long long rt_runtime_us;        /* -1: no RT throttling */
    long long rt_period_us;
    char boot_id[64];
};

/* Returns 0 or -ENOMEM; what cannot be read stays empty. */
int host_facts_init(struct host_facts *facts, const char *root);
void host_facts_deinit(struct host_facts *facts);

/* The CPUs this process may use, whatever their number; empty when it cannot be told. Returns 0 or -ENOMEM. */
int host_allowed_cpus(struct cpu_list *allowed);

/* The SMT siblings of `cpu` without itself. Returns 0 or -ENOMEM. */
int host_siblings(struct cpu_list *siblings, const struct host_facts *facts, unsigned cpu);

#endif
