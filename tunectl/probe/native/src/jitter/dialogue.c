#include "jitter/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/ticks.h"

/* The median length of a page fault taken on purpose; 0 where that cannot be had. */
static int64_t fault_ticks(void)
{
    enum { FAULTS = 501 };
    static int64_t taken[FAULTS];
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 0;
    for (int i = 0; i < FAULTS; i++) {
        (void)madvise((void *)(uintptr_t)page, size, MADV_DONTNEED);
        uint64_t start = ticks_now();
        *page = 1;
        taken[i] = (int64_t)(ticks_now() - start);
    }
    (void)munmap((void *)(uintptr_t)page, size);
    return ticks_sort(taken, FAULTS);
}

static void say_ready(const struct jitter_run *run)
{
    (void)fprintf(stderr, "ready %d", (int)getpid());
    for (size_t i = 0; i < run->n; i++)
        if (!worker_has_left(&run->workers[i]))
            (void)fprintf(stderr, " %u:%d", run->workers[i].cpu, (int)atomic_load(&run->workers[i].tid));
    (void)fputc('\n', stderr);
}

int dialogue_await_go(const struct jitter_run *run)
{
    char line[16];
    say_ready(run);
    while (fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "go\n") == 0)
            return EXIT_OK;
        if (strcmp(line, "fault\n") == 0) {
            (void)fault_ticks();
            (void)fprintf(stderr, "fault %" PRId64 "\n", fault_ticks());
        }
    }
    return print_error(EXIT_FAILED, "standard input ended before it said go");
}
