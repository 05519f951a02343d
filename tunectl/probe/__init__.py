"""The spin-loop probe: `native/` measures (plain C, a program of its own); here it is started and judged."""
