"""Opens a page of a dataset of refactorings in headless Chromium and looks at it as a reader would.

usage: check_refactorings.py REPORT.html SCREENSHOT_DIR CHROMIUM   needs: pip install playwright axe-playwright-python (no browser of its own)

Prints one JSON object with what was measured; exits with an assertion's message when something is not as it should be.
"""

import json

from browser import DESK, PHONE, Page, check_axe, check_width, run
from playwright.sync_api import sync_playwright

# Words of the heads of tables that are on more than one line.
BROKEN = """() => {
  const broken = [];
  for (const head of document.querySelectorAll('thead th')) {
    const text = head.firstChild;
    if (!text || !text.data) continue;
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


def check(path, shots, chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for screen in (DESK, PHONE):
            for scheme in ("light", "dark"):
                page = Page(browser, path.resolve().as_uri(), viewport=screen, color_scheme=scheme)
                name = f"{screen['width']}-{scheme}"
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                page.page.screenshot(path=shots / f"{name}.png", full_page=True)
                check_width(page, name)
                check_axe(page, name)
                broken = page.evaluate(BROKEN)
                assert not broken, f"{name}: words in heads of tables are broken: {broken}"
                heads, marks = page.locator("thead th").count(), page.locator(".diff .marked .mark").count()
                page.close()
        browser.close()
    print(json.dumps({"heads": heads, "marks": marks}))


run(check, "usage: check_refactorings.py REPORT.html SCREENSHOT_DIR CHROMIUM")
