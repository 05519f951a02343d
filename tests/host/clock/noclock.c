/* Calls that set the clock do nothing, and say that they did it: a daemon of a test leaves the machine's clock alone. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

static struct timex kept = {.status = STA_UNSYNC, .maxerror = 16000000, .esterror = 16000000, .tick = 10000, .tolerance = 32768000, .precision = 1};

static int adjusted(struct timex *asked)
{
    if (asked->modes & ADJ_FREQUENCY)
        kept.freq = asked->freq;
    if (asked->modes & ADJ_TICK)
        kept.tick = asked->tick;
    if (asked->modes & ADJ_STATUS)
        kept.status = asked->status;
    if (asked->modes & ADJ_TAI)
        kept.tai = (int)asked->constant;
    unsigned modes = asked->modes;
    *asked = kept;
    asked->modes = modes;
    gettimeofday(&asked->time, NULL);
    return kept.status & STA_UNSYNC ? TIME_ERROR : TIME_OK;
}

int adjtimex(struct timex *asked) { return adjusted(asked); }
int ntp_adjtime(struct timex *asked) { return adjusted(asked); }
int clock_adjtime(clockid_t clock, struct timex *asked) { (void)clock; return adjusted(asked); }
int clock_settime(clockid_t clock, const struct timespec *to) { (void)clock; (void)to; return 0; }
int settimeofday(const struct timeval *to, const struct timezone *zone) { (void)to; (void)zone; return 0; }
int adjtime(const struct timeval *by, struct timeval *left) { (void)by; if (left) memset(left, 0, sizeof *left); return 0; }
