"""Opens a page of scores in headless Chromium and uses it as a reader would.

usage: check_scores.py REPORT.html SCREENSHOT_DIR CHROMIUM   needs: pip install playwright axe-playwright-python (no browser of its own)

Prints one JSON object with what was measured; exits with an assertion's message when something is not as it should be.
"""

import json
from pathlib import Path

from browser import DESK, PHONE, TABLET, Page, check_axe, check_contrast, check_width, count, run, wait_for_count
from playwright.sync_api import sync_playwright


def outcome(one):
    return "lost" if one["fidelity"] is None else "right" if one["fidelity"] else one["class"]


def check_list(page, submissions):
    section, size = page.locator("#submissions"), len(submissions)
    assert count(section) == [size, size]
    section.get_by_label("outcome", exact=True).select_option("right")
    wait_for_count(section, sum(outcome(one) == "right" for one in submissions))
    assert "outcome=right" in page.evaluate("location.hash")
    section.get_by_role("button", name="reset", exact=True).click()
    section.locator("input[type=search]").fill("tier:hard")
    wait_for_count(section, sum(one["tier"] == "hard" for one in submissions))
    section.get_by_role("button", name="reset", exact=True).click()
    wait_for_count(section, size)


def check_submission(page, submissions):
    """A file is shown line by line, with what each line is and where it stands."""
    dialog = page.locator("#one")
    page.locator("#submissions tbody a").first.click()
    dialog.wait_for(state="visible")
    detail = json.loads(page.locator("#d0").text_content())
    lines = detail["text"].splitlines()
    rows = dialog.locator("table.code tbody tr")
    assert rows.count() == len(lines)
    assert dialog.locator("td.source").all_inner_texts() == lines, "the text as it was submitted"
    flat, files = detail["lines"]["flat"], detail["lines"]["files"]
    first = there = 0
    for ahead, _, code, file, step in zip(*[iter(flat)] * 5):
        first, there = first + ahead, there + step
        cells = rows.nth(first - 1).locator("td").all_inner_texts()
        assert cells[3] == (f"{files[file - 1]}:{there}" if file else ""), cells
        assert cells[2] == ", ".join(filter(None, (["", "new", "in the original"][code // 3 % 3], ["", "did not run", "ran"][code % 3]))), cells
    assert any(code // 3 % 3 == 1 for code in flat[2::5]) and any(code % 3 == 1 for code in flat[2::5]), "lines of every kind"
    check_axe(page, "a submission", "#one")
    page.locator("#next").click()
    expected = f"{submissions[1]['run']}/{submissions[1]['instance']}"
    assert page.evaluate("address.now().open") == expected
    page.evaluate("location.hash = '#i=nobody'")
    page.until("document.getElementById('view').innerText.includes('no submission “nobody” among')")
    page.page.keyboard.press("Escape")
    page.until("address.now().open === null")


def check_overview(page, submissions):
    """Three figures a run, and bars that lead to the submissions that they count."""
    runs = list(dict.fromkeys(one["run"] for one in submissions))
    figures, bars = page.locator("#overview .figures"), page.locator("#overview .bars")
    assert figures.count() == bars.count() == len(runs)
    for at, name in enumerate(runs):
        judged = [one for one in submissions if one["run"] == name and one["fidelity"] is not None]
        right = [one for one in judged if one["fidelity"]]
        said = figures.nth(at).locator("li").all_inner_texts()
        assert len(said) == 3 and f"{len(right)} of {len(judged)} do" in said[0], said
        assert bars.nth(at).locator("tbody tr").count() == 1 + len({one["tier"] for one in judged})
        widths = bars.nth(at).locator("tbody tr").first.locator(".stack a").evaluate_all("all => all.map((one) => parseFloat(one.style.width))")
        assert abs(sum(widths) - 100) < 0.1, widths
    part = bars.first.locator(".stack a").first
    size = int(part.get_attribute("title").split(": ")[1])
    part.click()
    wait_for_count(page.locator("#submissions"), size)
    page.locator("#submissions").get_by_role("button", name="reset", exact=True).click()
    assert not page.locator("#tables table").first.is_visible(), "the tables are folded"
    notes = page.locator("#tables caption").all_text_contents()
    assert notes and not any("`" in note for note in notes), "code in a note is shown as code"


def check_names(page):
    """The names of tests have room on every screen, so that no row is as high as its name has letters."""
    for size in (DESK, {"width": 1280, "height": 900}, {"width": 1024, "height": 900}, TABLET, {"width": 710, "height": 900}, PHONE):
        page.page.set_viewport_size(size)
        check_width(page, f"{size['width']} px")
        for cell in page.locator("#submissions tbody td.id").all()[:20]:
            box = cell.bounding_box()
            assert box["width"] >= 150 and box["height"] <= 160, f"a name at {size['width']} px: {box}"
    page.page.set_viewport_size(DESK)


def main(report, folder, chromium):
    folder.mkdir(parents=True, exist_ok=True)
    url = report.resolve().as_uri()
    measured = {"bytes": report.stat().st_size}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, scheme, size in (("light", "light", DESK), ("dark", "dark", DESK), ("phone", "light", PHONE)):
            page = Page(browser, url, color_scheme=scheme, viewport=size)
            page.until("document.documentElement.dataset.ready === 'yes'")
            submissions = json.loads(page.locator("#data").text_content())["submissions"]
            measured["submissions"] = len(submissions)
            check_contrast(page, name)
            check_width(page, name)
            if name == "light":
                check_overview(page, submissions)
                check_names(page)
            page.page.screenshot(path=folder / f"{name}.png")
            check_list(page, submissions)
            check_axe(page, name)
            if size is DESK:
                check_submission(page, submissions)
            page.locator("#submissions tbody a").first.click()
            page.page.screenshot(path=folder / f"{name}-submission.png")
            check_width(page, name + " with a submission")
            page.close()
        browser.close()
    print(json.dumps(measured))


if __name__ == "__main__":
    run(main, __doc__)
