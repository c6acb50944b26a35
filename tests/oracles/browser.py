"""A page in a real browser, without window: what went wrong while it loaded, and how it is laid out.

A small script is put at the head of a copy of the page; the copy is shown in a frame of the width asked for (a window
cannot be as narrow as a telephone), and the frame's findings are read from the page around it.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")) if p), None)

_WATCH = """<script>
window.faults = [];
for (const dialog of ["alert", "confirm", "prompt"]) window[dialog] = words => faults.push(dialog + ": " + words);
window.addEventListener("error", e => faults.push("error: " + (e.message || (e.target && e.target.tagName))), true);
window.addEventListener("unhandledrejection", e => faults.push("rejection: " + e.reason));
document.addEventListener("securitypolicyviolation", e => faults.push("policy: " + e.blockedURI));
for (const level of ["error", "warn"]) console[level] = (...words) => faults.push(level + ": " + words.join(" "));
</script>"""

_READ = """<!doctype html><body style="margin:0">
<iframe id="page" src="SOURCE" style="border:0;width:WIDTHpx;height:900px"></iframe><pre id="found"></pre><script>
document.getElementById("page").onload = function () {
  const page = this.contentWindow, root = page.document.documentElement;
  const top = page.document.images[0] ? page.document.images[0].getBoundingClientRect().top : -1;
  for (const part of root.querySelectorAll("details")) part.open = true;
  const inside = e => e.closest(".scroll") !== null;
  const wide = [...root.querySelectorAll("body *")].filter(
    e => !inside(e) && e.getBoundingClientRect().right > root.clientWidth + 1);
  const scrollers = [...root.querySelectorAll("*")].filter(
    e => e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(page.getComputedStyle(e).overflowX));
  const ids = [...root.querySelectorAll("[id]")].map(e => e.id);
  document.getElementById("found").textContent = JSON.stringify({
    faults: page.faults,
    width: page.innerWidth,
    overflow: root.scrollWidth - root.clientWidth,
    wide: wide.map(e => e.tagName + ": " + e.textContent.trim().slice(0, 60)),
    first_figure: top,
    images: [...page.document.images].map(i => ({loaded: i.complete && i.naturalWidth > 0, alt: i.alt})),
    out_of_reach: scrollers.filter(e => e.tabIndex < 0).map(e => e.className || e.tagName),
    scrolled: scrollers.map(e => e.getAttribute("aria-label")),
    broken_links: [...root.querySelectorAll("a")].map(a => a.getAttribute("href"))
      .filter(h => !h.startsWith("#") || !ids.includes(h.slice(1))),
    repeated_ids: ids.filter((id, k) => ids.indexOf(id) !== k),
    scripts: root.querySelectorAll("script[src], link, iframe").length,
    texts: root.innerText
  });
};
</script>"""


def inspect_page(page: str, folder: Path, width: int, dark: bool = False) -> dict:
    """What the browser found when it showed `page` at that width."""
    (folder / "page.html").write_text(page.replace("<head>", f"<head>{_WATCH}", 1), encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(_READ.replace("SOURCE", "page.html").replace("WIDTH", str(width)), encoding="utf-8")
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--allow-file-access-from-files",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=20000",
        f"--window-size={max(width, 500)},900",
        "--dump-dom",
        frame.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stdout[:500]
    text = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(text)
