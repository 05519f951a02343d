/*
 * What was counted of a case: its stamps and counters, and what the kernel says of the receiver's CPU and of our threads, as it
 * stands. What follows from that is Python's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/json.h"
#include "lib/pair.h"
#include "wake/exchange.h"

enum {
    OCCUPANCY_LINE = 256,
    OCCUPANCY_THREADS = 3,
};

/* One moment. */
struct occupancy {
    uint64_t ticks;
    bool has_slices;                                    /* `cpu` is of /proc/schedstat (CONFIG_SCHEDSTATS), else of /proc/stat */
    char cpu[OCCUPANCY_LINE];                             /* the line of the receiver's CPU; empty where there is none */
    char threads[OCCUPANCY_THREADS][OCCUPANCY_LINE / 4];    /* /proc/PID/task/TID/schedstat: receiver, sender, main thread */
};

/* Memory is read, and no CPU is interrupted. */
void occupancy_take(struct occupancy *account, const struct pair *pair);

/* An exchange that is over, between two accounts, as members of the open object. Returns 0 or -ENOMEM. */
int cell_write(struct json *j, const struct exchange *x, const struct occupancy *before, const struct occupancy *after);

/* The line of `cpu` in the text of one of those files, cut at its size; empty where there is none. */
void occupancy_find_cpu(char line[OCCUPANCY_LINE], const char *text, unsigned cpu);
