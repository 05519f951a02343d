"""What of a host's files no recording may hold: passwords, keys and tokens, as each program's files write them. Pure.

A value is replaced where it stands, in its quotes: lines keep their numbers, and a file stays what its readers expect.
What is doubtful is taken out, too. Sources: GRUB's manual ("Authentication and authorisation"), wpa_supplicant.conf(5),
nm-settings-keyfile(5), interfaces(5), netplan's reference, systemd.netdev(5), systemd.exec(5), dracut.cmdline(7),
crypt(5), RFC 7468.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatch
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

LEFT_OUT = b"left-out-of-the-recording"
# Files that are secrets by their names: never opened. user.cfg holds the password of GRUB.
_SECRET_FILES = (
    *("shadow*", "gshadow*", "user.cfg", "*.key", "*.psk", "*.p12", "*.pfx", "*.kdbx", "*.keytab", "*.jks"),
    *(".netrc", ".pgpass", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519", "*_key", "*secret", "*secrets", "*password"),
)
# In these a name behind a dollar is a variable, and no secret.
_SHELL = ("etc/grub.d/*", "etc/default/*", "etc/sysconfig/*", "boot/*.cfg")
_REFERENCE = re.compile(rb'"?\$(?:\w+|\{\w+\}|\([^)]*\))"?')

_WORDS = (
    rb"(?:(?:passw(?:or)?ds?|pass_?phrase|secrets?|tokens?|(?<=_)(?<!set_)credentials?|psk"
    rb"|wep[_-]?key|cryptkey|(?:api|access|auth|encryption|preshared|private|routing|secret|shared|signing)[_-]?key)"
    rb"(?![\w.-]{0,60}(?:file|path|flags|mgmt|method|policy|required|algorithm|authentication|_dir|[_-]id))[\w-]{0,40}"
    rb"|(?<![a-z0-9])key\d?\b(?!-))"
)
# A word of a shell, a unit or a kernel's line: quoted parts, escapes, and on after a quote that does not end it.
_VALUE = (
    rb"""(?P<secret>(?:\"""(?s:.*?)\"""|'''(?s:.*?)'''|\\?"(?:\\[^"]|[^"\\\n])*\\?"|'[^'\n]*'|\\(?s:.)"""
    rb"""|(?!;$|;\s)[^\s"'\\])(?:\\"[^"\n]*"|"(?=[^\s"');&|#\],}])[^"\n]*"?|'(?=[^\s"');&|#\],}])[^'\n]*'?"""
    rb"""|\\(?s:.)|(?!;$|;\s)[^\s"'\\])*)"""
)
_QUOTED = rb"""(?P<secret>(?:\\.|(?!(?P=quote))[^\n\\])+)"""
_WHOLE_LINE = (  # files in which a value ends with its line
    rb"^[^=\n#;]{0,200}?(?:" + _WORDS + rb"|pass|pin|private)"
    rb"(?![^=\n]{0,60}(?:flags|file|path))[^=\n]{0,60}=[ \t]*(?P<secret>.+)"
)
_BLANKS = rb"(?:[ \t]|\\\n)+"


class Grammar(NamedTuple):
    """One way to write a secret: its name, a pattern whose group `secret` it is, and the files it is looked for in."""

    name: str
    pattern: re.Pattern[bytes]
    paths: tuple[str, ...]


def _grammar(name: str, pattern: bytes, *paths: str) -> Grammar:
    return Grammar(name, re.compile(pattern, re.MULTILINE | re.IGNORECASE), paths or ("*",))


GRAMMARS = (  # those first that take the most
    _grammar(
        "private key (PEM)",
        rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?P<secret>(?s:.*?))(?:-----END [A-Z0-9 ]*PRIVATE KEY|\Z)",
    ),
    _grammar(
        "GRUB password",
        rb"""(?:^|[;{}&|"'#]|\bthen|\bdo|\belse|\becho)[ \t]*password(?:_pbkdf2)?(?:""" + _BLANKS + rb"--[^\s;]+)*"
        rb"(?:" + _BLANKS + rb"(?!-)[^\s;]+(?=" + _BLANKS + rb"[^\s;#]))?" + _BLANKS + _VALUE,
        *("boot/*", "efi/*", "etc/grub*", "etc/default/grub*", "*/grub*", "*.cfg"),
    ),
    _grammar("password hash", rb"(?P<secret>grub\.pbkdf2\.[\w.]+|\$(?:[1567y]|gy|2[abxy])\$[./\w$=,-]{22,})"),
    _grammar("wpa_supplicant", _WHOLE_LINE, "*wpa_supplicant*"),
    _grammar("NetworkManager keyfile", _WHOLE_LINE, "*/NetworkManager/*"),
    _grammar("systemd.netdev key", _WHOLE_LINE, "*.netdev", "*.network", "*/wireguard/*"),
    _grammar(
        "ifupdown",
        rb"^[ \t]*(?:wpa-[\w-]*(?:psk|pass\w*|wep-key\d?)|wireless-key\d?)[ \t]+(?P<secret>.+)",
        *("etc/network/*", "run/network/*"),
    ),
    _grammar(
        "named value of YAML or JSON",
        rb"""^(?P<indent>[ \t]*)(?:.{0,400}?[\s{,"'-])??["']?[\w.-]{0,60}?(?:"""
        + _WORDS
        + rb"""|private|shared)["']?"""
        rb"""[ \t]*:(?:[ \t]+|(?=["']))(?P<secret>"(?:\\.|[^"\\])*"|'[^']*'"""
        rb"""|[|>][^\n]*(?:\n(?P=indent)[ \t]+[^\n]*|\n[ \t]*(?=\n))*|[^\s"'].*)""",
        *("*.yaml", "*.yml", "*.json", "etc/kernelstub/*"),
    ),
    _grammar(
        "systemd credential",
        rb"(?:^[ \t]*SetCredential\w*=|systemd\.set_credential\w*=)[^\s:=]+:" + _VALUE,
    ),
    _grammar(
        "named value in quotes",
        rb"""(?:^|[\s\[,(]|Environment=)(?P<quote>["'])[\w.-]{0,60}?""" + _WORDS + rb"=" + _QUOTED,
    ),
    _grammar("named value", _WORDS + rb"""["']?[ \t]*[+:?]?=(?!=)[ \t]*""" + _VALUE),
    _grammar(
        "option of a program",
        rb"""(?<=[\s"'])--?(?:[\w-]{0,40}?-)?""" + _WORDS + rb"""(?:[ \t]+|["'],[ \t]*["'])(?!-)""" + _VALUE,
    ),
    _grammar("Authorization", rb"Authorization:[ \t]*(?:(?:Bearer|Basic|Token)[ \t]+)?(?P<secret>[^\s\"']+)"),
    _grammar("user of a URL", rb"(?:://|\biscsi:)(?P<secret>[^\s\"'<>]{1,500})@"),
    _grammar(
        "webhook's address", rb"""^[ \t]*url[ \t]*=[ \t]*["']https?://[^/"'\n]+/(?P<secret>[^"'\n]+)""", "*/tunectl/*"
    ),
    _grammar(
        "webhook's address",
        rb"(?:hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/|api\.telegram\.org/bot)"
        rb"(?P<secret>[^\s\"']+)",
    ),
    _grammar(
        "token",
        rb"\b(?P<secret>gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
        rb"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)",
    ),
)


class Taken(msgspec.Struct, frozen=True, order=True):
    """Where a secret was taken out."""

    path: str
    line: Annotated[int, Meta(ge=1, description="Counted from 1.")]
    grammar: Annotated[str, Meta(description="Which grammar knew it.")]


def is_secret_file(path: str) -> bool:
    """Does the name of a file say that it is a secret as a whole?"""
    name = path.rpartition("/")[2]
    return any(fnmatch(name, pattern) for pattern in _SECRET_FILES)


def without_secrets(path: str, data: bytes) -> tuple[bytes, list[Taken]]:
    """A file's bytes without its secrets, and where these stood. `path` is that below the root."""
    taken: list[Taken] = []
    in_shell = _fits(path, _SHELL)
    for grammar in GRAMMARS:
        if _fits(path, grammar.paths):
            data, lines = _taken_out(grammar.pattern, data, in_shell)
            taken += [Taken(f"/{path}", line, grammar.name) for line in lines]
    return data, sorted(set(taken))


def _fits(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _taken_out(pattern: re.Pattern[bytes], data: bytes, in_shell: bool) -> tuple[bytes, list[int]]:
    """The bytes with what stands for each secret of one grammar, and the lines of these."""
    pieces, lines, done, line = [], [], 0, 1
    for match in pattern.finditer(data):
        secret = match["secret"]
        replaced = _replaced(secret)
        if replaced == secret or (in_shell and _REFERENCE.fullmatch(secret)):
            continue
        start, end = match.span("secret")
        between = data[done:start]
        pieces += [between, replaced]
        lines.append(line := line + between.count(b"\n"))
        line += secret.count(b"\n")
        done = end
    return b"".join((*pieces, data[done:])), lines


def _replaced(secret: bytes) -> bytes:
    """As many lines, each as far indented, in the same quotes."""
    marks = (mark for mark in (b'"""', b"'''", b'\\"', b'"', b"'") if len(secret) >= 2 * len(mark))
    quote = next((mark for mark in marks if secret.startswith(mark) and secret.endswith(mark)), b"")
    inner = secret[len(quote) : len(secret) - len(quote)]
    lines = re.split(rb"(\\?\r?\n[ \t]*)", inner)  # every second one is an end of line
    return quote + b"".join(each if number % 2 or not each else LEFT_OUT for number, each in enumerate(lines)) + quote
