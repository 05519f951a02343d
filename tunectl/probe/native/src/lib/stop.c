#include "lib/stop.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { STOP_NOW = 0 };

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
    struct sigaction inherited;
    if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
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

static pid_t followed;  /* 0: nobody */

static bool is_meant_to_outlive(void)
{
    struct sigaction inherited;
    return sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

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
