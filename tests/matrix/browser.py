"""A real browser for tests of the pages: Chromium without a window, on a fresh profile, without a network."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--allow-file-access-from-files",  # so that the probe may look into the pages that it frames
    "--hide-scrollbars",
    "--virtual-time-budget=100000",
    "--window-size=1500,1100",
)
# Frames the pages one after the other, each as wide as asked, lets a script look at it, and keeps what that gives.
_PROBE = """<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre>
<script>
const looks = {looks};
const found = {{}};
const framed = (look) => new Promise((done) => {{
  const frame = document.createElement("iframe");
  frame.style = `width:${{look.width}}px;height:${{look.height}}px;border:0`;
  frame.addEventListener("load", () => done(frame));
  frame.src = look.source;
  document.body.append(frame);
}});
const act = Object.getPrototypeOf(async () => {{}}).constructor;
(async () => {{
  for (const look of looks) {{
    const frame = await framed(look);
    try {{ found[look.name] = {{value: await new act("page", "view", look.script)(frame.contentDocument, frame.contentWindow)}}; }}
    catch (error) {{ found[look.name] = {{error: String(error)}}; }}
    frame.remove();
  }}
  document.getElementById("found").textContent = JSON.stringify(found);
}})();
</script>"""


class Look(NamedTuple):
    """A page opened with ``state`` behind ``#``, and a function's body that has ``page`` and ``view`` and returns what it saw."""

    page: Path
    script: str
    state: str = ""
    width: int = 1400
    height: int = 900


def chromium() -> str:
    """Give the browser's path; skips the test, and says why, where there is none."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium on PATH (Debian: apt-get install chromium): the pages are not looked at in a browser")


def look_at(looks: Mapping[str, Look], folder: Path, *, dark: bool = False) -> dict[str, Any]:
    """Open the pages, all in one start of the browser, and give what the scripts return."""
    listed = [
        {**look._asdict(), "name": name, "page": "", "source": f"{look.page.as_uri()}{f'#{look.state}' if look.state else ''}"}
        for name, look in looks.items()
    ]
    probe = folder / f"probe-{'dark' if dark else 'light'}.html"
    probe.write_text(_PROBE.format(looks=json.dumps(listed).replace("<", "\\u003c")), "utf-8")
    flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}", *(["--force-dark-mode"] if dark else [])]
    done = subprocess.run([chromium(), *flags, "--dump-dom", probe.as_uri()], capture_output=True, timeout=240, check=False)
    text = done.stdout.decode("utf-8", "replace").partition('<pre id="found">')[2].partition("</pre>")[0]
    assert text, f"the browser gave nothing: {done.stderr.decode('utf-8', 'replace')[-2000:]}"
    found = json.loads(html.unescape(text))
    assert {name: one["error"] for name, one in found.items() if "error" in one} == {}
    return {name: one.get("value") for name, one in found.items()}
