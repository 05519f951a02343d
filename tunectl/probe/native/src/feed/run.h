/*
 * The experiment `feed`: how long from a message's due time until it is in the book? docs/probe-feed.md has the method and the stages.
 * A run is one case: a transport, a format, a way to wait. A sender that is late sends all that is due at once. The first `warm_ups`
 * messages are left out.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "feed/quote.h"
#include "feed/websocket.h"
#include "lib/pair.h"

enum {
    FEED_MOST = 4000000,        /* messages of a run: 88 bytes of memory each */
    FEED_BURST_MOST = 256,
    FEED_PAYLOAD_MOST = 9000,   /* of a message that is replayed: a jumbo frame's */
    FEED_MESSAGE_MOST = FEED_PAYLOAD_MOST + 4,
    FEED_OUTGOING = FEED_BURST_MOST * (QUOTE_JSON_MOST + 4) + FEED_MESSAGE_MOST,
    FEED_INCOMING = 256 * 1024, /* bytes that a stream's receiver may hold */
    FEED_BATCH_MOST = 4096,     /* messages of one read that are told apart */
};

/* Updates count from here, so that all have as many digits. */
#define FEED_FIRST_UPDATE UINT64_C(1000000000)

enum feed_stage { STAGE_SEND, STAGE_WIRE, STAGE_KERNEL, STAGE_READ, STAGE_BATCH, STAGE_FRAME, STAGE_PARSE, STAGE_BOOK, STAGES };

/* What messages go over: sockets within this host, one pair of ends, or two for a feed that comes twice (A and B). */
enum { FEED_LINES = 2 };

struct connection {
    size_t n;                       /* lines */
    int receives[FEED_LINES];       /* descriptors; -1 where none is open */
    int sends[FEED_LINES];
    uint64_t rcvbuf;                /* bytes of a socket that receives datagrams */
    const char *failed;             /* what could not be done, for a message */
};

/* To add one, add a row to feed_transports. */
struct feed_transport {
    const char *name;
    bool is_stream;
    size_t lines;
    int (*open)(int fds[2]);        /* as in loopback.h; NULL: multicast, each line to a group of its own */
};

extern const struct feed_transport feed_transports[];

/* What its receiving sockets had no room for so far; negative where they do not say (SO_MEMINFO). */
int64_t connection_drops(const struct connection *c);

/*
 * When what was read was received (SO_TIMESTAMPING): by the kernel, a time of CLOCK_REALTIME, or by the network card, a time of its own
 * clock (PTP). Readings of that clock and of the counter, before, while and after the run, bring it to the counter. A clock that was
 * set meanwhile makes all stamps void.
 */
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

/* What is known of a message beforehand. */
struct planned {
    uint64_t due_ticks;         /* from the start */
    uint64_t bytes;             /* of its text or record at least; what is shorter is padded. 0: as it comes */
};

/* What the receiver knows of a message: a cache line. `booked` 0: it did not come. */
struct arrival {
    uint64_t stamp_ns;          /* of the kernel, CLOCK_REALTIME; 0: none */
    uint64_t read_begun;
    uint64_t read_over;
    uint64_t turn;
    uint64_t framed;
    uint64_t parsed;
    uint64_t booked;
    uint64_t in_read;           /* how many messages that read held */
};

/* How messages are told from each other, and read. To add one, add a row to feed_formats. */
struct feed_format {
    const char *name;
    bool is_websocket;
    bool is_json;
};

extern const struct feed_format feed_formats[];

/* How a receiver waits. */
struct feed_waiting {
    const char *name;
    int timeout_ms;             /* of poll; AT_ONCE, ENDLESS */
    bool is_busy_poll;          /* no poll: a receive that blocks, on a socket whose device the kernel polls */
};

extern const struct feed_waiting feed_waitings[];

/* What the sender knows. */
struct feed_sender {
    uint64_t *sent;             /* by message, in ticks; 0: never */
    size_t n;                   /* messages that were sent */
    struct usage used;
    int error;                  /* -errno */
    unsigned char *outgoing;    /* of a stream: what is due, and not taken yet */
    size_t held;                /* bytes of it */
    size_t pending;             /* its messages, and where each ends */
    size_t ends[FEED_BURST_MOST];
    uint64_t next_ping;
};

/* What the receiver knows. */
struct feed_receiver {
    struct arrival *arrivals;   /* by message */
    struct book book;
    uint64_t doubled;
    uint64_t reordered;
    uint64_t reads;
    uint64_t batches[FEED_BATCH_MOST + 1];  /* how many reads held so many messages */
    uint64_t allocations;
    uint64_t strangers;         /* that are no messages of this run */
    unsigned close_code;
    unsigned napi_id;           /* busy-poll only */
    int error;
    struct usage used;
    struct usage first;         /* when the last warm-up came */
    bool has_begun;
    int64_t drops[2];           /* of the sockets, then and at the end; negative: unknown */
    unsigned char *incoming;
    size_t held;
    uint64_t read_begun;        /* of the read that is taken apart, this and the next three */
    uint64_t read_over;
    uint64_t stamp_ns;
    size_t of_read[FEED_BATCH_MOST];
    size_t in_read;
    struct websocket_reader websocket;
};

struct feed_run {
    struct pair pair;
    const struct feed_transport *transport;
    const struct feed_format *format;
    const struct feed_waiting *waiting;
    struct connection connection;
    size_t messages;            /* warm-ups among them */
    size_t warm_ups;
    struct planned *plan;       /* by message */
    size_t grown;               /* messages that were shorter in the capture than any of ours is */
    uint64_t start_ticks;       /* message 0 is due */
    uint64_t end_ticks;         /* whatever is not sent by then is not sent */
    uint64_t after_ticks;       /* from the last due time until then */
    struct feed_sender sender;
    struct feed_receiver receiver;
    _Atomic bool is_received;   /* the receiver is done */
    struct stamps stamps;
    const char *stamps_reason;  /* why there are none; "" */
};

extern const struct command feed_command;
extern const struct pair_experiment feed_experiment;

/* In ticks: when message i is due. */
static inline uint64_t feed_due(const struct feed_run *run, size_t i)
{
    return run->start_ticks + run->plan[i].due_ticks;
}

/*
 * Makes the plan: by --rate and --burst, or of the lines "NS BYTES" of the file --plan, each message's due time from the first one's,
 * ascending, and how long it is at least. Warm-ups come before it. Returns EXIT_OK, or EXIT_USAGE or EXIT_FAILED with the reason on
 * stderr.
 */
int feed_plan(struct feed_run *run);

/* Message i as it goes over the wire. Returns its length. */
size_t feed_write_message(const struct feed_run *run, unsigned char message[FEED_MESSAGE_MOST], size_t i);

/* The steps of the two threads, of a struct feed_run. */
void feed_prepare_sender(void *run);
void feed_send_all(void *run);
void feed_prepare_receiver(void *run);
void feed_receive_all(void *run);

/* The stages of message i, which came, in ticks: they add up to booked - due. The stamps may be void: `is_stamped` says. */
void feed_stages(struct feed_run *run, size_t i, bool is_stamped, int64_t stages[STAGES]);

/* The messages whose due time came in the measured time. It ends early by a signal, or where a connection fails. */
size_t feed_due_n(const struct feed_run *run);

/* Members of the document of a struct feed_run, as pair_experiment has them. */
void feed_write_asked(struct json *j, const void *run);
void feed_write_measured(struct json *j, void *run);
