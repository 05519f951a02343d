#include "check.h"
#include "lib/clock.h"
#include "lib/loopback.h"
#include "transports.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* So few that no queue overflows, however late the receiver gets a CPU. */
enum { MESSAGES = 60 };

static void ring_keeps_order_and_says_when_it_is_full(void)
{
    struct transport transport = {.ring = ring_new()};
    struct transport *ring = &transport;
    struct message m = {0};
    CHECK(transport.ring != NULL);
    CHECK(ring_take(ring, &m) == -EAGAIN);
    for (uint64_t i = 0; i < RING_SLOTS; i++)
        CHECK(ring_send(ring, &(struct message){.sequence = i}) == 0);
    CHECK(ring_send(ring, &m) == -EAGAIN);
    for (uint64_t i = 0; i < RING_SLOTS; i++)
        CHECK(ring_take(ring, &m) == 0 && m.sequence == i);
    CHECK(ring_take(ring, &m) == -EAGAIN);
    CHECK(ring_send_waking(ring, &(struct message){.sequence = 7}) == 0);
    CHECK(ring_sleep(ring, &m) == 0 && m.sequence == 7);
    free(transport.ring);
}

static void nothing_is_there_at_first(const struct mechanism *mechanism, size_t bytes)
{
    struct transport transport;
    struct message m = {.sequence = 5, .sent = 6, .remote_received = 7, .remote_sent = 8};
    struct message got = {0};
    CHECK(transport_open(&transport, mechanism, bytes) == 0);
    CHECK(mechanism->take(&transport, &got) == -EAGAIN);
    CHECK(mechanism->send(&transport, &m) == 0);
    while (mechanism->take(&transport, &got) == -EAGAIN)
        continue;
    CHECK(memcmp(&m, &got, sizeof(m)) == 0);
    CHECK(!(mechanism->traits & TRAIT_NAPI) || socket_napi_id(transport.receive_fd) == 0);
    transport_close(&transport);
}

struct receiver {
    struct transport *transport;
    const struct wait_method *method;
    uint64_t n;
    int error;
};

static void *receive_all(void *argument)
{
    struct receiver *r = argument;
    struct message m;
    while (r->n < MESSAGES && (r->error = r->method->receive(r->transport, &m)) == 0 && m.sequence == r->n)
        r->n++;
    return NULL;
}

static void send_all(struct transport *transport)
{
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct message m = {.sequence = i};
        int rc;
        do
            rc = transport->mechanism->send(transport, &m);
        while (rc == -EAGAIN);
        CHECK(rc == 0);
    }
}

/* Every mechanism by every way it can be waited for: each message once, in order. A timer's are its expirations. */
static void all_arrive(const struct mechanism *mechanism, const struct wait_method *method, size_t bytes, unsigned fds)
{
    struct transport transport;
    pthread_t thread;
    struct receiver r = {.transport = &transport, .method = method};
    CHECK(transport_open(&transport, mechanism, bytes) == 0);
    int rc = wait_method_prepare(method, &transport, fds, 50);
    /* Before Linux 6.12, SO_BUSY_POLL needs CAP_NET_ADMIN. */
    CHECK(rc == 0 || (rc == -EPERM && method->waiting == WAITING_BUSY_POLL));
    if (rc == 0) {
        if (mechanism->send) {
            CHECK(pthread_create(&thread, NULL, receive_all, &r) == 0);
            send_all(&transport);
        } else {
            struct message m;
            transport_start_timer(&transport, 20000);
            CHECK(method->receive(&transport, &m) == 0 && m.sequence == SEQUENCE_WARM_UP);
            CHECK(pthread_create(&thread, NULL, receive_all, &r) == 0);
        }
        (void)pthread_join(thread, NULL);
        CHECK(r.n == MESSAGES && r.error == 0);
    }
    transport_close(&transport);
}

/* No expiration comes before it is due, and those that nobody waited for are counted. */
static void a_timer_is_never_early(const struct mechanism *mechanism)
{
    struct transport transport;
    struct timespec pause = {.tv_nsec = 5000000};
    CHECK(transport_open(&transport, mechanism, sizeof(struct message)) == 0);
    CHECK(transport_may_sleep(&transport, true) == 0);
    transport_start_timer(&transport, 1000000);
    for (uint64_t i = 0; i < 8; i++) {
        struct message m;
        CHECK(mechanism->block(&transport, &m) == 0 && clock_ns(CLOCK_MONOTONIC) >= m.sent);
        CHECK(m.sent == transport.timer.start_ns + i * 1000000);
        if (i == 1)
            (void)nanosleep(&pause, NULL);
    }
    CHECK(transport.timer.late >= 3);
    transport_close(&transport);
}

static void tables_are_whole(void)
{
    CHECK(mechanisms_n > 0 && mechanisms_n < 32);
    CHECK(wait_methods_n > 0 && wait_methods_n < 32);
    for (size_t i = 0; i < mechanisms_n; i++) {
        unsigned traits = mechanisms[i].traits;
        CHECK(mechanisms[i].take && !mechanisms[i].send == !!(traits & TRAIT_TIMER));
        CHECK(!!mechanisms[i].block == !!(traits & (TRAIT_BLOCK | TRAIT_LOOP)) && !!mechanisms[i].spin == !!(traits & TRAIT_SPIN));
    }
    for (size_t i = 0; i < wait_methods_n; i++)
        CHECK(wait_methods[i].needs && wait_methods[i].receive);
}

/* vsock needs a module, which a kernel may not have. */
static bool is_here(const struct mechanism *mechanism)
{
    int fds[LOOPBACK_ENDS];
    if (mechanism->connect != loopback_vsock)
        return true;
    bool is_open = loopback_vsock(fds) == 0;
    for (size_t end = 0; end < LOOPBACK_ENDS; end++)
        if (fds[end] >= 0)
            (void)close(fds[end]);
    return is_open;
}

void test_transport(void)
{
    const size_t sizes[] = {sizeof(struct message), 1500};
    tables_are_whole();
    ring_keeps_order_and_says_when_it_is_full();
    for (size_t i = 0; i < mechanisms_n; i++) {
        if (!is_here(&mechanisms[i]))
            continue;
        for (size_t s = 0; s < 2; s++) {
            if (mechanisms[i].send)
                nothing_is_there_at_first(&mechanisms[i], sizes[s]);
            for (size_t w = 0; w < wait_methods_n; w++)
                if (!(wait_methods[w].needs & ~mechanisms[i].traits))
                    all_arrive(&mechanisms[i], &wait_methods[w], sizes[s], s ? 20 : 1);
        }
        if (!mechanisms[i].send)
            a_timer_is_never_early(&mechanisms[i]);
    }
}
