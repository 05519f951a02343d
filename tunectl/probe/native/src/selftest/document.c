#include "selftest/document.h"

#include "lib/document.h"
#include "lib/json.h"

static const char *const kinds[] = {
    [PHASE_PREEMPTION] = "preemption", [PHASE_IPI] = "ipi",   [PHASE_COUNT] = "count",
    [PHASE_LOSS] = "loss",             [PHASE_STOP] = "stop",
};

static double to_ns(const struct selftest *t, double ticks)
{
    return ticks * 1e9 / t->clock.rate.hz;
}

bool selftest_passed(const struct selftest *t)
{
    for (size_t i = 0; i < SELFTEST_PHASES; i++)
        if (!t->phases[i].passed)
            return false;
    return true;
}

uint64_t selftest_vouched_ns(const struct selftest *t)
{
    for (size_t i = 0; i < SELFTEST_PHASES; i++) {
        const struct phase *p = &t->phases[i];
        if (p->passed && p->kind == PHASE_IPI)
            return clock_ticks_to_ns((double)p->recall.shortest, t->clock.rate.hz);
        if (p->passed && p->kind == PHASE_PREEMPTION)
            return p->asked_ns;
    }
    return 0;
}

static void write_recall(struct json *j, const struct selftest *t, const struct phase *p)
{
    const struct recall *r = &p->recall;
    json_uint(j, "found", r->found);
    json_uint(j, "missed", r->missed);
    json_uint(j, "counted_as_lost", r->beyond);
    json_uint(j, "gaps_with_them", r->gaps);
    json_uint(j, "gaps_total", p->gaps_total);
    json_uint(j, "gaps_lost", p->gaps_lost);
    json_real(j, "shortest_gap_ns", to_ns(t, (double)r->shortest), 0);
    if (p->kind != PHASE_IPI) {
        /* The truth of an interrupt from another CPU is a bracket around it, and no length. */
        json_real(j, "shortfall_ns", to_ns(t, (double)r->shortfall), 0);
        json_object_begin(j, "length_error_ns");
        json_real(j, "min", to_ns(t, r->error_min), 0);
        json_real(j, "median", to_ns(t, r->error_median), 0);
        json_real(j, "max", to_ns(t, r->error_max), 0);
        json_object_end(j);
    }
    json_bool(j, "account_is_exact", p->is_exact);
    json_real(j, "conservation_ppm", p->conservation_ppm, 3);
}

static void write_stop(struct json *j, const struct phase *p)
{
    json_real(j, "truth_ns", p->truth_ns, 0);
    json_real(j, "max_ns", p->max_ns, 0);
    json_real(j, "max_error_ns", p->max_error_ns, 0);
    json_real(j, "percentile_error_ns", p->percentile_error_ns, 0);
}

static void write_phase(struct json *j, const struct selftest *t, const struct phase *p)
{
    json_object_begin(j, NULL);
    json_string(j, "name", p->name);
    json_string(j, "kind", kinds[p->kind]);
    json_string(j, "outcome", p->passed ? "passed" : p->did_run ? "failed" : "not-run");
    json_string(j, "reason", p->reason);
    json_uint(j, "asked_ns", p->asked_ns);
    json_uint(j, "injected", p->injected);
    if (p->did_run && p->kind == PHASE_STOP)
        write_stop(j, p);
    else if (p->did_run)
        write_recall(j, t, p);
    json_object_end(j);
}

int selftest_document_write(FILE *stream, const void *selftest)
{
    const struct selftest *t = selftest;
    uint64_t vouched_ns = selftest_vouched_ns(t);
    struct json j;
    json_init(&j, stream);
    json_object_begin(&j, NULL);
    document_write_header(&j, "tunectl.probe.selftest/1", &t->facts, t->at_s);
    json_uint(&j, "cpu", t->cpu);
    json_uint(&j, "threshold_ns", (uint64_t)to_ns(t, (double)t->threshold_ticks));
    json_object_begin(&j, "clock");
    document_write_clock(&j, &t->clock, &t->facts);
    json_object_end(&j);
    json_bool(&j, "passed", selftest_passed(t));
    if (vouched_ns)
        json_uint(&j, "vouched_ns", vouched_ns);
    else
        json_null(&j, "vouched_ns");
    json_array_begin(&j, "phases");
    for (size_t i = 0; i < SELFTEST_PHASES; i++)
        write_phase(&j, t, &t->phases[i]);
    json_array_end(&j);
    json_object_end(&j);
    return 0;
}
