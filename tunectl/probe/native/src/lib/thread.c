#include "lib/thread.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/cpus.h"

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
