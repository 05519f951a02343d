"""What a sample may be of: the rules are given every one of them, and the sources make no other."""

QUANTITIES = [
    "core_throttles", "package_throttles", "thermal_interrupts",
    "base_khz", "highest_khz", "bios_limit_khz", "max_khz", "max_perf_khz",
    "frequency_khz", "sentinel_khz", "core_khz",
    "temperature_mc", "trip_mc", "cooling_state",
    "interrupts", "timer_ticks", "function_calls", "reschedules", "own_interruptions",
    "knob", "manager", "device", "source", "clock_error_ns", "clock_step_ns",
    "smis", "pcie_errors", "memory_errors", "carrier_changes", "nic_lost", "nic_paused", "nic_corrupt",
    "latency_p99_9_ns", "latency_max_ns", "latency_count", "latency_worst_max_ns", "latency_open_max_ns",
    "latency_missed", "latency_allowed", "latency_missed_per_day", "latency_window_dropped",
]  # fmt: skip
