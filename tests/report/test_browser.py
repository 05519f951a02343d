"""The page in a real browser, scripts on and off: it is drawn, fits a narrow window, and its policy holds."""

import html
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.documents import body
from tests.report.pages import before_and_after, file, full, page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="needs chromium, to look at the page"),
    pytest.mark.xdist_group("chromium"),
]


def browse(page: str, place: Path, *options: str) -> str:
    """What the browser says on stdout of a page."""
    path = place / "page.html"
    path.write_text(page)
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    command = [str(CHROMIUM), *flags, f"--user-data-dir={place / 'profile'}", *options, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shot(page: str, place: Path, *options: str) -> bytes:
    """A picture of the page."""
    browse(page, place, "--window-size=900,1200", f"--screenshot={place / 'shot.png'}", *options)
    return (place / "shot.png").read_bytes()


def test_it_is_all_there_with_scripts_and_without(tmp_path: Path) -> None:
    assert shot(full().raw, tmp_path) == shot(full().raw, tmp_path, "--blink-settings=scriptEnabled=false")
    dom = browse(full().raw, tmp_path, "--dump-dom")
    assert "<title>tunectl report: h</title>" in dom
    assert dom.count("<svg") == full().raw.count("<svg")
    assert "Over time" in dom


def test_the_style_is_applied_and_its_policy_is_why(tmp_path: Path) -> None:
    page = full().raw
    good = shot(page, tmp_path)
    assert good[:8] == b"\x89PNG\r\n\x1a\n"
    assert shot(page.replace("<style>:root", "<style>\n:root"), tmp_path) != good  # another digest: refused
    assert len(shot("<!doctype html><title>empty</title>", tmp_path)) < len(good) / 4


INJECTED = "<script>document.title = 'owned'</script></body>"


def test_a_script_that_got_in_would_not_run(tmp_path: Path) -> None:
    page = full().raw.replace("</body>", INJECTED)
    assert "<title>owned" not in browse(page, tmp_path, "--dump-dom")
    open_ = page.replace("Content-Security-Policy", "X-None")
    assert "<title>owned" in browse(open_, tmp_path, "--dump-dom")


MEASURE = """<!doctype html><title>-</title><iframe width="{width}" height="600" srcdoc="{page}"></iframe>
<script>onload = () => {{
  const inner = document.querySelector('iframe').contentDocument.documentElement
  document.title = 'wide ' + inner.scrollWidth
}}</script>"""


def width_at(page: str, width: int, place: Path) -> int:
    """How wide the page is laid out in a window so wide."""
    dom = browse(MEASURE.format(width=width, page=html.escape(page)), place, "--dump-dom")
    return int(dom.partition("<title>wide ")[2].partition("<")[0])


@pytest.mark.parametrize("make", [full, before_and_after])
def test_nothing_sticks_out_of_a_narrow_window(tmp_path: Path, make: object) -> None:
    page = make().raw  # type: ignore[operator]
    assert width_at(page, 400, tmp_path) <= 400
    assert width_at(page.replace("<main>", "<main><pre>" + "x" * 200 + "</pre>"), 400, tmp_path) > 400


OVERFLOWS = """<!doctype html><title>-</title><iframe width="{width}" height="600" srcdoc="{page}"></iframe>
<script>onload = () => {{
  const cut = [...document.querySelector('iframe').contentDocument.querySelectorAll('.scroll')]
    .filter(one => one.scrollWidth > one.clientWidth)
  document.title = 'cut: ' + cut.map(one => one.getAttribute('aria-label')).join(', ')
}}</script>"""


def cut_at(page: str, width: int, place: Path) -> str:
    """The tables of which a part is out of sight in a window so wide."""
    dom = browse(OVERFLOWS.format(width=width, page=html.escape(page)), place, "--dump-dom")
    return dom.partition("<title>cut: ")[2].partition("<")[0]


def test_no_column_is_hidden_in_a_window_of_600_pixels(tmp_path: Path) -> None:
    names = ("probe.contention", "probe.feed", "probe.hedge", "probe.wake")
    pages = [full().raw, *(page(file(name, body(name))).raw for name in names)]
    assert [cut_at(one, 600, tmp_path) for one in pages] == [""] * len(pages)
    assert "Figures of each CPU" in cut_at(pages[0], 400, tmp_path)


def test_it_prints(tmp_path: Path) -> None:
    browse(before_and_after().raw, tmp_path, f"--print-to-pdf={tmp_path / 'x.pdf'}")
    assert (tmp_path / "x.pdf").read_bytes()[:5] == b"%PDF-"
