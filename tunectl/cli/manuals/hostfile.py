"""The page of the host file, of the data that its schema and the reference are made of: tunectl-hostfile(5)."""

from tunectl.cli.helped import Example
from tunectl.cli.manuals.markdown import fields
from tunectl.cli.manuals.pages import PROGRAM, Item, Page
from tunectl.hostfile.schema import schema
from tunectl.installed import HOST_FILE

_EXAMPLE = """\
profile = "low-latency"
isolated = "2-7"

[network]
interfaces = ["eth0"]

[knobs]
"mm.swappiness" = 10
"systemd.allowed_cpus" = "unmanaged"

[[waivers]]
knob = "mm.ksm"
reason = "the vendor's agent needs it until its next version"
until = 2027-03-31"""


def _in_toml(kind: str) -> str:
    """A kind of JSON's as TOML calls it; what may be null is left out there."""
    kinds = " or ".join(one for one in kind.split(" or ") if one != "null")  # first or last, by msgspec's version
    return kinds.replace("array of object", "array of tables").replace("object", "table")


def hostfile_page() -> Page:
    """Every key with its type. `a.b` is key b of the table [a], and `a[].b` of each [[a]]."""
    whole = schema()
    top = whole["$defs"]["HostFile"]
    keys = [Item(f"{name.rstrip('*')} ({_in_toml(kind)})", said) for name, kind, said in fields(whole, top)]
    return Page(
        f"{PROGRAM}-hostfile",
        "What tunectl is to make of a host, and to hold it to",
        (HOST_FILE,),
        (
            "A TOML file that the operator writes: a profile, the CPUs that are isolated, and what is to be otherwise "
            "than the profile has it. `tunectl propose` writes one for this host, `tunectl plan` says what it would "
            "change, and `sudo tunectl apply` makes it so. A key that is unknown, or a value of another kind, is "
            "refused, with its place.",
            "Root does what it says: nobody else may be able to write it, nor a profile that it names.",
            "`a.b` is the key b of the table [a], and `a[].b` that of each [[a]]. All but profile and isolated may be "
            "left out. `tunectl knobs` lists what may stand in [knobs].",
        ),
        options=tuple(keys),
        examples=(Example("Six isolated CPUs, and two settings that differ from the profile:", _EXAMPLE),),
        files=(Item(HOST_FILE, "The host file. --host names another."),),
        see_also=tuple(f"{PROGRAM} {name}" for name in ("propose", "plan", "apply", "verify", "knobs")),
        section="5",
    )
