#include "wake/run.h"

#include <errno.h>
#include <string.h>

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
        status = pair_reflector_say_ready();
    if (!status)
        reflect(&t, c->method);
    transport_close(&t);
    return status;
}

int reflector_serve(const struct wake_run *run)
{
    int status = pair_reflector_settle(&run->pair, "wake-reflector", run->options->fifo_priority);
    return status ? status : run->options->socket < 0 ? pair_reflector_say_ready() : serve_socket(run);
}
