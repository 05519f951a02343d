"""ClickHouse's HTTP interface over its own engine in this process (chdb), as far as the fleet's store asks for it."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tunectl.installed import read_shipped

DATABASE = "fleet"
# What a server applies to one query; of the engine in this process only what is set in the query itself is.
_STATUS = {"SYNTAX_ERROR": 400, "UNKNOWN_TABLE": 404, "UNKNOWN_DATABASE": 404, "AUTHENTICATION_FAILED": 403}
_NOT_SETTINGS = {"database", "default_format", "wait_end_of_query", "async_insert", "query"}


class House:
    """One database; every query at a time."""

    def __init__(self, place: Path) -> None:
        self._session: Any = import_module("chdb.session").Session(str(place))
        self._lock = threading.Lock()
        self.asked: list[str] = []
        self.ask(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        self.ask(f"USE {DATABASE}")

    def make(self) -> None:
        """The tables, as the shipped file makes them."""
        for statement in read_shipped("clickhouse/tunectl.sql").split(";\n"):
            lines = [line for line in statement.splitlines() if not line.startswith("--")]
            if any(lines):
                self.ask("\n".join(lines))

    def ask(self, query: str, fmt: str = "CSV") -> bytes:
        """RuntimeError with ClickHouse's own words."""
        with self._lock:
            try:
                return bytes(self._session.query(query, fmt).bytes() or b"")
            except Exception:
                self._session.query("SELECT 1", fmt)  # else the next answer begins with the rest of this one
                raise

    def answer(self, query: str, settings: dict[str, str]) -> bytes:
        """As a server answers a POST."""
        self.asked.append(query)
        each = {name: value for name, value in settings.items() if name not in _NOT_SETTINGS}
        text = ", ".join(f"{name} = '{value}'" for name, value in each.items())
        if match := re.match(r"INSERT INTO \w+(?: \(\w+\))?", query):
            query = f"{match[0]} SETTINGS {text}{query[match.end() :]}"
        elif "INTO OUTFILE" in query:  # a program may, of a server's clients none
            raise RuntimeError("Code: 1. DB::Exception: INTO OUTFILE is not allowed. (INTO_OUTFILE_NOT_ALLOWED)")
        elif query.lstrip().startswith(("SELECT", "WITH", "EXPLAIN")):
            query = f"{query}\nSETTINGS {text}"
        return self.ask(query, settings.get("default_format", "TSV"))

    def close(self) -> None:
        self._session.close()


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """Of a request, in one piece or in chunks."""
    if "Content-Length" in request.headers:
        return request.rfile.read(int(request.headers["Content-Length"]))
    found = b""
    while size := int(request.rfile.readline(), 16):
        found += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return found


@contextmanager
def serving(house: House) -> Iterator[str]:
    """The address for --store."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = body_of(self).decode("utf-8", "surrogateescape")
            status, failed = 200, ""
            try:
                answer = house.answer(body, dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)))
            except Exception as error:
                failed = f"{str(error).strip()} (version 26.9.2.1 (official build))\n"
                name = re.findall(r"\(([A-Z_]+)\)", failed)
                status, answer = _STATUS.get(name[-1] if name else "", 500), failed.encode()
            self.send_response(status)
            if failed:
                self.send_header("X-ClickHouse-Exception-Code", re.findall(r"Code: (\d+)", failed)[0])
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"clickhouse://127.0.0.1:{server.server_port}/{DATABASE}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def liar(*answers: tuple[int, dict[str, str], bytes] | str) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server that gives these answers, the last again and again ("hang": none); what it was asked."""
    asked: list[tuple[dict[str, str], bytes]] = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append((dict(self.headers), body_of(self)))
            if isinstance(answer, str):
                over.wait(60)
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # nobody listens to the end of what is too long
                for _ in range(int(headers.get("X-Times", 1))):
                    self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"clickhouse://127.0.0.1:{server.server_port}/{DATABASE}", asked
    finally:
        over.set()
        server.shutdown()
        server.server_close()
