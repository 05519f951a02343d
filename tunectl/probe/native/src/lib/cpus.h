/* Lists of CPU numbers, and the kernel's text for them. */
#ifndef TUNECTL_LIB_CPUS_H
#define TUNECTL_LIB_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* No kernel has more CPUs than this (NR_CPUS is at most 8192); a list beyond it is a typing error. */
enum { CPU_LIMIT = 65536 };

/* Ascending, without repetition. */
struct cpu_list {
    unsigned *ids;
    size_t n;
};

/*
 * The kernel's input grammar: "0,2-5,8-31:1/4" (`used`/`group`), blanks around items. An empty text, blanks or "(null)" (what
 * /sys/devices/system/cpu/nohz_full can hold) is the empty list. Returns 0, -EINVAL (not a list), -ERANGE or -ENOMEM.
 */
int cpu_list_parse(struct cpu_list *list, const char *text);
void cpu_list_deinit(struct cpu_list *list);

bool cpu_list_has(const struct cpu_list *list, unsigned cpu);

/* "0,2-5" into `text`; a list too long for `size` ends in "...". Returns `text`. */
char *cpu_list_format(const struct cpu_list *list, char *text, size_t size);

/* The CPUs of `list` for which `keep(cpu, context)`. Returns 0 or -ENOMEM. */
int cpu_list_filter(struct cpu_list *out, const struct cpu_list *list, bool (*keep)(unsigned, const void *),
                    const void *context);

/* The CPUs of `list` that are not in `other`. Returns 0 or -ENOMEM. */
int cpu_list_without(struct cpu_list *out, const struct cpu_list *list, const struct cpu_list *other);

/* The CPUs that the thread may use; 0 is the calling one. Empty where it has ended. Returns 0 or -ENOMEM. */
int cpu_list_allowed(struct cpu_list *list, pid_t tid);

/* Confines the calling thread, or the thread `tid`, to `list`. Returns 0 or -errno. */
int cpu_list_pin(const struct cpu_list *list);
int cpu_list_pin_thread(pid_t tid, const struct cpu_list *list);

#endif
