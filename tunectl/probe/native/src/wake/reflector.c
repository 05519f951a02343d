#include "wake/run.h"

#include <errno.h>
#include <string.h>

#include "lib/options.h"
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

int wake_reflect(void *context)
{
    const struct wake_run *run = context;
    const struct options *o = run->pair.options;
    struct transport t;
    int rc = 0;
    int status = pair_reflector_settle(&run->pair);
    if (!status && o->socket >= 0) {
        rc = transport_adopt(&t, run->what.mechanism, o->bytes, o->socket);
        rc = rc ? rc : wait_method_prepare(run->what.method, &t, o->fds, o->busy_poll_us);
    }
    if (rc)
        status = print_error(EXIT_FAILED, "the connection cannot be set up: %s", strerror(-rc));
    if (!status)
        status = pair_reflector_say_ready();
    if (!status && o->socket >= 0)
        reflect(&t, run->what.method);
    return status;
}
