/*
 * tunectl-probe, interrupted on purpose in one known way while it measures: `causes WAY CPU PAUSE_NS STAMPS jitter ...`.
 *
 * STAMPS gets a line for each interruption of CPU: the two stamps of the probe's counter between which it came, or twice a
 * stamp of the gap that it is in.
 */
#define main probe_main
#include "main.c"
#undef main

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/loop.h"
#include "lib/recorder.h"
#include "lib/ticks.h"

enum { PAGE = 4096, MOST = 65536, SAMPLED_NS = 1000000, HELD_NS = 50000 };

static unsigned cpu;
static char *page;
static int fd;
static struct gap truths[MOST];
static size_t injected;

/* -- what needs something before the first time; 0, or what failed */

static int map_page(void)
{
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED;
}

static int may_membarrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

static int open_work(void)
{
    fd = open("/proc/sys/vm/stat_refresh", O_RDONLY);
    return fd < 0;
}

static int open_sysrq(void)
{
    fd = open("/proc/sysrq-trigger", O_WRONLY);
    return fd < 0;
}

/* A software clock of the CPU: no machine lacks it. Its buffer has each overflow wake a reader. */
static int open_perf(void)
{
    struct perf_event_attr asked = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(asked),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = SAMPLED_NS,
        .disabled = 1,
        .wakeup_events = 1,
    };
    fd = (int)syscall(SYS_perf_event_open, &asked, -1, cpu, -1, 0);
    page = mmap(NULL, 2 * (size_t)PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return fd < 0 || page == MAP_FAILED;
}

/* The serial port, with its interrupt on the CPU. */
static int open_serial(void)
{
    char line[512];
    char path[64];
    unsigned irq = 0;
    FILE *interrupts = fopen("/proc/interrupts", "r");
    if (!interrupts)
        return 1;
    while (!irq && fgets(line, sizeof(line), interrupts))
        if (strstr(line, "ttyS0"))
            irq = (unsigned)strtoul(line, NULL, 10);
    (void)fclose(interrupts);
    (void)snprintf(path, sizeof(path), "/proc/irq/%u/smp_affinity_list", irq);
    FILE *affinity = irq ? fopen(path, "w") : NULL;
    if (!affinity || fprintf(affinity, "%u", cpu) < 0 || fclose(affinity))
        return 1;
    fd = open("/dev/ttyS0", O_WRONLY | O_NOCTTY);
    return fd < 0;
}

/* -- once: 0, or what failed */

static int take_barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0;
}

static int write_protect(void)
{
    return mprotect(page, PAGE, PROT_READ);
}

static int unmap(void)
{
    return munmap(page, PAGE);
}

/* The loop's own code, out of the page tables; the file's pages stay in memory. */
static int drop_code(void)
{
    char *code = (char *)((uintptr_t)loop_run_from & ~(uintptr_t)(PAGE - 1));
    size_t bytes = 3 * (size_t)PAGE;
    return munlock(code - PAGE, bytes) || madvise(code - PAGE, bytes, MADV_DONTNEED);
}

static int read_it(void)
{
    char text[64];
    return pread(fd, text, sizeof(text), 0) < 0;
}

static int show_all(void)
{
    return write(fd, "l", 1) != 1;
}

static int write_line(void)
{
    return write(fd, ".", 1) != 1 || tcdrain(fd);
}

static int enable_perf(void)
{
    return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int disable_perf(void)
{
    return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* The thread is woken by what the overflow left to be done. */
static int await_overflow(void)
{
    struct perf_event_mmap_page *buffer = (struct perf_event_mmap_page *)(void *)page;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    if (ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) || poll(&polled, 1, -1) < 0)
        return 1;
    buffer->data_tail = buffer->data_head;
    return 0;
}

static int hold(void)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + HELD_NS;
    while (clock_ns(CLOCK_MONOTONIC) < until)
        ;
    return 0;
}

static int sync_rcu(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0;
}

/* -- each with the stamps between which the CPU was interrupted */

static int during(int (*once)(void), struct gap *truth)
{
    truth->start = ticks_now();
    int failed = once();
    truth->end = ticks_now();
    return failed;
}

/* What ends the wait runs on this CPU, and the next thing there is this thread. */
static int at_the_end(int (*once)(void), struct gap *truth)
{
    int failed = once();
    truth->start = truth->end = ticks_now();
    return failed;
}

static int nothing(void)
{
    return 0;
}

static int touch(void)
{
    return mprotect(page, PAGE, PROT_READ | PROT_WRITE) || (*page = 1) != 1;
}

static int map_and_touch(void)
{
    return map_page() || (*page = 1) != 1;
}

/* The ways. To add one, add a row, and the name that is expected of it (bench_causes.py). */
static const struct way {
    const char *name;
    int (*open)(void);
    int (*before)(void);        /* each time, of no interest */
    int (*once)(void);
    int (*stamped)(int (*once)(void), struct gap *truth);
    bool is_there;              /* by a SCHED_FIFO thread on that CPU; otherwise by a thread elsewhere */
} ways[] = {
    {"membarrier", may_membarrier, nothing, take_barrier, during, false},
    {"mprotect", map_page, touch, write_protect, during, false},
    {"munmap", nothing, map_and_touch, unmap, during, false},
    {"fault", nothing, nothing, drop_code, during, false},
    {"rcu", nothing, nothing, sync_rcu, at_the_end, true},
    {"work", open_work, nothing, read_it, during, false},
    {"perf", open_perf, enable_perf, disable_perf, during, false},
    {"overflow", open_perf, nothing, await_overflow, at_the_end, true},
    {"nmi", open_sysrq, nothing, show_all, during, false},
    {"timer", nothing, nothing, nothing, at_the_end, true},      /* which the pause between two is */
    {"irq", open_serial, nothing, write_line, during, false},
    {"thread", nothing, nothing, hold, during, true},
};

static const struct way *way;
static uint64_t pause_ns;

/* On any CPU but that one, or on that one before all others. */
static int settle(void)
{
    cpu_set_t cpus;
    const char *step;
    if (way->is_there)
        return thread_settle(cpu, 1, &step);
    if (sched_getaffinity(0, sizeof(cpus), &cpus))
        return 1;
    CPU_CLR(cpu, &cpus);
    return sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void *inject(void *argument)
{
    (void)argument;
    int failed = settle() || way->open();
    uint64_t next = clock_ns(CLOCK_MONOTONIC);
    while (!failed && injected < MOST) {
        sleep_until(next += pause_ns);
        failed = way->before() || way->stamped(way->once, &truths[injected]);
        injected++;
    }
    (void)fprintf(stderr, "%s: %s\n", way->name, failed ? strerror(errno) : "that was enough");
    return NULL;
}

static int begin(void)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program */
    int failed = pthread_create(&thread, NULL, inject, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int main(int argc, char **argv)
{
    enum { OWN = 4 };
    for (size_t i = 0; argc > OWN && i < sizeof(ways) / sizeof(*ways); i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            way = &ways[i];
    if (!way)
        return EXIT_USAGE;
    cpu = (unsigned)strtoul(argv[2], NULL, 10);
    pause_ns = strtoull(argv[3], NULL, 10);
    FILE *stamps = fopen(argv[OWN], "w");
    if (!stamps || begin())
        return EXIT_FAILED;
    int status = probe_main(argc - OWN, argv + OWN);
    for (size_t i = 0; i < injected; i++)
        (void)fprintf(stamps, "%llu %llu\n", (unsigned long long)truths[i].start, (unsigned long long)truths[i].end);
    return fclose(stamps) ? EXIT_FAILED : status;
}
