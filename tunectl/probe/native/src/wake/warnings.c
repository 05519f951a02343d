#include "wake/warnings.h"

#include <errno.h>
#include <string.h>

#include "lib/files.h"

static const double late_ns_named = 1e6;        /* a sender later than that did not keep its schedule */
static const double clock_drift_ppm_allowed = 20;

static bool is_isolated(const struct wake_run *run, unsigned cpu)
{
    return cpu_list_has(&run->facts.isolated, cpu);
}

/* "CPU 3", "CPUs 2 and 3" or, when there is nothing to say, NULL. */
static const char *named(char *text, size_t size, const struct placement *placement, bool sender, bool receiver)
{
    if (!sender && !receiver)
        return NULL;
    if (sender && receiver && !placement->is_same_cpu)
        (void)snprintf(text, size, "CPUs %u and %u", placement->sender, placement->receiver);
    else
        (void)snprintf(text, size, "CPU %u", receiver ? placement->receiver : placement->sender);
    return text;
}

static bool is_not_performance(const struct wake_run *run, unsigned cpu)
{
    char governor[64];
    file_line(governor, sizeof(governor), run->facts.root, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
    return governor[0] && strcmp(governor, "performance") != 0;
}

static void warn_placement(struct wake_run *run)
{
    const struct placement *placement = &run->placement;
    char text[64];
    const char *cpus = named(text, sizeof(text), placement, !is_isolated(run, placement->sender),
                             !is_isolated(run, placement->receiver));
    if (placement->is_fallback)
        warnings_add(&run->warnings, "no two CPUs are isolated on this host: %s %s chosen among the allowed ones "
                     "(--cpus S,R names others)", cpus ? cpus : "two", placement->is_same_cpu ? "was" : "were");
    if (cpus)
        warnings_add(&run->warnings, "not isolated: %s; other threads can be scheduled there, and delay a message", cpus);
    if (placement->is_same_cpu)
        warnings_add(&run->warnings, "sender and receiver share CPU %u: a spinner there holds up the thread that feeds it, and "
                     "a sleeper is woken without leaving the CPU", placement->sender);
    if (placement->is_same_core)
        warnings_add(&run->warnings, "sender and receiver (CPUs %u and %u) share a physical core: they slow each other",
                     placement->sender, placement->receiver);
    if (placement->shares_main && !placement->is_same_cpu)
        warnings_add(&run->warnings, "no CPU is left for the probe's main thread: it shares CPU %u with the sender, and nobody "
                     "watches whether somebody else wants the two CPUs", placement->sender);
    cpus = named(text, sizeof(text), placement, is_not_performance(run, placement->sender),
                 is_not_performance(run, placement->receiver));
    if (cpus)
        warnings_add(&run->warnings, "the frequency governor is not performance on %s", cpus);
}

static void warn_two_spinners(struct wake_run *run)
{
    if (!run->placement.is_same_core)
        return;
    for (size_t i = 0; i < run->cases_n; i++) {
        if (run->cases[i].method->waiting != WAITING_SPINNING || run->cases[i].idle_ms > 0.0)
            continue;
        warnings_add(&run->warnings, "two spinners share a physical core in the cases without idle time: the receiver, and the "
                     "sender, which spins until the next message is due");
        return;
    }
}

static void warn_fifo(struct wake_run *run)
{
    const struct host_facts *facts = &run->facts;
    if (!run->options->fifo_priority)
        return;
    if (run->placement.is_same_cpu)
        warnings_add(&run->warnings, "a SCHED_FIFO spinner would starve the sender on its own CPU %u: the spinning cases were "
                     "left out", run->placement.receiver);
    if (facts->rt_runtime_us >= 0)
        warnings_add(&run->warnings, "sched_rt_runtime_us is %lld of %lld: the kernel may take the CPU from a SCHED_FIFO spinner "
                     "for some 50 ms of each second, and so may the deadline fair server", facts->rt_runtime_us,
                     facts->rt_period_us);
}

static void warn_clock(struct wake_run *run)
{
    const struct clock_offset *offset = &run->offset;
    double drift_ppm = (run->clock.rate.hz / run->clock.initial.hz - 1.0) * 1e6;
    if (!run->facts.has_stable_tsc)
        warnings_add(&run->warnings, "this CPU's counter is not invariant (constant_tsc, nonstop_tsc): delays may be wrong");
    if (offset->is_known && offset->least_ticks > offset->most_ticks)
        warnings_add(&run->warnings, "the counters of CPU %u and CPU %u are not synchronised (no offset between them explains "
                     "the stamps): delays are wrong", run->placement.sender, run->placement.receiver);
    else if (offset->is_known && (offset->least_ticks > 0 || offset->most_ticks < 0))
        warnings_add(&run->warnings, "the counter of CPU %u is %.0f to %.0f ns ahead of CPU %u's: delays are wrong by as much",
                     run->placement.receiver, (double)offset->least_ticks * 1e9 / run->clock.rate.hz,
                     (double)offset->most_ticks * 1e9 / run->clock.rate.hz, run->placement.sender);
    if (drift_ppm > clock_drift_ppm_allowed || drift_ppm < -clock_drift_ppm_allowed)
        warnings_add(&run->warnings, "the counter's rate moved by %.0f ppm during the run", drift_ppm);
}

void wake_warn(struct wake_run *run)
{
    if (run->is_interrupted)
        warnings_add(&run->warnings, "a signal ended the run early: cases are missing or hold fewer messages");
    warn_placement(run);
    warn_two_spinners(run);
    warn_fifo(run);
    warn_clock(run);
    if (run->facts.is_virtual)
        warnings_add(&run->warnings, "this is a virtual machine: waking an idle CPU goes through the hypervisor");
    if (!run->is_locked)
        warnings_add(&run->warnings, "memory could not be locked (see `ulimit -l`)");
}

void wake_warn_case(struct wake_case *c, const struct wake_run *run, const struct exchange *x)
{
    struct warnings *w = &c->warnings;
    double tick_ns = 1e9 / run->clock.initial.hz;
    int error = x->sending.error ? x->sending.error : x->transport->is_cut ? 0 : x->receiving.error;
    if (c->delay.n == 0)
        return;
    if (error)
        warnings_add(w, "%s failed before the last message: %s", x->sending.error ? "sending" : "receiving", strerror(-error));
    if (c->sent < x->messages)
        warnings_add(w, "%zu of %zu messages were sent", c->sent, x->messages);
    if (c->lost)
        warnings_add(w, "%zu of %zu messages were lost", c->lost, c->sent);
    if (c->duplicates)
        warnings_add(w, "%llu messages came twice or were no messages of this case", (unsigned long long)c->duplicates);
    if (c->reordered)
        warnings_add(w, "%llu messages came after a later one", (unsigned long long)c->reordered);
    if (c->negative)
        warnings_add(w, "%llu messages were received before they were sent, by the two CPUs' counters: left out",
                     (unsigned long long)c->negative);
    if ((double)c->late.at[0] * tick_ns > late_ns_named)
        warnings_add(w, "the sender did not keep its schedule: half of the messages were sent %.0f us late or later",
                     (double)c->late.at[0] * tick_ns / 1e3);
    if (c->page_faults)
        warnings_add(w, "the probe itself took %llu page faults", (unsigned long long)c->page_faults);
    if (c->preemptions)
        warnings_add(w, "the receiver was preempted %llu times", (unsigned long long)c->preemptions);
}
