"""What the checks of the pages share: a page with what it complained about, axe, contrast."""

import sys
import time
from pathlib import Path

DESK = {"width": 1440, "height": 900}
TABLET = {"width": 820, "height": 1100}
PHONE = {"width": 390, "height": 844}
# The names of the style sheet's colours that text has, and what lies behind them.
INKS = ["--ink", "--soft", "--link", "--good", "--bad"]
PAPERS = ["--paper", "--wash"]
LEAST_FOR_TEXT = 4.5
LEAST_FOR_MARKS = 3.0


class Page:
    """A page with what it complained about."""

    def __init__(self, browser, url, **context):
        self.complaints = []
        self.context = browser.new_context(**context)
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog: " + dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.note(request.url, url))
        self.page.goto(url)

    def note(self, asked, own):
        # What the page holds itself, and what it hands out for download, is not loaded from anywhere.
        if asked.split("#")[0] != own.split("#")[0] and not asked.startswith(("data:", "blob:")):
            self.complaints.append("loads " + asked[:80])

    def close(self):
        assert not self.complaints, self.complaints
        self.context.close()

    def evaluate(self, script, argument=None):
        return self.page.evaluate(script, argument)

    def locator(self, selector):
        return self.page.locator(selector)

    def until(self, script, argument=None):
        self.page.wait_for_function(script, arg=argument)


def axe_source():
    """The program of axe, as the Python package brings it."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def check_axe(page, name, within="body"):
    """No serious or critical finding below an element, and rules that were applied."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(axe_source())
    found = page.evaluate(
        """async (within) => {
          const { violations, passes } = await axe.run(document.querySelector(within), { resultTypes: ['violations', 'passes'] });
          const short = ({ impact, id, nodes }) => ({ impact, id, where: nodes.slice(0, 3).map((node) => node.target.join(' ') + ': ' + node.failureSummary) });
          return { violations: violations.map(short), passes: passes.map((rule) => rule.id) };
        }""",
        within,
    )
    bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert not bad, f"axe on {name}: {bad}"
    assert "color-contrast" in found["passes"], f"axe on {name} looked at no text: {found['passes']}"


def channel(value):
    value /= 255
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4


def luminance(rgb):
    red, green, blue = (channel(value) for value in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def luminances(page, names):
    """Of the style sheet's colours, by name."""
    colour = """(name) => {
      const probe = document.createElement('i');
      probe.style.color = `var(${name})`;
      document.body.append(probe);
      const found = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number);
      probe.remove();
      return found;
    }"""
    return {name: luminance(page.evaluate(colour, name)) for name in names}


def contrast(one, other):
    low, high = sorted((one, other))
    return (high + 0.05) / (low + 0.05)


def check_contrast(page, scheme, marks=()):
    """Of text on both papers, and of marks on the page's paper; returns how light the paper is."""
    light = luminances(page, [*INKS, *PAPERS, *marks])
    for ink in INKS:
        for paper in PAPERS:
            ratio = contrast(light[ink], light[paper])
            assert ratio >= LEAST_FOR_TEXT, f"{ink} on {paper} in {scheme}: {ratio:.2f}"
    for mark in marks:
        ratio = contrast(light[mark], light["--paper"])
        assert ratio >= LEAST_FOR_MARKS, f"{mark} on paper in {scheme}: {ratio:.2f}"
    return light["--paper"]


def check_width(page, name):
    wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen, f"{name}: the page is {wide} wide on a screen of {screen}"


def count(section):
    """`[shown, all]` as a table says."""
    text = section.locator("output").first.inner_text().replace("\u202f", "")
    shown, rest = text.split(" of ")
    return [int(shown), int(rest.split()[0])]


def wait_for_count(section, expected):
    for _ in range(1200):
        if count(section)[0] == expected:
            return
        time.sleep(0.05)
    raise AssertionError(f"{count(section)} instead of {expected}")


def column(section, number):
    cells = section.locator(f"tbody tr:not(.detail) td:nth-child({number})").all_inner_texts()
    return [cell.replace("\u202f", "") for cell in cells]


def run(check, usage):
    """What each check is as a program: page, folder of screenshots, name."""
    if len(sys.argv) != 4:
        sys.exit(usage)
    check(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
