"""Opens a report page in headless Chromium and uses it as a reader would.

usage: check_page.py REPORT.html SCREENSHOT_DIR CHROMIUM        needs: pip install playwright (no browser of its own)

Prints one JSON object with what was measured; exits with an assertion's message when something is not as it should be.
"""

import json
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}
# The names of the style sheet's colours that text has, and what lies behind them.
INKS = ["--ink", "--soft", "--link", "--good", "--middle", "--bad"]
PAPERS = ["--paper", "--wash"]
LEAST_CONTRAST = 4.5


class Page:
    """A page with what it complained about."""

    def __init__(self, browser, url, **context):
        self.complaints = []
        self.context = browser.new_context(**context)
        self.context.set_default_timeout(180_000)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog: " + dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: request.url != url and self.complaints.append("loads " + request.url[:80]))
        self.page.goto(url)

    def close(self):
        assert not self.complaints, self.complaints
        self.context.close()

    def evaluate(self, script, argument=None):
        return self.page.evaluate(script, argument)


def ready(page):
    page.page.wait_for_function("document.documentElement.dataset.ready === 'yes'", timeout=120_000)


def count(section):
    """`[shown, all]` as the table says."""
    text = section.locator("output").inner_text().replace("\u2009", "")
    shown, total = text.split(" of ")
    return [int(shown), int(total)]


def column(section, number):
    cells = section.locator(f"tbody tr:not(.more) td:nth-child({number})").all_inner_texts()
    return [cell.replace("\u2009", "") for cell in cells]


def wait_for_count(section, expected):
    for _ in range(1200):
        if count(section)[0] == expected:
            return
        time.sleep(0.05)
    raise AssertionError(f"{count(section)} instead of {expected}")


def check_instances(page, data):
    instances = data["instances"]
    size = len(instances["id"])
    section = page.page.locator("#instances")
    assert count(section) == [size, size]

    head = section.locator("th[data-sort=length]")
    head.click()
    shown = [int(cell) for cell in column(section, 5)]
    assert shown == sorted(instances["length"], reverse=True)[: len(shown)] and shown, "sorted by trace length"
    assert head.get_attribute("aria-sort") == "descending"
    head.press("Enter")
    shown = [int(cell) for cell in column(section, 5)]
    assert shown == sorted(instances["length"])[: len(shown)], "sorted the other way by keyboard"
    section.locator("th[data-sort=tier]").click()
    order = {"easy": 0, "medium": 1, "hard": 2}
    tiers = [order[tier] for tier in column(section, 3)]
    assert tiers == sorted(tiers), "tiers are ordered by difficulty, not by letter"

    tier, repository = section.locator("select[aria-label=tier]"), section.locator("select[aria-label=repository]")
    for chosen in ("hard", "easy"):
        tier.select_option(chosen)
        expected = sum(one == chosen for one in instances["tier"])
        wait_for_count(section, expected)
        assert set(column(section, 3)) <= {chosen}
    slug = instances["slug"][-1]
    repository.select_option(slug)
    both = [one == "easy" and other == slug for one, other in zip(instances["tier"], instances["slug"])]
    wait_for_count(section, sum(both))
    tier.select_option("")
    repository.select_option("")
    section.locator("select[aria-label='top by']").select_option("either")
    wait_for_count(section, sum(bool(axes) for axes in instances["hard"]))
    section.locator("select[aria-label='top by']").select_option("")

    wanted = instances["group"][size // 2]
    words = wanted.split("::")[-1].upper()[3:] + " " + slug.split("/")[0]
    section.locator("input[type=search]").fill(words)
    parts = words.lower().split()
    texts = [f"{a} {b} {c}".lower() for a, b, c in zip(instances["id"], instances["slug"], instances["group"])]
    wait_for_count(section, sum(all(part in text for part in parts) for text in texts))
    section.locator("input[type=search]").fill("no such test anywhere")
    wait_for_count(section, 0)
    section.locator("input[type=search]").fill("")
    wait_for_count(section, size)

    if size > 150:
        before = section.locator("tbody tr").count()
        section.locator(".wide").last.evaluate("(frame) => frame.scrollTo(0, frame.scrollHeight)")
        page.page.wait_for_function(
            "(before) => document.querySelectorAll('#instances tbody tr').length > before", arg=before
        )


def check_trace(page, data, url):
    instances = data["instances"]
    section, dialog = page.page.locator("#instances"), page.page.locator("#trace")
    section.locator("th[data-sort=length]").click()
    section.locator("tbody button").first.click()
    assert dialog.is_visible()
    at = page.evaluate("location.hash.slice(3)")
    at = instances["id"].index(at)
    text = dialog.inner_text().replace("\u2009", "")
    assert instances["command"][at] in text and f"{instances['length'][at]} calls into the tree" in text
    trace = instances["trace"]["of"][at]
    assert trace, "the hardest instances have their traces"
    assert sum(trace[1::2]) == instances["length"][at]
    files = {instances["trace"]["functions"][function][0] for function in trace[::2]}
    assert dialog.locator("details:not(:has(details)) > summary").count() == len(files) == instances["files"][at]
    assert dialog.locator("li").count() == len(trace) // 2, "one line a function"
    page.page.keyboard.press("Escape")
    # The address follows in the event of closing, a task of its own.
    page.page.wait_for_function("location.hash === ''")
    assert not dialog.is_visible()
    page.page.goto(f"{url}#i={instances['id'][0]}")
    dialog.wait_for(state="visible")
    assert instances["group"][0] in dialog.inner_text(), "a link leads to a trace"
    dialog.locator("button").first.click()
    assert not dialog.is_visible()


def check_groups(page, data):
    groups = data["groups"]
    size = len(groups["id"])
    section = page.page.locator("#groups")
    assert count(section) == [size, size]
    causes = page.page.locator("#causes a[data-cause]")
    name = causes.first.inner_text()
    causes.first.click()
    cause = groups["causes"].index(name)
    wait_for_count(section, sum(one == cause for one in groups["cause"]))
    assert set(column(section, 4)) == {name}
    first = section.locator("tbody button").first
    first.click()
    assert first.get_attribute("aria-expanded") == "true"
    more = section.locator("tr.more").first.inner_text()
    at = groups["id"].index(first.inner_text())
    found = groups["evidence"][at]
    assert found["summary"] in more and found.get("command", "") in more
    first.click()
    assert section.locator("tr.more").count() == 0
    section.locator("select[aria-label=cause]").select_option("")
    section.locator("select[aria-label=state]").select_option("published")
    wait_for_count(section, sum(state == "published" for state in groups["state"]))
    section.locator("select[aria-label=state]").select_option("")
    section.locator("th[data-sort=ms]").click()
    shown = [float(cell) for cell in column(section, 9) if cell != "–"]
    assert shown == sorted(shown, reverse=True) and shown


def channel(value):
    value /= 255
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4


def luminance(rgb):
    red, green, blue = (channel(value) for value in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_contrast(page, scheme):
    colour = """(name) => {
      const probe = document.createElement('i');
      probe.style.color = `var(${name})`;
      document.body.append(probe);
      const found = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number);
      probe.remove();
      return found;
    }"""
    lum = {name: luminance(page.evaluate(colour, name)) for name in INKS + PAPERS}
    for ink in INKS:
        for paper in PAPERS:
            low, high = sorted((lum[ink], lum[paper]))
            ratio = (high + 0.05) / (low + 0.05)
            assert ratio >= LEAST_CONTRAST, f"{ink} on {paper} in {scheme}: {ratio:.2f}"
    return lum["--paper"]


def check_width(page, name):
    wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen, f"{name}: the page is {wide} wide on a screen of {screen}"


def shoot(page, folder, name):
    page.page.screenshot(path=folder / f"{name}.png")
    for section in ("difficulty", "instances", "groups", "environments"):
        page.page.locator(f"#{section}").scroll_into_view_if_needed()
        page.evaluate("(id) => document.getElementById(id).scrollIntoView()", section)
        page.page.screenshot(path=folder / f"{name}-{section}.png")
    page.evaluate("scrollTo(0, 0)")


def main(report, folder, chromium):
    folder.mkdir(parents=True, exist_ok=True)
    url = report.resolve().as_uri()
    measured = {"bytes": report.stat().st_size}
    papers = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, scheme, size in (("light", "light", DESK), ("dark", "dark", DESK), ("phone", "light", PHONE)):
            page = Page(browser, url, color_scheme=scheme, viewport=size)
            ready(page)
            if name == "light":
                measured["interactive_ms"] = round(page.evaluate("performance.getEntriesByName('ready')[0].startTime"))
                data = json.loads(page.page.locator("#data").text_content())
                measured["groups"] = len(data["groups"]["id"])
                measured["instances"] = len(data["instances"]["id"])
            papers[name] = check_contrast(page, name)
            check_width(page, name)
            shoot(page, folder, name)
            # A page with thousands of rows takes its time: it is tried in one of the three.
            if name == "light" or measured["groups"] < 1000:
                check_instances(page, data)
                check_trace(page, data, url)
                check_groups(page, data)
                check_width(page, name)
            page.page.locator("#instances tbody button").first.click()
            page.page.screenshot(path=folder / f"{name}-trace.png")
            check_width(page, name + " with a trace")
            page.page.keyboard.press("Escape")
            page.close()
        assert papers["dark"] < 0.1 < 0.8 < papers["light"], papers
        page = Page(browser, url, java_script_enabled=False, viewport=DESK)
        assert page.page.locator("#instances tbody tr").count() == min(300, measured["instances"])
        assert page.page.locator("#funnel tfoot").inner_text().strip()
        assert page.page.locator("#difficulty svg").first.is_visible()
        assert "JavaScript" in page.page.locator("#groups noscript").inner_text()
        page.page.screenshot(path=folder / "plain.png")
        page.close()
        browser.close()
    print(json.dumps(measured))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
