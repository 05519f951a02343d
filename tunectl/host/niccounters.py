"""What a driver's own statistics mean to a trader: driver, name, meaning. Pure.

Names are those of each driver's ethtool strings, which differ from driver to driver and mean different things under the
same name. What every driver has is in /sys/class/net/N/statistics (host/nics.py); these are what that leaves out.
"""

import re
from collections.abc import Mapping
from functools import cache

LOST = "lost"  # packets that arrived and found no room: the reader was late, or its ring too short
PAUSED = "paused"  # pause frames: somebody holds the line, and everything behind waits
CORRUPT = "corrupt"  # what arrived broken, beyond what error correction mends: cable, transceiver, far end
CORRECTED = "corrected"  # what error correction mended: normal within bounds, and shown only beside what it did not

_INTEL = {
    LOST: r"rx_no_buffer_count|rx_missed_errors|rx_no_dma_resources|rx_fifo_errors",
    PAUSED: r"[rt]x_flow_control_xoff",
    CORRUPT: r"rx_crc_errors|rx_align_errors",
}
# The sources: Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst and the drivers' tables of
# strings: ice_ethtool.c, i40e_ethtool.c, ixgbe_ethtool.c, igb_ethtool.c, bnxt_ethtool.c, sfc/ef10.c. Of FEC,
# counters.rst: what rx_pcs_symbol_err_phy counts was not corrected, and traffic is lost; rx_corrected_bits_phy was.
_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "mlx5_core": {
        LOST: r"rx_out_of_buffer|rx_discards_phy|rx_prio\d_discards|rx_prio\d_buf_discard",
        PAUSED: r"[rt]x_pause_ctrl_phy|[rt]x_prio\d_pause",
        CORRUPT: r"rx_crc_errors_phy|rx_symbol_err_phy|rx_pcs_symbol_err_phy",
        CORRECTED: r"rx_corrected_bits_phy",
    },
    "ice": {
        LOST: r"rx_dropped\.nic|rx_alloc_fail|rx_pg_alloc_fail",
        PAUSED: r"link_xoff_[rt]x\.nic|[rt]x_priority_\d_xoff\.nic",
        CORRUPT: r"rx_crc_errors\.nic|illegal_bytes\.nic|mac_(local|remote)_faults\.nic",
    },
    "i40e": {
        LOST: r"port\.rx_(dropped|discards)|rx_alloc_fail|rx_pg_alloc_fail",
        PAUSED: r"port\.link_xoff_[rt]x|port\.[rt]x_priority_\d_xoff",
        CORRUPT: r"port\.(rx_crc_errors|illegal_bytes|mac_local_faults|mac_remote_faults)",
    },
    "ixgbe": {**_INTEL, PAUSED: r"[rt]x_flow_control_xoff|[rt]x_pb_\d_pxoff"},
    "igb": _INTEL,
    "igc": _INTEL,
    "e1000e": _INTEL,
    "bnxt_en": {
        LOST: r"rx_total_discard_pkts|rx_stat_discard|rx_total_ring_discards",
        PAUSED: r"[rt]x_pause_frames|[rt]x_pfc_frames",
        CORRUPT: r"rx_fcs_err_frames|rx_pcs_symbol_err|rx_fec_uncorrectable_blocks",
        CORRECTED: r"rx_corrected_bits|rx_fec_corrected_blocks",
    },
    "sfc": {
        LOST: r"(port_)?rx_nodesc_drops|(port_)?rx_overflow|rx_noskb_drops|port_rx_pm_discard_(bb_overflow|vfifo_full)",
        PAUSED: r"port_[rt]x_pause",
        CORRUPT: r"(port_)?rx_bad|fec_uncorrected_errors",
        CORRECTED: r"fec_corrected_errors",
    },
}
DRIVERS = tuple(_MEANINGS)


def meanings(driver: str, counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The counters of a card by what they mean; empty where nothing is known of its driver."""
    found: dict[str, dict[str, int]] = {}
    for name, count in counts.items():
        if meaning := _meaning(driver, name):
            found.setdefault(meaning, {})[name] = count
    return found


@cache
def _meaning(driver: str, name: str) -> str:
    names = _MEANINGS.get(driver, {})
    return next((meaning for meaning, pattern in names.items() if re.fullmatch(pattern, name)), "")
