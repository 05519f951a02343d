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
#include <stdio.h>

#include "feed/book.h"
#include "feed/connection.h"
#include "feed/stamps.h"
#include "feed/websocket.h"
#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/options.h"
#include "lib/pair.h"
#include "lib/thread.h"

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
extern const size_t feed_formats_n;

/* How a receiver waits. */
struct feed_waiting {
    const char *name;
    int timeout_ms;             /* of poll; AT_ONCE, ENDLESS */
    bool is_busy_poll;          /* no poll: a receive that blocks, on a socket whose device the kernel polls */
};

extern const struct feed_waiting feed_waitings[];
extern const size_t feed_waitings_n;

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
    const struct options *options;
    struct host_facts facts;
    struct pair pair;
    struct clock_span clock;
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
    char reason[160];           /* why it was not measured; empty where it was */
    bool is_interrupted;
    double duration_s;
    int64_t at_s;               /* CLOCK_REALTIME when the measuring began */
};

extern const struct command feed_command;

int feed_main(int argc, char **argv);

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

/*
 * The other host's end of a round trip: a line of JSON once it is where it belongs, then everything that comes over --socket goes
 * back. Without a --socket it is done. Returns the exit status.
 */
int feed_reflect(const struct feed_run *run);

/* The messages whose due time came in the measured time. It ends early by a signal, or where a connection fails. */
size_t feed_due_n(const struct feed_run *run);

/* The document of a struct feed_run, tunectl.probe.feed.raw/1. For output_write. */
int feed_document_write(FILE *stream, const void *run);
