#include "feed/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/loopback.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

#ifndef SOL_TLS
#define SOL_TLS 282             /* include/linux/socket.h; not in every C library */
#endif

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first message */
};

const struct command feed_command = {
    .name = "feed",
    .experiment = OF_FEED,
    .about =
        "feed: how long from a message's due time until the book has it, stage by stage. The result is a JSON document of what was\n"
        "counted (schema tunectl.probe.feed.raw/1); `tunectl probe feed` chooses CPUs and cases, and makes figures of it.\n",
    .holds = "what was counted, in ticks of the clock; each value and how often it came, in turns. `tunectl probe feed` makes figures, "
             "bars and warnings of it",
};

const struct feed_format feed_formats[] = {
    {"ws-json", true, true},
    {"json", false, true},
    {"binary", false, false},
};

size_t feed_due_n(const struct feed_run *run)
{
    size_t n = 0;
    while (run->warm_ups + n < run->messages && feed_due(run, run->warm_ups + n) < run->end_ticks)
        n++;
    return n;
}

/* ---- what messages go over */

const struct feed_transport feed_transports[] = {
    {"tcp", true, 1, loopback_tcp},
    {"udp", false, 1, loopback_udp},
    {"multicast", false, 1, NULL},
    {"multicast-ab", false, 2, NULL},
};

/* For as long as the process lives. Returns 0, or -errno and `failed`. */
static int connection_open(struct connection *c, const struct feed_transport *transport)
{
    int rc = 0;
    *c = (struct connection){.failed = "open its sockets"};
    for (; c->n < transport->lines && !rc; c->n++) {
        int fds[LOOPBACK_ENDS];
        rc = transport->open ? transport->open(fds) : loopback_multicast(fds, (unsigned)c->n + 1);
        c->receives[c->n] = fds[LOOPBACK_RECEIVES];
        c->sends[c->n] = fds[LOOPBACK_SENDS];
    }
    return rc;
}

/* The same of a connected socket whose other end, on another host, sends back what it receives. */
static int connection_adopt(struct connection *c, int fd)
{
    *c = (struct connection){.n = 1, .receives = {fd}, .failed = "use its socket"};
    c->sends[0] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return c->sends[0] < 0 ? -errno : 0;
}

/*
 * Has each of its receiving sockets keep so many bytes, beyond net.core.rmem_max where this process may; a socket with little room
 * loses what comes while its handler is stopped. Returns what the kernel has in the end, twice what it was asked for (socket(7)); 0
 * of a stream, whose window grows by itself.
 */
static uint64_t connection_use_rcvbuf(const struct connection *c, const struct feed_transport *transport, int bytes)
{
    int got = 0;
    for (size_t i = 0; i < c->n && !transport->is_stream; i++) {
        int fd = c->receives[i];
        socklen_t length = sizeof(got);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
            (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
        (void)getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length);
    }
    return (uint64_t)got;
}

int64_t connection_drops(const struct connection *c)
{
    int64_t sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        uint32_t info[SK_MEMINFO_VARS] = {0};
        socklen_t length = sizeof(info);
        if (getsockopt(c->receives[i], SOL_SOCKET, SO_MEMINFO, info, &length))
            return -1;
        sum += info[SK_MEMINFO_DROPS];
    }
    return sum;
}

/*
 * Both ends of a stream encrypt and decrypt in the kernel (TLS 1.3, AES-128-GCM) with keys that were agreed on beforehand: there is
 * no handshake. Over another host the ciphertext comes back as it went. Returns 0, or -errno and `failed`.
 */
static int connection_use_tls(struct connection *c)
{
    struct tls12_crypto_info_aes_gcm_128 keys = {.info = {.version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128}};
    c->failed = "use the kernel's TLS (module tls: is it there, and loaded? loading it needs CAP_NET_ADMIN)";
    if (getrandom(keys.key, sizeof(keys.key), 0) < 0 || getrandom(keys.iv, sizeof(keys.iv), 0) < 0 ||
        getrandom(keys.salt, sizeof(keys.salt), 0) < 0 ||
        setsockopt(c->sends[0], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) ||
        /* Both are one socket where the other end is on another host. */
        (setsockopt(c->receives[0], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) && errno != EEXIST) ||
        setsockopt(c->sends[0], SOL_TLS, TLS_TX, &keys, sizeof(keys)) ||
        setsockopt(c->receives[0], SOL_TLS, TLS_RX, &keys, sizeof(keys)))
        return -errno;
    return 0;
}

/* ---- the run */

/* The stamps before anything is measured: the first on a host interrupt every CPU. */
static void set_stamps(struct feed_run *run)
{
    const struct options *o = run->pair.options;
    run->stamps.were_on = -1;
    run->stamps_reason = o->has_no_stamps ? "not asked for" : o->has_tls ? "the kernel's TLS gives none" : "";
    if (run->stamps_reason[0])
        return;
    if (stamps_choose(&run->stamps, o->phc))
        run->stamps_reason = "not comparable: the network card's clock cannot be read";
    else if (!run->stamps.is_hardware)
        run->stamps.were_on = stamps_were_on();
    for (size_t i = 0; i < run->connection.n && !run->stamps_reason[0]; i++)
        if (stamps_set(&run->stamps, run->connection.receives[i]))
            run->stamps_reason = "the kernel refuses them (SO_TIMESTAMPING)";
    run->stamps.is_on = !run->stamps_reason[0];
}

/* With the reason in the pair where it cannot be measured. */
static bool open_case(struct feed_run *run)
{
    const struct options *o = run->pair.options;
    struct connection *c = &run->connection;
    int rc = o->socket >= 0 ? connection_adopt(c, o->socket) : connection_open(c, run->transport);
    if (!rc)
        c->rcvbuf = connection_use_rcvbuf(c, run->transport, o->rcvbuf);
    if (!rc && o->has_tls)
        rc = connection_use_tls(c);
    for (size_t i = 0; i < c->n && !rc && run->waiting->is_busy_poll; i++) {
        c->failed = "use SO_BUSY_POLL";
        rc = socket_busy_poll(c->receives[i], o->busy_poll_us);
    }
    if (rc)
        pair_cannot(&run->pair, c->failed, rc);
    else
        set_stamps(run);
    return rc == 0;
}

static bool get_memory(struct feed_run *run)
{
    run->sender.sent = memory_map(run->messages * sizeof(*run->sender.sent));
    run->sender.outgoing = memory_map(FEED_OUTGOING);
    run->receiver.arrivals = memory_map(run->messages * sizeof(*run->receiver.arrivals));
    run->receiver.incoming = memory_map(FEED_INCOMING);
    return run->sender.sent && run->sender.outgoing && run->receiver.arrivals && run->receiver.incoming;
}

static void conduct(struct feed_run *run)
{
    struct pair *pair = &run->pair;
    bool has_stamps = run->stamps.is_on;
    if (has_stamps)
        stamps_begin(&run->stamps);
    run->start_ticks = ticks_now() + (uint64_t)((double)LEAD_MS * run->pair.clock.initial.hz / 1e3);
    run->end_ticks = feed_due(run, run->messages - 1) + run->after_ticks;
    run->sender.next_ping = run->start_ticks;
    bool is_over = pair_work(pair, NULL);
    pair->is_interrupted = stop_is_asked();
    uint64_t begun = feed_due(run, run->warm_ups);
    uint64_t now = ticks_now();
    /* Nothing was due any more from now on; where the measured time had not begun, nothing ever was. */
    if (now < run->end_ticks && (pair->is_interrupted || run->sender.error || (is_over && run->receiver.error)))
        run->end_ticks = now > begun ? now : begun;
    if (has_stamps)
        stamps_end(&run->stamps, run->pair.clock.initial.hz);
    pair->duration_s = (double)(run->end_ticks - begun) / run->pair.clock.initial.hz;
    pair_end(pair, is_over);
    if (!is_over)
        run->receiver.error = -ETIMEDOUT;
    if (run->waiting->is_busy_poll && is_over && !run->receiver.napi_id)
        (void)snprintf(pair->reason, sizeof(pair->reason), "the socket's NAPI id is 0: no device queue that the kernel could poll feeds "
                       "it (loopback has none), so SO_BUSY_POLL would change nothing");
}

static int measure(void *context)
{
    struct feed_run *run = context;
    int status = feed_plan(run);
    if (status || !open_case(run))
        return status;
    if (!get_memory(run))
        return print_error(EXIT_FAILED, "out of memory (a lower --rate or a shorter --duration needs less)");
    status = pair_start(&run->pair);
    if (!status)
        conduct(run);
    return status;
}

/* What the words themselves do not say. */
static int check(void *context)
{
    struct feed_run *run = context;
    struct pair *pair = &run->pair;
    const struct options *o = pair->options;
    run->transport = &feed_transports[o->transport];
    run->format = &feed_formats[o->format];
    run->waiting = &feed_waitings[o->waiting];
    if (!run->transport->is_stream && (run->format->is_websocket || o->has_tls))
        return print_error(EXIT_USAGE, "--transport %s: ws-json and ktls are of tcp alone", run->transport->name);
    if (o->socket >= 0 && !run->transport->open)
        return print_error(EXIT_USAGE, "--socket: multicast stays within one host");
    if (run->waiting->is_busy_poll && run->transport->lines > 1)
        return print_error(EXIT_USAGE, "--waiting busy-poll: a receive that blocks cannot wait for two lines");
    if (!o->plan && o->duration_s * (double)o->rate > (double)FEED_MOST)
        return print_error(EXIT_USAGE, "--rate %u for --duration %g s: at most %d messages", o->rate, o->duration_s, FEED_MOST);
    int status = pair_choose(pair);
    if (!status && cpus_count(&pair->cpus) == 1 && !o->is_reflector)
        return print_error(EXIT_USAGE, "--cpus: the sender spins, so the receiver needs another CPU than %u", pair->ends[RECEIVER].cpu);
    return status;
}

/* All of it, however often it takes. Returns 0 or -errno. */
static int send_back(int fd, const unsigned char *bytes, size_t n)
{
    do {
        ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            return -errno;
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    } while (n > 0);
    return 0;
}

/* Until the stream ends, or the process does: a datagram without a byte goes back as well, and ends nothing here. */
static void reflect(const struct feed_run *run, int fd)
{
    static unsigned char bytes[FEED_INCOMING];
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    bool blocks = run->waiting->is_busy_poll;
    for (;;) {
        if (!blocks && poll(&polled, 1, run->waiting->timeout_ms) <= 0)
            continue;
        ssize_t got = recv(fd, bytes, sizeof(bytes), blocks ? 0 : MSG_DONTWAIT);
        bool is_over = got == 0 ? run->transport->is_stream : got < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED;
        if (is_over || (got >= 0 && send_back(fd, bytes, (size_t)got)))
            return;
    }
}

/*
 * The other host's end of a round trip: a line of JSON once it is where it belongs, then everything that comes over --socket goes
 * back. Without a --socket it is done. Returns the exit status.
 */
static int serve(void *context)
{
    const struct feed_run *run = context;
    int fd = run->pair.options->socket;
    int rc = fd >= 0 && run->waiting->is_busy_poll ? socket_busy_poll(fd, run->pair.options->busy_poll_us) : 0;
    if (rc)
        return print_error(EXIT_FAILED, "the connection cannot be set up: %s", strerror(-rc));
    int status = pair_reflector_say_ready(&run->pair);
    if (!status && fd >= 0)
        reflect(run, fd);
    return status;
}

static struct feed_run the_run;

const struct pair_experiment feed_experiment = {
    .pair = &the_run.pair,
    .run = &the_run,
    .command = &feed_command,
    .roles = &pair_sender_and_receiver,
    .prepare = {feed_prepare_sender, feed_prepare_receiver},
    .work = {feed_send_all, feed_receive_all},
    .check = check,
    .measure = measure,
    .reflect = serve,
    .write_asked = feed_write_asked,
    .write_measured = feed_write_measured,
};
