/* What this host is, as far as it decides whether a measurement means anything. Read before the run. */
#ifndef TUNECTL_LIB_FACTS_H
#define TUNECTL_LIB_FACTS_H

#include "lib/cpus.h"
#include "lib/files.h"

struct host_facts {
    const char *root;
    struct cpu_list online;
    struct cpu_list isolated;       /* isolcpus=domain, and isolated cpuset partitions (Linux 6.7) */
    struct cpu_list nohz_full;
    struct snapshot files;          /* as they stand */
};

/* Returns 0 or -ENOMEM; what cannot be read stays empty. */
int host_facts_init(struct host_facts *facts, const char *root);
void host_facts_deinit(struct host_facts *facts);

/* The CPUs this process may use, whatever their number; empty when it cannot be told. Returns 0 or -ENOMEM. */
int host_allowed_cpus(struct cpu_list *allowed);

/* The SMT siblings of `cpu` without itself. Returns 0 or -ENOMEM. */
int host_siblings(struct cpu_list *siblings, const struct host_facts *facts, unsigned cpu);

#endif
