"""The settings of a NIC in the words of ethtool(8), as TuneD's [net] plug-in has them, too. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

# The [net] plug-in's option and word -> our knob: `coalesce=adaptive-rx off rx-usecs 0`, pairs in the words of
# ethtool(8), separated as TuneD's plugin_net.py has it.
_NET_KNOB_OF = {
    ("coalesce", "adaptive-rx"): "net.adaptive_rx",
    ("coalesce", "adaptive-tx"): "net.adaptive_tx",
    ("coalesce", "rx-usecs"): "net.rx_usecs",
    ("coalesce", "rx-frames"): "net.rx_frames",
    ("coalesce", "tx-usecs"): "net.tx_usecs",
    ("coalesce", "tx-frames"): "net.tx_frames",
    ("ring", "rx"): "net.rx_ring",
    ("ring", "tx"): "net.tx_ring",
    ("channels", "combined"): "net.combined_channels",
    ("channels", "rx"): "net.rx_channels",
    ("channels", "tx"): "net.tx_channels",
    ("features", "ntuple"): "net.ntuple",
    ("features", "rx-ntuple-filter"): "net.ntuple",
    ("features", "gro"): "net.gro",
    ("features", "rx-gro"): "net.gro",
    ("features", "lro"): "net.lro",
    ("features", "rx-lro"): "net.lro",
}
_NET_OPTIONS = frozenset(option for option, _ in _NET_KNOB_OF)
_SWITCH = {"on": "1", "off": "0"}


def net_settings(key: str, value: str | None) -> Iterator[tuple[str, str, str]]:
    """(knob, its name there, the text as the kernel would be given it; "" where it is not known) of one option."""
    if value is None and key in _NET_OPTIONS:  # which words it has is not known: any of them
        found = dict.fromkeys(knob for (option, _), knob in _NET_KNOB_OF.items() if option == key)
        yield from ((knob, f"net.{key}", "") for knob in found)
        return
    words = re.split(r"[\s:;,]+", (value or "").strip())
    for word, text in zip(words[::2], words[1::2], strict=False):
        if knob := _NET_KNOB_OF.get((key, word)):
            yield knob, f"net.{key} {word}", _SWITCH.get(text, text)
