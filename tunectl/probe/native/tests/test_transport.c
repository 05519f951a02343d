#include "check.h"
#include "wake/mechanisms.h"
#include "wake/wait_method.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* So few that no queue overflows, however late the receiver gets a CPU. */
enum { MESSAGES = 60 };

static void ring_keeps_order_and_says_when_it_is_full(void)
{
    struct ring *ring = ring_new();
    struct message m = {0};
    CHECK(ring != NULL);
    CHECK(ring_take(ring, &m) == -EAGAIN);
    for (uint64_t i = 0; i < RING_SLOTS; i++)
        CHECK(ring_send(ring, &(struct message){.sequence = i}) == 0);
    CHECK(ring_send(ring, &m) == -EAGAIN);
    for (uint64_t i = 0; i < RING_SLOTS; i++)
        CHECK(ring_take(ring, &m) == 0 && m.sequence == i);
    CHECK(ring_take(ring, &m) == -EAGAIN);
    CHECK(ring_send_waking(ring, &(struct message){.sequence = 7}) == 0);
    CHECK(ring_sleep(ring, &m) == 0 && m.sequence == 7);
    ring_free(ring);
    ring_free(NULL);
}

static void nothing_is_there_at_first(const struct mechanism *mechanism)
{
    struct transport transport;
    struct message m = {.sequence = 5, .sent = 6, .remote_received = 7, .remote_sent = 8};
    struct message got = {0};
    CHECK(transport_open(&transport, mechanism) == 0);
    CHECK(mechanism->take(&transport, &got) == -EAGAIN);
    CHECK(mechanism->send(&transport, &m) == 0);
    CHECK(mechanism->spin(&transport, &got) == 0);
    CHECK(memcmp(&m, &got, sizeof(m)) == 0);
    CHECK(transport_napi_id(&transport) == 0);
    transport_close(&transport);
    CHECK(transport.receive_fd == -1 && transport.ring == NULL);
    transport_close(&transport);
}

struct receiver {
    struct transport *transport;
    const struct wait_method *method;
    uint64_t n;
    int error;
};

static void *receive_until_end(void *argument)
{
    struct receiver *r = argument;
    struct message m;
    while ((r->error = r->method->receive(r->transport, &m)) == 0 && m.sequence != SEQUENCE_END)
        r->n += m.sequence == r->n;
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

/* SEQUENCE_END may find no room while much is under way: it is said until it is heard. */
static void end(struct transport *transport, pthread_t thread, bool by_force)
{
    struct timespec pause = {.tv_nsec = 1000000};
    do {
        transport_end(transport, by_force);
        (void)nanosleep(&pause, NULL);
    } while (pthread_tryjoin_np(thread, NULL));
}

/* Every mechanism by every way it can be waited for: each message once, in order, and SEQUENCE_END ends it. */
static void all_arrive(const struct mechanism *mechanism, const struct wait_method *method)
{
    struct transport transport;
    pthread_t thread;
    struct receiver r = {.transport = &transport, .method = method};
    CHECK(transport_open(&transport, mechanism) == 0);
    int rc = method->prepare(&transport, 50);
    /* Before Linux 6.12, SO_BUSY_POLL needs CAP_NET_ADMIN. */
    CHECK(rc == 0 || (rc == -EPERM && method->waiting == WAITING_BUSY_POLL));
    if (rc == 0) {
        CHECK(pthread_create(&thread, NULL, receive_until_end, &r) == 0);
        send_all(&transport);
        end(&transport, thread, false);
        CHECK(r.n == MESSAGES && r.error == 0);
    }
    transport_close(&transport);
}

/* Whoever waits on a socket leaves when its descriptor is taken away, however it waits. */
static void can_be_cut(const struct mechanism *mechanism, const struct wait_method *method)
{
    struct transport transport;
    pthread_t thread;
    struct receiver r = {.transport = &transport, .method = method};
    CHECK(transport_open(&transport, mechanism) == 0);
    if (method->prepare(&transport, 50) == 0) {
        CHECK(pthread_create(&thread, NULL, receive_until_end, &r) == 0);
        send_all(&transport);
        end(&transport, thread, true);
        CHECK(r.error != 0 && transport.is_cut);
    }
    transport_close(&transport);
}

static void tables_are_whole(void)
{
    CHECK(mechanisms_n > 0 && mechanisms_n < 32);
    CHECK(wait_methods_n > 0 && wait_methods_n < 32);
    for (size_t i = 0; i < mechanisms_n; i++)
        CHECK(mechanisms[i].open && mechanisms[i].send && mechanisms[i].take && mechanisms[i].spin && mechanisms[i].block);
    for (size_t i = 0; i < wait_methods_n; i++) {
        CHECK(wait_methods[i].prepare && wait_methods[i].receive);
        CHECK((wait_methods[i].needs == 0) == (wait_methods[i].lack[0] == '\0'));
    }
}

void test_transport(void)
{
    tables_are_whole();
    ring_keeps_order_and_says_when_it_is_full();
    for (size_t i = 0; i < mechanisms_n; i++) {
        nothing_is_there_at_first(&mechanisms[i]);
        for (size_t w = 0; w < wait_methods_n; w++) {
            if (wait_methods[w].needs & ~mechanisms[i].traits)
                continue;
            all_arrive(&mechanisms[i], &wait_methods[w]);
            if (mechanisms[i].socket_type)
                can_be_cut(&mechanisms[i], &wait_methods[w]);
        }
    }
}
