/* What the tests of hedge and its benchmark share. */
#pragma once

#include <sys/mman.h>

#include "hedge/run.h"

/* The program keeps its memory until it ends; a test has many runs. */
static inline void hedge_free_memory(struct hedge_run *run)
{
    size_t n = run->client.n;
    (void)munmap(run->client.requests, n * sizeof(*run->client.requests));
    for (unsigned s = 0; s < SERVERS; s++) {
        (void)munmap((void *)run->client.lanes[s].copies, (n + 1) * sizeof(*run->client.lanes[s].copies));
        (void)munmap(run->servers[s].service, n * sizeof(*run->servers[s].service));
        (void)munmap((void *)run->servers[s].answers, (n + 1) * sizeof(*run->servers[s].answers));
    }
}
