#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feed/run.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum { PING_BYTES = 8, END_MS = 1000 };

static const char ping_text[] = "tunectl.";

/* Prices walk a little, and never touch: 25,000 and some. */
static struct quote quote_of(const struct feed_run *run, size_t i)
{
    unsigned symbol = (unsigned)(i % run->pair.options->symbols);
    uint64_t walk = (i * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
    struct quote q = {
        .update = FEED_FIRST_UPDATE + i,
        .bid_price = INT64_C(2500000000000) + (int64_t)(symbol * 1000000000 + walk),
        .bid_size = INT64_C(100000000) + (int64_t)walk,
        .ask_size = INT64_C(200000000) + (int64_t)walk,
    };
    q.ask_price = q.bid_price + 1;
    (void)snprintf(q.symbol, sizeof(q.symbol), "SYM%02u", symbol);
    return q;
}

size_t feed_write_message(const struct feed_run *run, unsigned char message[FEED_MESSAGE_MOST], size_t i)
{
    struct quote q = quote_of(run, i);
    char text[QUOTE_JSON_MOST];
    size_t wanted = run->plan[i].bytes;
    if (!run->format->is_json)
        return quote_write_binary(message, &q, wanted);
    size_t written = quote_write_json(text, &q, UINT64_C(1700000000000000000) + i);
    size_t length = wanted > written ? wanted : written;
    size_t head = run->format->is_websocket ? websocket_head(message, WEBSOCKET_TEXT, length) : 0;
    memcpy(message + head, text, written);
    memset(message + head + written, ' ', length - written);
    if (run->transport->is_stream && !run->format->is_websocket)
        message[length++] = '\n';
    return head + length;
}

void feed_prepare_sender(void *context)
{
    struct feed_run *run = context;
    memset(run->sender.sent, 0, run->messages * sizeof(*run->sender.sent));
    memset(run->sender.outgoing, 0, FEED_OUTGOING);
}

/*
 * What is due, up to what the buffer holds. As a server does once a while, a ping goes before it, and pongs are read and dropped; not
 * where another host sends back what it gets: the pong would be ours.
 */
static void fill(struct feed_run *run, uint64_t now)
{
    struct feed_sender *s = &run->sender;
    unsigned char drain[256];
    if (run->format->is_websocket && run->pair.options->socket < 0 && s->held == 0 && now >= s->next_ping) {
        s->next_ping = now + (uint64_t)run->pair.clock.initial.hz;
        size_t head = websocket_head(s->outgoing, WEBSOCKET_IS_PING, PING_BYTES);
        memcpy(s->outgoing + head, ping_text, PING_BYTES);
        s->held = head + PING_BYTES;
        while (recv(run->connection.sends[0], drain, sizeof(drain), MSG_DONTWAIT) > 0)
            continue;
    }
    for (size_t i = s->n + s->pending; s->pending < FEED_BURST_MOST && s->held + FEED_MESSAGE_MOST <= FEED_OUTGOING &&
                                       i < run->messages && feed_due(run, i) <= now; i++) {
        s->held += feed_write_message(run, s->outgoing + s->held, i);
        s->ends[s->pending++] = s->held;
    }
}

/* All that is pending, by one call. Its messages whose last byte was taken were sent at `now`. */
static int send_stream(struct feed_run *run, uint64_t now)
{
    struct feed_sender *s = &run->sender;
    ssize_t taken = send(run->connection.sends[0], s->outgoing, s->held, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    size_t whole = 0;
    for (; whole < s->pending && s->ends[whole] <= (size_t)taken; whole++)
        s->sent[s->n++] = now;
    s->pending -= whole;
    for (size_t i = 0; i < s->pending; i++)
        s->ends[i] = s->ends[i + whole] - (size_t)taken;
    s->held -= (size_t)taken;
    memmove(s->outgoing, s->outgoing + taken, s->held);
    return 0;
}

/* One message on each line; a queue that is full is tried again. */
static int send_datagram(struct feed_run *run, uint64_t now)
{
    struct feed_sender *s = &run->sender;
    unsigned char message[FEED_MESSAGE_MOST];
    size_t length = feed_write_message(run, message, s->n);
    for (size_t line = 0; line < run->connection.n; line++) {
        ssize_t taken = send(run->connection.sends[line], message, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken < 0 && line == 0)
            return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? 0 : -errno;
    }
    s->sent[s->n++] = now;
    return 0;
}

static int send_due(struct feed_run *run)
{
    uint64_t now = ticks_now();
    if (run->transport->is_stream) {
        fill(run, now);
        return run->sender.held ? send_stream(run, ticks_now()) : 0;
    }
    return run->sender.n < run->messages && feed_due(run, run->sender.n) <= now ? send_datagram(run, now) : 0;
}

/* A stream ends; a datagram without a byte says the same, as often as it takes. */
static void say_end(struct feed_run *run)
{
    for (int ms = 0; ms < END_MS && !atomic_load(&run->is_received); ms++) {
        for (size_t line = 0; line < run->connection.n; line++) {
            if (run->transport->is_stream)
                (void)shutdown(run->connection.sends[line], SHUT_WR);
            else
                (void)send(run->connection.sends[line], "", 0, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        sleep_ns(1000000);
    }
}

void feed_send_all(void *context)
{
    struct feed_run *run = context;
    struct feed_sender *s = &run->sender;
    struct usage before = usage_now();
    while (!s->error && s->n < run->messages && !stop_is_asked() && !atomic_load(&run->is_received) && ticks_now() < run->end_ticks)
        s->error = send_due(run);
    /* The receiver waits for the end that say_end says; another one is that of the connection. */
    if (!s->error && atomic_load(&run->is_received) && !run->receiver.error)
        s->error = -EPIPE;
    s->used = usage_since(&before);
    say_end(run);
}
