"""The PCI links of the cards that carry market data, and of graphics cards and accelerators."""

from tunectl.checking import Severity, costs, failing, unknown, unsupported
from tunectl.fix import to_decide
from tunectl.host.cards import Card, Link, no_links, read_links, said_of
from tunectl.host.sysroot import Sysroot

_RESEAT = to_decide(
    "reseat the card and its riser, clean the contacts, try another slot; then the BIOS: a forced generation, "
    "bifurcation, a lane that it switched off"
)


@costs(Severity.SLOWER)
def test_card_link(card: Card, host: Sysroot) -> None:
    """A link on half of its lanes, or an older generation, takes longer for every packet, and nothing logs it.

    What the port and the card can both do is expected: a riser or a bifurcated slot is the port's honest limit. Each
    link between the root complex and the card counts. A graphics card lowers its speed by itself while it idles: of
    those and of accelerators only the lanes are judged.
    Source: Documentation/ABI/testing/sysfs-bus-pci (current_link_width, max_link_width); drivers/pci/pci-sysfs.c.
    """
    if why := no_links(host):
        unsupported(why)
    links = read_links(host, card)
    if not links:
        why = f"{card.way[-1]} has no link files" if card.links else "it is part of the chip"
        unsupported(f"the {card.kind} hangs on no PCI Express link: {why}")
    for link in links:
        if not link.unknown and (link.width < link.best_width or _is_slow(link, card)):
            failing(
                f"the link from {link.port} to {link.end} runs {said_of(link.width, link.speed)}, and both of its ends "
                f"can {said_of(link.best_width, link.best_speed)}",
                _RESEAT,
                observed=said_of(link.width, link.speed),
                desired=said_of(link.best_width, link.best_speed),
            )
    if dark := next((link.unknown for link in links if link.unknown), ""):
        unknown(dark)


def _is_slow(link: Link, card: Card) -> bool:
    return card.kind == "network card" and link.speed < link.best_speed
