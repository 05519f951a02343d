#include "lib/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/host.h"
#include "lib/ticks.h"

enum { STACK_BYTES = 256 * 1024, WATCH_US = 1000, POLICY_LOCAL = 4 /* MPOL_LOCAL, linux/mempolicy.h */, STOP_NOW = 0 };

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

struct usage usage_since(const struct usage *before)
{
    struct usage used = usage_now();
    used.ticks -= before->ticks;
    used.cpu_ns -= before->cpu_ns;
    used.minor_faults -= before->minor_faults;
    used.major_faults -= before->major_faults;
    used.voluntary_switches -= before->voluntary_switches;
    used.preemptions -= before->preemptions;
    return used;
}

static void *watch_main(void *argument)
{
    struct watch *watch = argument;
    while (!atomic_load(&watch->is_over)) {
        watch->look(watch->context);
        sleep_ns(WATCH_US * 1000);
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

/*
 * The only state a signal handler shares with the rest. It lies on a cache line of its own: all spinners read it. stop_init
 * maps a page that is shared with the processes forked later.
 */
static _Alignas(128) _Atomic uint64_t before_init = UINT64_MAX;
static _Atomic uint64_t *deadline_ticks = &before_init;

void stop_now(void)
{
    atomic_store_explicit(deadline_ticks, STOP_NOW, memory_order_relaxed);
}

static void on_signal(int number)
{
    (void)number;
    stop_now();
}

static void change_mask(int how)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(how, &set, NULL);
}

static bool is_meant_to_outlive(void)
{
    struct sigaction inherited;
    return sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

void stop_init(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    change_mask(SIG_BLOCK);
    void *page = mmap(NULL, sizeof(before_init), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        deadline_ticks = page;
        atomic_init(deadline_ticks, UINT64_MAX);
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    /* Under nohup the terminal may go away. */
    if (!is_meant_to_outlive())
        (void)sigaction(SIGHUP, &action, NULL);
}

void stop_listen(void)
{
    change_mask(SIG_UNBLOCK);
}

void stop_at(uint64_t deadline)
{
    uint64_t unset = UINT64_MAX;
    (void)atomic_compare_exchange_strong(deadline_ticks, &unset, deadline);
}

const _Atomic uint64_t *stop_deadline(void)
{
    return deadline_ticks;
}

bool stop_is_asked(void)
{
    return atomic_load_explicit(deadline_ticks, memory_order_relaxed) == STOP_NOW;
}

void sleep_until(uint64_t ns)
{
    struct timespec at = timespec_of(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !stop_is_asked())
        continue;
}

static pid_t followed;  /* 0: nobody */

bool parent_follow(void)
{
    const char *named = getenv(PARENT_VARIABLE);
    if (!named && is_meant_to_outlive())
        return true;
    followed = named ? (pid_t)strtol(named, NULL, 10) : getppid();
    /* Of the thread that started this program. An exec of a set-uid program would clear it: so it is set here, behind all execs. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* A parent that ended before the call above sends nothing any more. */
    return !parent_is_gone();
}

bool parent_is_gone(void)
{
    return followed && getppid() != followed;
}
