/* A recorder of a test, mapped and touched by one thread. */
#pragma once

#include <sys/mman.h>

#include "lib/recorder.h"

static inline int recorder_init(struct recorder *r, size_t gaps_capacity)
{
    int rc = recorder_map(r, gaps_capacity);
    if (!rc)
        (void)recorder_touch(r);
    return rc;
}

static inline void recorder_deinit(struct recorder *r)
{
    (void)munmap(r->arena, r->arena_bytes);
}
