/*
 * When what was read was received (SO_TIMESTAMPING): by the kernel, a time of CLOCK_REALTIME, or by the network card, a time of its own
 * clock (PTP). Readings of that clock and of the counter, before, while and after the run, bring it to the counter. A clock that was
 * set meanwhile makes all stamps void.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/thread.h"

enum { STAMPS_READINGS = 4096, STAMPS_CONTROL = 256 };

struct stamps {
    bool is_on;
    int were_on;                /* somebody else had them on: 1, 0, or -1 where that is not known */
    bool is_hardware;
    clockid_t clock;            /* of the stamps */
    bool is_stepped;            /* it was set while it was read */
    double hz;                  /* of the counter */
    uint64_t doubt_ticks;       /* how far a stamp may be off */
    size_t n;
    struct clock_pair readings[STAMPS_READINGS];    /* raw_ns is of `clock` */
    size_t at;                  /* where the last stamp was found: they come in the order of time */
    unsigned since_reading;
    struct watch watch;
};

/* Does a datagram get a stamp that nobody here asked for? Then another process has the whole host stamp. To be asked before stamps_set. */
int stamps_were_on(void);

/* Stamps of the card whose clock is this device (/dev/ptpN); NULL: the kernel's. Returns 0 or -errno. */
int stamps_choose(struct stamps *stamps, const char *phc);

/*
 * Has the socket's stamps taken. The first on a host has the kernel patch its own code, which interrupts every CPU:
 * before anything is measured. Returns 0 or -errno.
 */
int stamps_set(const struct stamps *stamps, int fd);

/* Reads the clocks from now on, ten times a second, by a thread beside the caller. */
void stamps_begin(struct stamps *stamps);
void stamps_end(struct stamps *stamps, double hz);

/* The stamp of a message that was read, in ns; 0 where there is none. */
uint64_t stamps_of(struct msghdr *message, bool is_hardware);

/* In ticks of the counter. After stamps_end; times ascend, or begin anew. */
uint64_t stamps_ticks(struct stamps *stamps, uint64_t ns);
