#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "feed/run.h"
#include "lib/loopback.h"
#include "lib/ticks.h"

enum { AT_ONCE = 0, ENDLESS = -1, KEPT_MOST = 64 };

const struct feed_waiting feed_waitings[] = {
    {"poll0", AT_ONCE, false},
    {"poll", ENDLESS, false},
    {"busy-poll", ENDLESS, true},
};

void feed_prepare_receiver(void *context)
{
    struct feed_run *run = context;
    memset(run->receiver.arrivals, 0, run->messages * sizeof(*run->receiver.arrivals));
    memset(run->receiver.incoming, 0, FEED_INCOMING);
    websocket_init(&run->receiver.websocket, FEED_MESSAGE_MOST);
    memset(run->receiver.websocket.message, 0, sizeof(run->receiver.websocket.message));
}

/* What a reader does that does not care: a copy of each message, or several, and away with them. */
static void allocate(struct feed_run *run, const void *data, size_t length)
{
    void *kept[KEPT_MOST];
    unsigned wanted = run->pair.options->alloc;
    for (unsigned i = 0; i < wanted; i++) {
        kept[i] = malloc(length);
        if (kept[i])
            memcpy(kept[i], data, length);
        run->receiver.allocations += kept[i] != NULL;
    }
    for (unsigned i = 0; i < wanted; i++)
        free(kept[i]);
}

/* With the last message of the warm-up: what was counted so far is not of the measured time. */
static void begin(struct feed_run *run)
{
    struct feed_receiver *r = &run->receiver;
    r->has_begun = true;
    r->first = usage_now();
    r->drops[0] = connection_drops(&run->connection);
    r->allocations = r->reads = r->strangers = 0;
    memset(r->batches, 0, sizeof(r->batches));
}

/* A message that was taken apart: into the book, and what is known of it into its line. */
static void take_message(struct feed_run *run, const void *data, size_t length, uint64_t turn, uint64_t framed)
{
    struct feed_receiver *r = &run->receiver;
    struct quote q;
    allocate(run, data, length);
    bool is_read = run->format->is_json ? quote_read_json(&q, data, length) : quote_read_binary(&q, data, length);
    uint64_t parsed = ticks_now();
    size_t i = is_read ? (size_t)(q.update - FEED_FIRST_UPDATE) : run->messages;
    if (i >= run->messages) {
        r->strangers++;
        return;
    }
    struct arrival *a = &r->arrivals[i];
    if (a->booked) {
        r->doubled += i >= run->warm_ups;
        return;
    }
    if (!r->has_begun && i + 1 >= run->warm_ups)
        begin(run);
    bool is_newest = book_apply(&r->book, &q);
    r->reordered += !is_newest && i >= run->warm_ups;
    *a = (struct arrival){r->stamp_ns, r->read_begun, r->read_over, turn, framed, parsed, ticks_now(), 0};
    if (r->in_read < FEED_BATCH_MOST)
        r->of_read[r->in_read] = i;
    r->in_read++;
}

static void answer(struct feed_run *run, const uint8_t *payload, size_t n)
{
    uint8_t pong[WEBSOCKET_PONG_MOST];
    uint32_t key;
    if (getrandom(&key, sizeof(key), GRND_NONBLOCK) == sizeof(key))
        (void)send(run->connection.receives[0], pong, websocket_pong(pong, payload, n, key), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Frames, as far as they are whole. Returns the bytes of these; a connection that failed is over. */
static size_t take_frames(struct feed_run *run, const unsigned char *bytes, size_t n)
{
    struct feed_receiver *r = &run->receiver;
    size_t at = 0;
    for (;;) {
        size_t used;
        uint64_t turn = ticks_now();
        enum websocket_event event = websocket_next(&r->websocket, bytes + at, n - at, &used);
        if (event == WEBSOCKET_MORE)
            return at;
        if (event == WEBSOCKET_FAILED || event == WEBSOCKET_CLOSE) {
            r->close_code = event == WEBSOCKET_FAILED ? r->websocket.code : 1000;
            r->error = -EPROTO;
            return n;
        }
        if (event == WEBSOCKET_MESSAGE)
            take_message(run, r->websocket.data, r->websocket.length, turn, ticks_now());
        else if (event == WEBSOCKET_PING)
            answer(run, r->websocket.data, r->websocket.length);
        at += used;
    }
}

/* With its newline; 0 where there is none yet. */
static size_t line_length(const unsigned char *bytes, size_t n)
{
    const unsigned char *newline = memchr(bytes, '\n', n);
    return newline ? (size_t)(newline - bytes) + 1 : 0;
}

/* Lines or records, as far as they are whole. */
static size_t take_records(struct feed_run *run, const unsigned char *bytes, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint64_t turn = ticks_now();
        size_t length = run->format->is_json ? line_length(bytes + at, n - at) : quote_binary_length(bytes + at, n - at);
        if (!length || length > n - at)
            break;
        take_message(run, bytes + at, length, turn, ticks_now());
        at += length;
    }
    return at;
}

/* Once a read was taken apart: its messages know how many they were. */
static void end_read(struct feed_receiver *r)
{
    size_t known = r->in_read < FEED_BATCH_MOST ? r->in_read : FEED_BATCH_MOST;
    for (size_t i = 0; i < known; i++)
        r->arrivals[r->of_read[i]].in_read = r->in_read;
    r->reads += r->in_read > 0;
    r->batches[known] += r->in_read > 0;
    r->in_read = 0;
}

/* The bytes of a read, behind those that are held. A message that fits nowhere is an error. */
static void take_bytes(struct feed_run *run, size_t n)
{
    struct feed_receiver *r = &run->receiver;
    if (!run->transport->is_stream) {
        uint64_t turn = ticks_now();
        take_message(run, r->incoming, n, turn, turn);
    } else {
        r->held += n;
        size_t used = run->format->is_websocket ? take_frames(run, r->incoming, r->held) : take_records(run, r->incoming, r->held);
        memmove(r->incoming, r->incoming + used, r->held - used);
        r->held -= used;
        if (r->held == FEED_INCOMING)
            r->error = -EMSGSIZE;
    }
    end_read(r);
}

/* One receive. False where all is over. */
static bool read_line(struct feed_run *run, int fd)
{
    struct feed_receiver *r = &run->receiver;
    _Alignas(16) char control[STAMPS_CONTROL];
    struct iovec part = {r->incoming + r->held, FEED_INCOMING - r->held};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    const int flags = run->waiting->is_busy_poll ? 0 : MSG_DONTWAIT;
    r->read_begun = ticks_now();
    /* The kernel copies a header in and out again: only for a stamp. */
    ssize_t got = run->stamps.is_on ? recvmsg(fd, &message, flags) : recv(fd, part.iov_base, part.iov_len, flags);
    r->read_over = ticks_after_loads();
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0) {
        r->error = got ? -errno : 0;
        return false;
    }
    if (run->waiting->is_busy_poll && !r->napi_id && !(r->napi_id = socket_napi_id(fd)))
        return false;
    r->stamp_ns = run->stamps.is_on ? stamps_of(&message, run->stamps.is_hardware) : 0;
    take_bytes(run, (size_t)got);
    return !r->error;
}

static void receive(struct feed_run *run)
{
    struct connection *c = &run->connection;
    struct pollfd polled[FEED_LINES];
    for (size_t i = 0; i < c->n; i++)
        polled[i] = (struct pollfd){.fd = c->receives[i], .events = POLLIN};
    for (;;) {
        if (!run->waiting->is_busy_poll && poll(polled, c->n, run->waiting->timeout_ms) <= 0)
            continue;
        for (size_t i = 0; i < c->n; i++)
            if ((run->waiting->is_busy_poll || polled[i].revents) && !read_line(run, c->receives[i]))
                return;
    }
}

void feed_receive_all(void *context)
{
    struct feed_run *run = context;
    struct feed_receiver *r = &run->receiver;
    r->first = usage_now();
    receive(run);
    r->used = usage_since(&r->first);
    r->drops[1] = connection_drops(&run->connection);
    atomic_store(&run->is_received, true);
}
