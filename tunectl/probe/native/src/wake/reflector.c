#include "wake/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "lib/output.h"
#include "lib/ticks.h"

/* A greeting has the highest bit, and may come more than once. */
static bool is_greeting(const struct message *m)
{
    return m->sequence >> 63 && m->sequence != SEQUENCE_WARM_UP;
}

static void reflect(struct transport *t, const struct wait_method *method)
{
    struct message m;
    while (method->receive(t, &m) == 0) {
        if (is_greeting(&m))
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

static int say_ready(void)
{
    struct clock_span clock;
    clock_span_begin(&clock);
    (void)printf("{\"hz\": %.0f}\n", clock.initial.hz);
    return fflush(stdout) ? print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno)) : EXIT_OK;
}

static int serve_socket(const struct wake_run *run)
{
    const struct options *o = run->options;
    const struct wake_case *c = &run->what;
    struct transport t;
    int status;
    int rc = transport_adopt(&t, c->mechanism, o->bytes, o->socket);
    if (!rc)
        rc = wait_method_prepare(c->method, &t, o->fds, o->busy_poll_us);
    if (rc)
        status = print_error(EXIT_FAILED, "the connection cannot be set up: %s", strerror(-rc));
    else
        status = say_ready();
    if (!status)
        reflect(&t, c->method);
    transport_close(&t);
    return status;
}

int reflector_serve(const struct wake_run *run)
{
    int status = pair_settle("reflector", run->pair.ends[RECEIVER].cpu, run->options->fifo_priority);
    (void)prctl(PR_SET_NAME, "wake-reflector");
    (void)mlockall(MCL_CURRENT);
    return status ? status : run->options->socket < 0 ? say_ready() : serve_socket(run);
}
