#include "wake/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/document.h"
#include "lib/loopback.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum { IDLE_MOST_MS = 60000 };

const struct command wake_command = {
    .name = "wake",
    .experiment = OF_WAKE,
    .about =
        "wake: how long a message takes to a waiting thread, asleep or spinning. The result is a JSON document of what was counted\n"
        "(schema tunectl.probe.wake.raw/1); `tunectl probe wake` chooses CPUs and cases, and makes figures of it.\n",
    .holds = "what was counted, in ticks of the clock; each delay and how often it came, in turns. `tunectl probe wake` makes figures, "
             "speed-ups and warnings of it",
};

bool wake_case_parse(struct wake_case *c, const char *text)
{
    char mechanism[24];
    char method[24];
    char more;
    *c = (struct wake_case){0};
    if (sscanf(text, "%23[^:]:%23[^:]:%lf%c", mechanism, method, &c->idle_ms, &more) != 3)
        return false;
    for (size_t i = 0; i < mechanisms_n; i++)
        if (strcmp(mechanisms[i].name, mechanism) == 0)
            c->mechanism = &mechanisms[i];
    for (size_t i = 0; i < wait_methods_n; i++)
        if (strcmp(wait_methods[i].name, method) == 0)
            c->method = &wait_methods[i];
    if (!c->mechanism || !c->method || c->method->needs & ~c->mechanism->traits)
        return false;
    /* A timer has no case without idle time: it would never expire. */
    return c->idle_ms >= 0.0 && c->idle_ms <= (double)IDLE_MOST_MS && (c->idle_ms > 0.0 || c->mechanism->send);
}

/* ---- the document */

/* Differences between the stamps of a message, in ticks. */
enum difference {
    DELAY,              /* received - sent; between hosts of the message that came back */
    AFTER_SEND,         /* received - sent_after */
    SEND_CALL,          /* sent_after - sent: what the call itself took */
    LATE,               /* sent - due */
    FAR,                /* between hosts: how long the other one had the message */
    AWAY,               /* between hosts: the rest */
    DIFFERENCES,
};

static const char *const names[DIFFERENCES] = {"delay", "after_send", "send_call", "late", "far", "away"};

static int64_t difference_of(const struct exchange *x, enum difference which, size_t i)
{
    int64_t delay = (int64_t)(x->receiving.at[i] - x->sending.before[i]);
    int64_t far = (int64_t)((double)x->receiving.remote_ticks[i] * x->remote_ratio);
    switch (which) {
    case AFTER_SEND:
        return (int64_t)(x->receiving.at[i] - x->sending.after[i]);
    case SEND_CALL:
        return (int64_t)(x->sending.after[i] - x->sending.before[i]);
    case LATE:
        return (int64_t)(x->sending.before[i] - (x->sending.start_ticks + i * x->sending.period_ticks));
    case FAR:
        return far;
    case AWAY:
        return delay - far;
    default:
        return delay;
    }
}

static bool is_negative(const struct exchange *x, size_t i)
{
    return x->receiving.at[i] && difference_of(x, DELAY, i) < 0;
}

struct differences {
    const struct exchange *x;
    enum difference which;
};

/* Of the messages that arrived. */
static bool take_difference(const void *context, size_t i, int64_t *value)
{
    const struct differences *of = context;
    *value = difference_of(of->x, of->which, i);
    return of->x->receiving.at[i] && !is_negative(of->x, i);
}

/* Memory is read, and no CPU is interrupted. */
static void occupancy_take(struct occupancy *occupancy, const struct pair *pair)
{
    struct snapshot *files = &occupancy->files;
    occupancy->tids[0] = (uint64_t)atomic_load(&pair->ends[RECEIVER].tid);
    occupancy->tids[1] = (uint64_t)atomic_load(&pair->ends[SENDER].tid);
    occupancy->tids[2] = (uint64_t)getpid();
    occupancy->ticks = ticks_now();
    snapshot_add(files, "", "/proc/schedstat");
    /* Without CONFIG_SCHEDSTATS */
    if (!files->files[0].text.length)
        snapshot_add(files, "", "/proc/stat");
    for (size_t i = 0; i < ENDS + 1; i++)
        snapshot_add(files, "", "/proc/self/task/%d/schedstat", (int)occupancy->tids[i]);
}

static void write_occupancy(struct json *j, const char *key, const struct occupancy *occupancy)
{
    json_open(j, key, '{');
    json_uint(j, "ticks", occupancy->ticks);
    json_uints(j, "tids", occupancy->tids, ENDS + 1);
    document_write_files(j, "files", &occupancy->files);
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct exchange *x)
{
    const struct sending *s = &x->sending;
    const struct receiving *r = &x->receiving;
    const struct usage used = r->used;
    int error = s->error ? s->error : r->error;
    uint64_t negative = 0;
    uint64_t unready = 0;   /* sent while the receiver still made its caches cold after the one before */
    for (size_t i = 0; i < s->n; i++) {
        negative += is_negative(x, i);
        unready += i > 0 && s->before[i] < r->ready[i - 1];
    }
    json_counts(j, {"sent", s->n}, {"arrived", atomic_load(&r->n)}, {"duplicates", r->duplicates}, {"reordered", r->reordered},
                {"negative", negative}, {"unready", unready}, {"late_expirations", x->transport->timer.late},
                {"period_ticks", s->period_ticks},
                {"page_faults", s->used.minor_faults + s->used.major_faults + used.minor_faults + used.major_faults},
                {"preemptions", used.preemptions}, {"receiver_ns", used.cpu_ns}, {"receiver_ticks", used.ticks},
                {"napi_id", atomic_load(&x->napi_id)}, {"errno", (uint64_t)-error});
    json_bool(j, "has_no_napi", s->has_no_napi);
    json_string(j, "failed", !error ? "" : s->error ? "sending" : "receiving");
}

void wake_write_measured(struct json *j, void *context)
{
    const struct wake_run *run = context;
    const struct exchange *x = &run->exchange;
    struct differences of = {.x = x};
    enum difference end = exchange_is_of_a_timer(x) ? AFTER_SEND : x->remote_ratio > 0.0 ? DIFFERENCES : FAR;
    write_counts(j, x);
    for (of.which = DELAY; of.which < end; of.which++)
        values_write(j, names[of.which], 0, x->sending.n, take_difference, &of);
    write_occupancy(j, "before", &run->before);
    write_occupancy(j, "after", &run->after);
}

static void write_asked(struct json *j, const void *context)
{
    const struct wake_case *c = &((const struct wake_run *)context)->what;
    json_string(j, "mechanism", c->mechanism->name);
    json_string(j, "waiting", waiting_names[c->method->waiting]);
    json_string(j, "way", c->method->name);
    json_real(j, "idle_ms", c->idle_ms, 6);
}

static void write_run(struct json *j, const void *context)
{
    const struct options *o = ((const struct wake_run *)context)->pair.options;
    json_counts(j, {"messages", o->messages}, {"bytes", o->bytes}, {"fds", o->fds}, {"dirty_kib", o->dirty_kib});
    json_bool(j, "has_warm_sender", !o->has_cold_sender);
}

/* ---- the run */

/* With the reason in the pair where it cannot be measured. */
static bool open_case(struct wake_run *run, struct transport *t)
{
    const struct options *o = run->pair.options;
    const struct mechanism *mechanism = run->what.mechanism;
    int rc = o->socket >= 0 ? transport_adopt(t, mechanism, o->bytes, o->socket) : transport_open(t, mechanism, o->bytes);
    if (!rc)
        rc = wait_method_prepare(run->what.method, t, o->fds, o->busy_poll_us);
    if (rc)
        pair_cannot(&run->pair, mechanism->connect == loopback_vsock ? "be set up (module vsock_loopback: is it there, and loaded?)"
                                                                     : "be set up", rc);
    return rc == 0;
}

static int conduct(struct wake_run *run)
{
    struct pair *pair = &run->pair;
    int status = pair_start(pair);
    if (status)
        return status;
    occupancy_take(&run->before, pair);
    bool is_over = exchange_run(&run->exchange, pair);
    occupancy_take(&run->after, pair);
    pair->duration_s = (double)(run->after.ticks - run->before.ticks) / pair->clock.initial.hz;
    pair->is_interrupted = stop_is_asked();
    pair_end(pair, is_over);
    return EXIT_OK;
}

/* What a receiver still waits for stays where it is: it ends with the process. */
static int measure(void *context)
{
    static struct transport transport;
    static struct transport own;
    struct wake_run *run = context;
    struct pair *pair = &run->pair;
    const struct options *o = pair->options;
    if (!open_case(run, &transport))
        return EXIT_OK;
    run->exchange = (struct exchange){
        .transport = &transport,
        .method = run->what.method,
        .messages = o->messages,
        .ticks_per_ns = pair->ticks_per_ns,
        .remote_ratio = o->peer_hz ? pair->clock.initial.hz / (double)o->peer_hz : 0.0,
        .working_set_bytes = (size_t)o->dirty_kib * 1024,
        .sending.period_ticks = (uint64_t)(run->what.idle_ms * 1e6 * pair->ticks_per_ns),
    };
    pair->context = &run->exchange;
    /* Without a transport of its own, for whatever reason, the sender is cold. */
    if (!o->has_cold_sender && run->what.mechanism->send && transport_open(&own, run->what.mechanism, o->bytes) == 0)
        run->exchange.own = &own;
    if (exchange_init(&run->exchange))
        return print_error(EXIT_FAILED, "out of memory (fewer --messages need less)");
    return conduct(run);
}

/* What the words themselves do not say. */
static int check(void *context)
{
    struct wake_run *run = context;
    struct pair *pair = &run->pair;
    const struct options *o = pair->options;
    if (!wake_case_parse(&run->what, o->wake_case))
        return print_error(EXIT_USAGE, "--case %.60s: there is no such case; write MECHANISM:WAY:IDLE_MS, like tcp:block:10, with 0 to %d ms "
                           "(of a timer, above 0)", o->wake_case, IDLE_MOST_MS);
    if (o->socket >= 0 && !(run->what.mechanism->socket_type && (o->is_reflector || o->peer_hz)))
        return print_error(EXIT_USAGE, "--socket is for a case of tcp or udp, with --peer-hz or --reflect");
    int status = pair_choose(pair);
    bool is_starving = o->fifo_priority && cpus_count(&pair->cpus) == 1 && run->what.method->waiting == WAITING_SPINNING;
    if (!status && is_starving && !o->is_reflector)
        return print_error(EXIT_USAGE, "a SCHED_FIFO spinner on CPU %u would starve the sender there", pair->ends[RECEIVER].cpu);
    return status;
}

static void reflect(struct transport *t, const struct wait_method *method)
{
    struct message m;
    while (method->receive(t, &m) == 0) {
        /* A greeting has the highest bit, and may come more than once. */
        if (m.sequence >> 63 && m.sequence != SEQUENCE_WARM_UP)
            continue;
        m.remote_received = ticks_after_loads();
        int rc;
        do {
            m.remote_sent = ticks_now();
            rc = t->mechanism->send(t, &m);
        } while (rc == -EAGAIN);
        if (rc)
            break;
    }
}

/*
 * The other host's end of a round trip. Says in a line of JSON how fast its counter is, then sends every message that comes over --socket
 * back with its own two stamps, until the connection or the process is ended; without a --socket, it is done.
 */
static int serve(void *context)
{
    const struct wake_run *run = context;
    const struct options *o = run->pair.options;
    struct transport t;
    int rc = o->socket < 0 ? 0 : transport_adopt(&t, run->what.mechanism, o->bytes, o->socket);
    if (!rc && o->socket >= 0)
        rc = wait_method_prepare(run->what.method, &t, o->fds, o->busy_poll_us);
    if (rc)
        return print_error(EXIT_FAILED, "the connection cannot be set up: %s", strerror(-rc));
    int status = pair_reflector_say_ready(&run->pair);
    if (!status && o->socket >= 0)
        reflect(&t, run->what.method);
    return status;
}

static struct wake_run the_run;

const struct pair_experiment wake_experiment = {
    .pair = &the_run.pair,
    .run = &the_run,
    .command = &wake_command,
    .roles = &pair_sender_and_receiver,
    .prepare = {exchange_touch_sending, exchange_touch_receiving},
    .work = {exchange_send_all, exchange_receive_all},
    .check = check,
    .measure = measure,
    .reflect = serve,
    .write_run = write_run,
    .write_asked = write_asked,
    .write_measured = wake_write_measured,
};
