#include "lib/thread.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/host.h"
#include "lib/ticks.h"

enum { STACK_BYTES = 256 * 1024, WATCH_US = 1000, POLICY_LOCAL = 4 /* MPOL_LOCAL, linux/mempolicy.h */ };

int thread_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc)
        return -rc;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    rc = pthread_create(thread, &attributes, main, argument);
    (void)pthread_attr_destroy(&attributes);
    return -rc;
}

int thread_pin(unsigned cpu)
{
    struct cpus own = {0};
    cpus_add(&own, cpu);
    return cpus_pin(0, &own);
}

int thread_settle(unsigned cpu, int fifo_priority, const char **step)
{
    struct sched_param param = {.sched_priority = fifo_priority};
    *step = "run on the CPU (is it in this cgroup's cpuset?)";
    int rc = thread_pin(cpu);
    if (rc || !fifo_priority)
        return rc;
    *step = "use SCHED_FIFO (it needs CAP_SYS_NICE or `ulimit -r`, and a cgroup with rt_runtime)";
    return -pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

void thread_use_local_memory(void)
{
    (void)syscall(SYS_set_mempolicy, POLICY_LOCAL, NULL, 0UL);
}

void *memory_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    /* khugepaged would merge these pages during the run: a TLB shootdown and a fault of our own making. */
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * 1000;
}

struct usage usage_now(void)
{
    struct rusage usage;
    /* One call for all of it: a worker has no other between its first stamp and its last. */
    (void)getrusage(RUSAGE_THREAD, &usage);
    return (struct usage){
        .ticks = ticks_now(),
        .cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime),
        .minor_faults = (uint64_t)usage.ru_minflt,
        .major_faults = (uint64_t)usage.ru_majflt,
        .voluntary_switches = (uint64_t)usage.ru_nvcsw,
        .preemptions = (uint64_t)usage.ru_nivcsw,
    };
}

struct usage usage_since(const struct usage *before, const struct usage *after)
{
    return (struct usage){
        .ticks = after->ticks - before->ticks,
        .cpu_ns = after->cpu_ns - before->cpu_ns,
        .minor_faults = after->minor_faults - before->minor_faults,
        .major_faults = after->major_faults - before->major_faults,
        .voluntary_switches = after->voluntary_switches - before->voluntary_switches,
        .preemptions = after->preemptions - before->preemptions,
    };
}

static void *watch_main(void *argument)
{
    struct watch *watch = argument;
    struct timespec pause = {0, WATCH_US * 1000L};
    while (!atomic_load(&watch->is_over)) {
        watch->look(watch->context);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

void watch_start(struct watch *watch)
{
    if (thread_start(&watch->thread, watch_main, watch))
        abort();
}

void watch_stop(struct watch *watch)
{
    atomic_store(&watch->is_over, true);
    (void)pthread_join(watch->thread, NULL);
}
