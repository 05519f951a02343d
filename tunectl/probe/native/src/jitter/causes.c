#include "jitter/causes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fixed_labels[CAUSE_FIXED_LABELS] = {
    [CAUSE_OUTSIDE_KERNEL] = "not the kernel: hypervisor, SMI or hardware",
    [CAUSE_NOT_TRACED] = "not known: the trace buffer was full",
    [CAUSE_NOT_LISTED] = "not known: beyond the list of events",
    [CAUSE_OTHER] = "one of very many causes",
};

int causes_init(struct causes *c, const struct gap *gaps, size_t n, uint64_t own_tid)
{
    *c = (struct causes){.gaps = gaps, .n_gaps = n, .own_tid = own_tid};
    c->of_gap = calloc(n + 1, sizeof(*c->of_gap));
    c->labels = calloc(CAUSE_LABELS_MAX, sizeof(*c->labels));
    for (size_t i = 0; c->labels && i < CAUSE_FIXED_LABELS; i++)
        if ((c->labels[i] = strdup(fixed_labels[i])))
            c->n_labels++;
    return c->of_gap && c->n_labels == CAUSE_FIXED_LABELS ? 0 : -ENOMEM;
}

void causes_deinit(struct causes *c)
{
    for (uint32_t i = 0; i < c->n_labels; i++)
        free(c->labels[i]);
    free(c->labels);
    free(c->of_gap);
    *c = (struct causes){0};
}

/* Few labels make up nearly all gaps, so the one found is moved nowhere and the search stays a plain walk. */
static int label_of(struct causes *c, const char *text, uint32_t *label)
{
    for (uint32_t i = 0; i < c->n_labels; i++)
        if (strcmp(c->labels[i], text) == 0) {
            *label = i;
            return 0;
        }
    if (c->n_labels == CAUSE_LABELS_MAX) {
        *label = CAUSE_OTHER;
        return 0;
    }
    c->labels[c->n_labels] = strdup(text);
    if (!c->labels[c->n_labels])
        return -ENOMEM;
    *label = c->n_labels++;
    return 0;
}

static void add_part(struct causes *c, const char *text)
{
    for (size_t i = 0; i < c->n_parts && i < CAUSE_PARTS_MAX; i++)
        if (strcmp(c->parts[i], text) == 0)
            return;
    if (c->n_parts < CAUSE_PARTS_MAX)
        memcpy(c->parts[c->n_parts], text, strlen(text) + 1);
    if (c->n_parts <= CAUSE_PARTS_MAX)
        c->n_parts++;
}

/* Names the gap at hand by what was gathered for it, and goes on to the next. */
static int close_gap(struct causes *c)
{
    char text[CAUSE_LABEL_SIZE];
    size_t used = 0;
    int rc = 0;
    for (size_t i = 0; i < c->n_parts && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " + " : "",
                                 i < CAUSE_PARTS_MAX ? c->parts[i] : "more");
    if (c->n_parts)
        rc = label_of(c, text, &c->of_gap[c->at]);
    c->n_parts = 0;
    c->at++;
    return rc;
}

int causes_add(struct causes *c, const struct trace_event *event)
{
    int rc = 0;
    char text[TRACE_CAUSE_SIZE];
    enum trace_role role = trace_event_cause(text, event, c->own_tid);
    c->events++;
    c->last_ticks = event->ticks;
    while (!rc && c->at < c->n_gaps && c->gaps[c->at].end < event->ticks)
        rc = close_gap(c);
    if (c->at == c->n_gaps || event->ticks < c->gaps[c->at].start)
        c->events_apart++;
    else if (role == TRACE_THREAD || (role == TRACE_INTERRUPTION && !c->is_away))
        add_part(c, text);
    if (role == TRACE_THREAD || role == TRACE_BACK)
        c->is_away = role == TRACE_THREAD;
    return rc;
}

int causes_finish(struct causes *c, uint64_t events_lost)
{
    int rc = 0;
    if (c->n_parts)
        rc = close_gap(c);
    c->events_lost = events_lost;
    for (; events_lost && c->at < c->n_gaps; c->at++)
        if (c->gaps[c->at].end > c->last_ticks)
            c->of_gap[c->at] = CAUSE_NOT_TRACED;
    return rc;
}

static int compare_totals(const void *left, const void *right)
{
    uint64_t a = ((const struct cause_row *)left)->total;
    uint64_t b = ((const struct cause_row *)right)->total;
    return (a < b) - (a > b);
}

static void account(struct cause_row *row, uint64_t length)
{
    row->count++;
    row->total += length;
    if (length > row->max)
        row->max = length;
}

size_t causes_table(struct cause_row *rows, const struct causes *c, const struct recorder *r)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->n_labels; i++)
        rows[i] = (struct cause_row){.label = i};
    for (size_t i = 0; i < c->n_gaps; i++)
        account(&rows[c->of_gap[i]], c->gaps[i].end - c->gaps[i].start);
    rows[CAUSE_NOT_LISTED] = (struct cause_row){CAUSE_NOT_LISTED, r->gaps_lost, r->lost_ticks, r->lost_max_ticks};
    for (uint32_t i = 0; i < c->n_labels; i++)
        if (rows[i].count)
            rows[n++] = rows[i];
    qsort(rows, n, sizeof(*rows), compare_totals);
    return n;
}
