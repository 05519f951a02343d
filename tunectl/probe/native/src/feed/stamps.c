#include "feed/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/loopback.h"

enum {
    POLLS = 100,                /* of the watch, a millisecond each, from reading to reading */
    SLEW_PPM = 600,             /* adjtimex(2) turns the clock by 500 at most */
    STEP_NS = 1000,
    LATER_NS = 5000000,
};

/* musl's macro compares a size with a difference of pointers, which is this file's complaint and not its fault. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
static struct cmsghdr *next_control(struct msghdr *message, struct cmsghdr *control)
{
    return CMSG_NXTHDR(message, control);
}
#pragma GCC diagnostic pop

/* SCM_TIMESTAMPING has three: the kernel's, one that is no more, and the card's. */
uint64_t stamps_of(struct msghdr *message, bool is_hardware)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = next_control(message, c)) {
        struct timespec stamp;
        if (c->cmsg_level != SOL_SOCKET || (c->cmsg_type != SCM_TIMESTAMPING && c->cmsg_type != SCM_TIMESTAMPNS))
            continue;
        memcpy(&stamp, CMSG_DATA(c) + (is_hardware ? 2 * sizeof(stamp) : 0), sizeof(stamp));
        return ns_of_timespec(stamp);
    }
    return 0;
}

/* A datagram that waits, read once its socket asks for a stamp: the kernel then stamps it as of now, unless it did at its arrival. */
static int read_late(const int fds[LOOPBACK_ENDS])
{
    char byte = 0;
    char control[STAMPS_CONTROL];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    const int on = 1;
    if (send(fds[LOOPBACK_SENDS], &byte, 1, MSG_DONTWAIT) != 1)
        return -1;
    sleep_ns(LATER_NS);
    uint64_t later = clock_ns(CLOCK_REALTIME);
    if (setsockopt(fds[LOOPBACK_RECEIVES], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
        recvmsg(fds[LOOPBACK_RECEIVES], &message, MSG_DONTWAIT) != 1)
        return -1;
    uint64_t stamp = stamps_of(&message, false);
    return stamp ? stamp < later : -1;
}

int stamps_were_on(void)
{
    int fds[LOOPBACK_ENDS];
    int were_on = loopback_udp(fds) ? -1 : read_late(fds);
    for (size_t i = 0; i < LOOPBACK_ENDS; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    return were_on;
}

int stamps_choose(struct stamps *s, const char *phc)
{
    struct timespec now;
    s->clock = CLOCK_REALTIME;
    if (!phc)
        return 0;
    int fd = open(phc, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    s->is_hardware = true;
    s->clock = (clockid_t)(~(unsigned)fd << 3 | 3);     /* as fd_to_clockid (linux/posix-timers.h); the file stays open */
    return clock_gettime(s->clock, &now) ? -errno : 0;
}

int stamps_set(const struct stamps *s, int fd)
{
    const int flags = s->is_hardware ? SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE
                                     : SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) ? -errno : 0;
}

static void take_reading(struct stamps *s)
{
    if (s->n < STAMPS_READINGS)
        s->readings[s->n++] = clock_pair_of(s->clock);
}

static void look(void *context)
{
    struct stamps *s = context;
    if (++s->since_reading % POLLS == 0)
        take_reading(s);
}

void stamps_begin(struct stamps *s)
{
    take_reading(s);
    s->watch = (struct watch){.look = look, .context = s};
    watch_start(&s->watch);
}

/* Between two readings both clocks went the same way, but for a slow turn. */
static bool is_step(const struct stamps *s, const struct clock_pair *from, const struct clock_pair *to)
{
    double by_counter = (double)(to->ticks - from->ticks) * 1e9 / s->hz;
    double by_clock = (double)(int64_t)(to->raw_ns - from->raw_ns);
    double doubt = (double)(from->half_width + to->half_width) * 1e9 / s->hz + by_counter * (double)SLEW_PPM / 1e6 + (double)STEP_NS;
    double difference = by_clock - by_counter;
    return difference > doubt || difference < -doubt;
}

void stamps_end(struct stamps *s, double hz)
{
    uint64_t widest = 0;
    watch_stop(&s->watch);
    if (s->n == STAMPS_READINGS)
        s->n--;
    take_reading(s);
    s->hz = hz;
    for (size_t i = 0; i < s->n; i++) {
        widest = s->readings[i].half_width > widest ? s->readings[i].half_width : widest;
        s->is_stepped = s->is_stepped || (i > 0 && is_step(s, &s->readings[i - 1], &s->readings[i]));
    }
    /* Both readings, a nanosecond of the stamp itself, and one of rounding. */
    s->doubt_ticks = 2 * widest + (uint64_t)(2.0 * hz / 1e9) + 1;
}

uint64_t stamps_ticks(struct stamps *s, uint64_t ns)
{
    if (s->readings[s->at].raw_ns > ns)
        s->at = 0;
    while (s->at + 2 < s->n && s->readings[s->at + 1].raw_ns <= ns)
        s->at++;
    const struct clock_pair *from = &s->readings[s->at];
    const struct clock_pair *to = from + 1;
    double rate = (double)(to->ticks - from->ticks) / (double)(to->raw_ns - from->raw_ns);
    return from->ticks + (uint64_t)(int64_t)((double)(int64_t)(ns - from->raw_ns) * rate);
}
