#include "lib/parent.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

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
