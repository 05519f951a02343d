/*
 * What this host is, as far as it decides whether a measurement means anything: its files, below a root ("" for the running host),
 * and the sets of CPUs that they list. Read before the run.
 */
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

/* A file's bytes, with a NUL behind the last; none, NULL, where it could not be read. */
struct text {
    char *bytes;
    size_t length;
};

/* The whole of `root` + printf(`path`). */
struct text file_read(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));
void text_deinit(struct text *text);

/* Frees the text. The CPUs that it lists, none where it is odd. */
struct cpus cpus_of(struct text text);

/* What stands in some files at one moment. One that cannot be read is empty. */
enum { SNAPSHOT_MOST = 8 };

struct snapshot {
    size_t n;
    struct file {
        char path[64];
        struct text text;
    } files[SNAPSHOT_MOST];
};

/* Adds `root` + printf(`path`). */
void snapshot_add(struct snapshot *snapshot, const char *root, const char *path, ...) __attribute__((format(printf, 3, 4)));
void snapshot_deinit(struct snapshot *snapshot);

struct host_facts {
    const char *root;
    struct cpus online;
    struct cpus isolated;       /* isolcpus=domain, and isolated cpuset partitions (Linux 6.7) */
    struct cpus nohz_full;
    struct snapshot files;      /* as they stand */
};

/* What cannot be read stays empty. */
void host_facts_init(struct host_facts *facts, const char *root);
void host_facts_deinit(struct host_facts *facts);

/* The hardware threads of its core, itself among them. */
struct cpus host_core(const struct host_facts *facts, unsigned cpu);

/*
 * Confines the calling thread, and the threads it will start, to online CPUs that are not in `measured`, so that the probe does
 * not disturb what it measures: to those that are not isolated either, or, where there are none or a cpuset allows none, to the
 * isolated ones. Returns these; none where no such CPU is left, and the thread then stays where it was.
 */
struct cpus housekeeping_move(const struct host_facts *facts, const struct cpus *measured);
