/* The experiment `wake`: how long until a waiting thread has a message? A run is one case: a mechanism, a wait method, an idle time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pair.h"
#include "wake/transport.h"

/*
 * One case while it is measured: messages sent by an absolute schedule, and the stamps of both ends.
 *
 * Open loop: message i is due at start + i * period, whatever became of those before it. A sender that is late sends at once
 * and keeps the schedule; how late it was is known from the stamps.
 *
 * Stamps, all of one counter: `sent` just before send is called (it travels in the message), `sent_after` just after it has
 * returned, `received` just after the receive has returned. received - sent is the whole delay, with the sender's system call
 * and, on loopback, the receiving side's protocol work, which runs in the sender's context; received - sent_after leaves those
 * out, and is negative where a spinning receiver has the message before send has returned. A timer has no sender: `sent` is
 * when it was due, and the delay is read from the clock that it runs by, since the counter may drift against that.
 *
 * A warm sender, shortly before a message is due, sends some through a transport of its own and takes them itself. So what is
 * measured after a pause is the receiver that waited, and not how much of the sender's own path has left the caches; a cold
 * sender, and a message's delay with it, is what a program has that sends once in a while.
 *
 * Before the schedule begins, EXCHANGE_WARM_UPS messages go one at a time, each once the one before was taken: they fault in
 * the code and the connection, and show what a hot message takes. The schedule of a case without idle time is made
 * from that.
 */
enum { EXCHANGE_WARM_UPS = 16 };

/* What the sender knows; only it writes here while it runs. */
struct sending {
    uint64_t *before;           /* by sequence number; 0: not sent */
    uint64_t *after;
    uint64_t start_ticks;       /* message 0 is due */
    uint64_t period_ticks;      /* 0: chosen after the warm-up */
    size_t n;                   /* messages whose time came */
    int error;                  /* -errno; -EAGAIN where a message found no room in time */
    bool has_no_napi;           /* the method needs a device that feeds the socket, and none does: nothing was sent */
    struct usage used;
};

/* What the receiver knows. */
struct receiving {
    uint64_t *at;               /* by sequence number; 0: not received */
    uint64_t *remote_ticks;     /* how long the other host had it, in its ticks */
    uint64_t *ready;            /* its caches were made cold, and it went to wait again */
    _Atomic size_t n;           /* different messages; what was noted of them stands */
    uint64_t duplicates;        /* came twice, or have no sequence number of ours */
    uint64_t reordered;         /* came after a later one */
    int error;
    struct usage first;         /* at the last warm-up */
    struct usage used;          /* since then */
};

struct exchange {
    struct transport *transport;
    struct transport *own;      /* the sender's, to keep warm with; NULL for a cold one */
    const struct wait_method *method;
    size_t messages;
    double ticks_per_ns;
    double remote_ratio;        /* ticks of ours in one of the other host's; 0 within one host */
    unsigned char *working_set; /* the receiver's: written to after each message, so that its caches hold nothing else */
    size_t working_set_bytes;
    struct sending sending;
    _Alignas(RING_LINE) struct receiving receiving;
    _Alignas(RING_LINE) _Atomic uint64_t warm_ups_taken;
    _Atomic unsigned napi_id;   /* valid once warm_ups_taken moved */
};

/* Makes the arrays of an exchange that has the rest; each thread touches its own, and they stay. Returns 0 or -ENOMEM. */
int exchange_init(struct exchange *x);

bool exchange_is_of_a_timer(const struct exchange *x);

/* The sending thread's part, of a struct exchange: returns when the last message was sent, at a signal, or when sending failed. */
void exchange_send_all(void *exchange);

/* The receiving thread's part: returns when all messages are there, or when receiving failed. */
void exchange_receive_all(void *exchange);

/* Each thread touches what it writes to. */
void exchange_touch_sending(void *exchange);
void exchange_touch_receiving(void *exchange);

/*
 * Has it done. A receiver that still waits a second after the sender is over (at a signal, less) is left: what it misses was
 * lost. A timer is given all the time it takes. Returns whether it came to its end; otherwise it is still there.
 */
bool exchange_run(struct exchange *x, struct pair *pair);

/* What the kernel says at one moment of the receiver's CPU and of our threads, as it stands. What follows from that is Python's. */
struct occupancy {
    uint64_t ticks;
    uint64_t tids[ENDS + 1];        /* receiver, sender, main thread */
    struct snapshot files;
};

/* Which case says what, and which cannot be, is Python's to know and to explain. */
struct wake_case {
    const struct mechanism *mechanism;
    const struct wait_method *method;
    double idle_ms;
};

struct wake_run {
    struct wake_case what;
    struct pair pair;
    struct exchange exchange;
    struct occupancy before;
    struct occupancy after;
};

extern const struct command wake_command;
extern const struct pair_experiment wake_experiment;

/* "tcp:block:10". False for a text that names no case that can be. */
bool wake_case_parse(struct wake_case *c, const char *text);

/* Of the document of a struct wake_run, as pair_experiment has it. */
void wake_write_measured(struct json *j, void *run);
