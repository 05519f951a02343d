#include "check.h"
#include "link.h"
#include "way.h"

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
    struct link link;
    struct message m = {.sequence = 5, .sent = 6, .far_received = 7, .far_sent = 8};
    struct message got = {0};
    CHECK(link_open(&link, mechanism) == 0);
    CHECK(mechanism->take(&link, &got) == -EAGAIN);
    CHECK(mechanism->send(&link, &m) == 0);
    CHECK(mechanism->spin(&link, &got) == 0);
    CHECK(memcmp(&m, &got, sizeof(m)) == 0);
    CHECK(link_napi_id(&link) == 0);
    link_close(&link);
    CHECK(link.receive_fd == -1 && link.ring == NULL);
    link_close(&link);
}

struct receiver {
    struct link *link;
    const struct way *way;
    uint64_t n;
    int error;
};

static void *receive_until_end(void *argument)
{
    struct receiver *r = argument;
    struct message m;
    while ((r->error = r->way->receive(r->link, &m)) == 0 && m.sequence != SEQUENCE_END)
        r->n += m.sequence == r->n;
    return NULL;
}

static void send_all(struct link *link)
{
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct message m = {.sequence = i};
        int rc;
        do
            rc = link->mechanism->send(link, &m);
        while (rc == -EAGAIN);
        CHECK(rc == 0);
    }
}

/* SEQUENCE_END may find no room while much is under way: it is said until it is heard. */
static void end(struct link *link, pthread_t thread, bool by_force)
{
    struct timespec pause = {.tv_nsec = 1000000};
    do {
        link_end(link, by_force);
        (void)nanosleep(&pause, NULL);
    } while (pthread_tryjoin_np(thread, NULL));
}

/* Every mechanism by every way it can be waited for: each message once, in order, and SEQUENCE_END ends it. */
static void all_arrive(const struct mechanism *mechanism, const struct way *way)
{
    struct link link;
    pthread_t thread;
    struct receiver r = {.link = &link, .way = way};
    CHECK(link_open(&link, mechanism) == 0);
    int rc = way->prepare(&link, 50);
    /* Before Linux 6.12, SO_BUSY_POLL needs CAP_NET_ADMIN. */
    CHECK(rc == 0 || (rc == -EPERM && way->waiting == WAITING_BUSY_POLL));
    if (rc == 0) {
        CHECK(pthread_create(&thread, NULL, receive_until_end, &r) == 0);
        send_all(&link);
        end(&link, thread, false);
        CHECK(r.n == MESSAGES && r.error == 0);
    }
    link_close(&link);
}

/* Whoever waits on a socket leaves when its descriptor is taken away, however it waits. */
static void can_be_cut(const struct mechanism *mechanism, const struct way *way)
{
    struct link link;
    pthread_t thread;
    struct receiver r = {.link = &link, .way = way};
    CHECK(link_open(&link, mechanism) == 0);
    if (way->prepare(&link, 50) == 0) {
        CHECK(pthread_create(&thread, NULL, receive_until_end, &r) == 0);
        send_all(&link);
        end(&link, thread, true);
        CHECK(r.error != 0 && link.is_cut);
    }
    link_close(&link);
}

static void tables_are_whole(void)
{
    CHECK(mechanisms_n > 0 && mechanisms_n < 32);
    CHECK(ways_n > 0 && ways_n < 32);
    for (size_t i = 0; i < mechanisms_n; i++)
        CHECK(mechanisms[i].open && mechanisms[i].send && mechanisms[i].take && mechanisms[i].spin && mechanisms[i].block);
    for (size_t i = 0; i < ways_n; i++)
        CHECK(ways[i].prepare && ways[i].receive && (ways[i].needs == 0) == (ways[i].lack[0] == '\0'));
}

void test_link(void)
{
    tables_are_whole();
    ring_keeps_order_and_says_when_it_is_full();
    for (size_t i = 0; i < mechanisms_n; i++) {
        nothing_is_there_at_first(&mechanisms[i]);
        for (size_t w = 0; w < ways_n; w++) {
            if (ways[w].needs & ~mechanisms[i].traits)
                continue;
            all_arrive(&mechanisms[i], &ways[w]);
            if (mechanisms[i].socket_type)
                can_be_cut(&mechanisms[i], &ways[w]);
        }
    }
}
