"""Opens a report page in headless Chromium and uses it as a reader would.

usage: check_page.py REPORT.html SCREENSHOT_DIR CHROMIUM   needs: pip install playwright axe-playwright-python (no browser of its own)

Prints one JSON object with what was measured; exits with an assertion's message when something is not as it should be.
"""

import csv
import io
import json
from pathlib import Path

from browser import (
    DESK, PHONE, TABLET, Page, check_axe, check_contrast, check_width, column, contrast, count, luminances, run,
    wait_for_count,
)
from playwright.sync_api import sync_playwright

MARKS = [
    "--easy", "--medium", "--hard", "--ring", "--published", "--kept", "--unsolvable", "--environment", "--nondeterministic", "--not-runnable",
    "--no-code", "--rule", "--other", "--ran", "--edge",
]
# Neighbours in the ordered hue of the tiers differ this much in contrast.
LEAST_BETWEEN_TIERS = 1.6
ROWS = 100
# Groups that are seen before something is asked for.
FEW = 20
# What the names have of the width of their table.
LEAST_FOR_NAMES = 0.2


def ready(page):
    page.page.wait_for_function("document.documentElement.dataset.ready === 'yes'", timeout=120_000)


def embedded(page):
    data = {name: json.loads(page.locator(f"#{name}").text_content()) for name in ("data", "evidence", "details")}
    instances, groups, slugs = data["data"]["instances"], data["data"]["groups"], data["data"]["slugs"]
    instances["repository"] = [slugs[slug] for slug in instances["slug"]]
    groups["repository"] = [slugs[slug] for slug in groups["slug"]]
    instances["group"] = [groups["id"][place] for place in instances["place"]]
    groups["why"] = [None if cause is None else groups["causes"][cause] for cause in groups["cause"]]
    return instances, groups, data["evidence"], data["details"]


def search(page, section, words, expected):
    section.locator("input[type=search]").fill(words)
    wait_for_count(section, expected)


def chip(section, value):
    """The button of a value that is to be seen with its number of rows."""
    return section.locator(".chip").filter(has_text=value)


def check_tools(page, instances):
    """Search, filters and order are in the address, outlive a reload, and can be taken back."""
    size = len(instances["id"])
    section = page.locator("#instances")
    assert count(section) == [size, size]
    order = {"easy": 0, "medium": 1, "hard": 2}
    tiers = [order[tier] for tier in column(section, 3)]
    assert tiers[0] == max(order[tier] for tier in instances["tier"]) and tiers == sorted(tiers, reverse=True), "the hardest come first"
    assert section.locator("th[data-sort=tier]").get_attribute("aria-sort") == "descending"
    hardest = max(range(size), key=lambda at: instances["difficulty"][at])
    assert column(section, 1)[0].replace("\u200b", "") == instances["group"][hardest]
    head = section.locator("th[data-sort=length]")
    assert head.get_attribute("scope") == "col"
    head.locator("button").click()
    shown = [int(cell) for cell in column(section, 5)]
    assert shown == sorted(instances["length"], reverse=True)[:ROWS] and shown, "sorted by trace length"
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").press("Space")
    shown = [int(cell) for cell in column(section, 5)]
    assert shown == sorted(instances["length"])[:ROWS], "sorted the other way by keyboard"
    section.locator("th[data-sort=tier] button").click()
    tiers = [order[tier] for tier in column(section, 3)]
    assert tiers == sorted(tiers), "tiers are ordered by difficulty, not by letter"

    repository = section.get_by_label("repository", exact=True)
    for chosen in ("hard", "easy"):
        chip(section, chosen).click()
        wait_for_count(section, instances["tier"].count(chosen))
        assert set(column(section, 3)) <= {chosen}
    slug = instances["repository"][-1]
    repository.select_option(slug)
    both = sum(one == "easy" and other == slug for one, other in zip(instances["tier"], instances["repository"]))
    wait_for_count(section, both)
    of_slug = [tier for tier, other in zip(instances["tier"], instances["repository"]) if other == slug]
    said = [text.replace("\u202f", "") for text in section.locator(".chip").all_text_contents()]
    assert said == [f"{tier} {of_slug.count(tier)}" for tier in order], f"what the other filters leave: {said}"
    address = page.evaluate("location.hash")
    assert "tier=easy" in address and "sort=tier" in address, address
    page.page.reload()
    ready(page)
    wait_for_count(section, both)
    assert chip(section, "easy").get_attribute("aria-pressed") == "true" and section.locator("th[data-sort=tier]").get_attribute("aria-sort") == "ascending"
    page.page.go_back()
    wait_for_count(section, instances["tier"].count("easy"))
    section.get_by_role("button", name="reset", exact=True).click()
    wait_for_count(section, size)
    section.get_by_label("top by", exact=True).select_option("either")
    wait_for_count(section, sum(bool(axes) for axes in instances["hard"]))
    section.get_by_role("button", name="reset", exact=True).click()


def check_columns(page, folder):
    """Columns are chosen by keyboard; the choice is in the address, outlives a reload, and paper has it as well."""
    section = page.locator("#groups")
    heads = section.locator("table.live thead th")
    visible = lambda: [head.get_attribute("data-sort") for head in heads.all() if head.is_visible()]
    everything = visible()
    names = heads.first.bounding_box()["width"]
    section.locator(".columns summary").press("Enter")
    boxes = section.locator(".columns input")
    assert boxes.count() == len(everything) - 1, "the names stay"
    assert all(box.is_checked() for box in boxes.all())
    for label in ("ms", "cause"):
        box = section.locator(".columns").get_by_label("column " + label, exact=True)
        box.press("Space")
        assert not box.is_checked() and box.evaluate("(box) => box === document.activeElement")
    left = [key for key in everything if key not in ("ms", "cause")]
    assert visible() == left, visible()
    assert section.locator("tbody tr:not(.detail)").first.locator("td:visible").count() == len(left)
    assert heads.first.bounding_box()["width"] > names, "names have what is free"
    wide = heads.first.bounding_box()["width"]
    toggle = section.locator("tbody button").first
    toggle.click()
    assert int(section.locator("tr.detail td").first.get_attribute("colspan")) == len(left)
    assert abs(heads.first.bounding_box()["width"] - wide) < 1, "evidence adds no column"
    toggle.click()
    check_axe(page, "a choice of columns", "#groups")
    page.page.screenshot(path=folder / "columns.png")
    assert "without=cause+ms" in page.evaluate("location.hash"), page.evaluate("location.hash")
    page.page.reload()
    ready(page)
    assert visible() == left
    page.page.emulate_media(media="print")
    assert visible() == left and not section.locator(".columns").is_visible()
    page.page.emulate_media(media="screen")
    assert len([head for head in page.locator("#instances table.live thead th").all() if head.is_visible()]) == 7, "each table has its own"
    section.get_by_role("button", name="reset", exact=True).click()
    assert visible() == everything


def check_search(page, instances, groups, evidence):
    section, size = page.locator("#instances"), len(instances["id"])
    wanted, slug = instances["group"][size // 2], instances["repository"][-1]
    words = wanted.split("::")[-1].upper()[3:] + " " + slug.split("/")[0]
    parts = words.lower().split()
    names, sets, of = (evidence["files"][key] for key in ("names", "sets", "of"))
    files = [[names[file] for file in sets[of[instances["place"][at]]]] for at in range(size)]
    texts = [f"{a} {b} {c}".lower() for a, b, c in zip(instances["id"], instances["repository"], instances["group"])]
    search(page, section, words, sum(all(part in text for part in parts) for text in texts))
    search(page, section, "tier:hard", instances["tier"].count("hard"))
    search(page, section, "files:>2 length:1..50", sum(f > 2 and 1 <= n <= 50 for f, n in zip(instances["files"], instances["length"])))
    file = files[size // 2][-1]
    search(page, section, "file:" + file, sum(any(file in one for one in own) for own in files))
    for wrong, right in (("tier:hrad", "tier:hard"), ("teir:eazy files:>0", "tier:easy files:>0")):
        search(page, section, wrong, 0)
        said = section.locator("tbody").inner_text()
        assert f"No instance matches “{wrong}”; did you mean {right}?" in said, said
        section.get_by_role("button", name=right, exact=True).click()
        wait_for_count(section, instances["tier"].count(right[5:9]))
        assert section.locator("input[type=search]").input_value() == right
    search(page, section, "no-such-test-anywhere", 0)
    assert "No instance matches “no-such-test-anywhere”. " in section.locator("tbody").inner_text()
    section.get_by_role("button", name="Clear filters").click()
    wait_for_count(section, size)
    if size > ROWS:
        more = section.locator("button.more")
        assert section.locator("tbody tr").count() == ROWS
        more.click()
        assert section.locator("tbody tr").count() == min(size, 2 * ROWS)
    else:
        assert not section.locator("button.more").is_visible()


def downloaded(page, section, name):
    with page.page.expect_download() as download:
        section.get_by_role("button", name=name, exact=True).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def check_saving(page, instances):
    section = page.locator("#instances")
    chip(section, "hard").click()
    expected = {one for one, tier in zip(instances["id"], instances["tier"]) if tier == "hard"}
    wait_for_count(section, len(expected))
    lines = [json.loads(line) for line in downloaded(page, section, "JSONL").splitlines()]
    rows = list(csv.DictReader(io.StringIO(downloaded(page, section, "CSV"))))
    assert {one["instance_id"] for one in lines} == {one["instance_id"] for one in rows} == expected
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    section.get_by_role("button", name="copy ids").click()
    page.until("[...document.querySelectorAll('[role=status]')].some((node) => node.textContent === 'copied')")
    assert set(page.evaluate("navigator.clipboard.readText()").split()) == expected
    section.get_by_role("button", name="reset", exact=True).click()


def check_tree_of_calls(dialog, trace, at):
    """Each function stands below its callers, and those that nothing of the tree called on top."""
    rows = [trace["of"][at][i : i + 4] for i in range(0, len(trace["of"][at]), 4)]
    names = [trace["functions"][row[0]][1] for row in rows]
    callers = [set(trace["callers"][row[3]]) - {i} for i, row in enumerate(rows)]
    tops = [i for i, one in enumerate(callers) if not one]
    seen = dialog.locator("ul.tree > li")
    assert seen.count() == len(tops) > 0 and len(tops) < len(rows)
    for place, top in enumerate(tops):
        below = [i for i, one in enumerate(callers) if top in one]
        inner = seen.nth(place).locator("> details")
        assert inner.count() == (1 if below else 0)
        if below:
            if inner.get_attribute("open") is None:
                inner.locator("> summary").click()
            inner.locator("> ul > li").first.wait_for()
            shown = inner.locator("> ul > li > code, > ul > li > details > summary > code").all_inner_texts()
            assert [one.replace("\u200b", "") for one in shown] == [names[i] for i in below]


def check_view(page, instances, details, url):
    """The view of one instance says what the data says; next, previous, unknown ids."""
    section, dialog = page.locator("#instances"), page.locator("#one")
    section.locator("th[data-sort=length] button").click()
    section.locator("tbody a").first.click()
    assert dialog.is_visible()
    at = instances["id"].index(page.evaluate("address.now().open"))
    text = dialog.inner_text().replace("\u202f", "")
    command = details["command"]["texts"][details["command"]["of"][at]].replace("\0", instances["group"][at])
    assert command in text and f"{instances['length'][at]} calls into the tree" in text
    assert f"{details['attempts'][at]} of {details['attempts'][at]} runs agree" in text
    assert f"{instances['cases'][at]} case" in text and "gistmill replay" in text
    trace, functions = details["trace"]["of"][at], details["trace"]["functions"]
    assert trace, "the hardest instances have their traces"
    assert sum(trace[1::4]) == instances["length"][at]
    files = {functions[function][0] for function in trace[::4]}
    calls = dialog.locator("table.calls").first
    assert calls.locator("tbody").count() == len(files) == instances["files"][at]
    assert dialog.locator(".runs .run").count() >= details["attempts"][at], "a square for each attempt"
    samples = dialog.locator(".samples .run")
    inside = dialog.bounding_box()
    assert samples.count() == 5 and all(one.bounding_box()["x"] > inside["x"] for one in samples.all()), "what each square means"
    source = details["source"][at]
    lines = dialog.locator("table.code").first.locator("tr")
    assert lines.count() == len(source.splitlines())
    scope = dialog.get_by_label("of", exact=True)
    scope.select_option("tests")
    tests = {file for file in files if details["trace"]["files"][file][1]}
    assert calls.locator("tbody").count() == len(tests)
    check_tree_of_calls(dialog, details["trace"], at)
    check_axe(page, "a view of an instance", "#one")

    order = [instances["id"].index(one) for one in page.evaluate("named.get('instances').shown().map((at) => instances.id[at])")]
    page.locator("#close").focus()
    page.page.keyboard.press("ArrowRight")
    assert page.evaluate("address.now().open") == instances["id"][order[1]], "the next one of the table"
    assert instances["group"][order[1]] in dialog.inner_text()
    page.page.keyboard.press("ArrowLeft")
    assert page.evaluate("address.now().open") == instances["id"][order[0]]
    assert page.locator("#previous").is_disabled()
    page.page.keyboard.press("Escape")
    # The address follows in the event of closing, a task of its own.
    page.until("address.now().open === null")
    assert not dialog.is_visible() and "sort=-length" in page.evaluate("location.hash"), "the order stays"
    page.page.goto(f"{url}#i={instances['id'][0]}")
    dialog.wait_for(state="visible")
    assert instances["group"][0] in dialog.inner_text(), "a link leads to an instance"
    page.evaluate("location.hash = '#i=no-such-instance'")
    page.until("document.getElementById('view').innerText.includes('no instance “no-such-instance” in')")
    page.locator("#close").click()
    assert not dialog.is_visible()
    page.page.goto(url)
    ready(page)


def check_scatter(page, instances):
    marks = page.locator(".scatter .mark")
    numbers = [int(text) for text in page.locator(".scatter .mark text").all_text_contents()]
    if "close together" not in page.locator("#difficulty").inner_text():
        assert marks.count() - len(numbers) + sum(numbers) == len(instances["id"]), "every instance is in one mark"
    single = page.locator(".scatter .mark[href^='#i=']").first
    wanted = single.get_attribute("href").removeprefix("#i=")
    single.hover(force=True)
    hint = page.locator("#tooltip").inner_text()
    group = instances["group"][instances["id"].index(wanted)]
    assert "\ufffd" not in page.locator(".scatter").inner_html(), "a character that is none"
    assert hint.split("\n")[0].endswith(group) or page.evaluate("matchMedia('(hover: none)').matches"), hint
    single.evaluate("(mark) => mark.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))")
    assert page.evaluate("address.now().open") == wanted
    page.locator("#close").click()
    page.until("address.now().open === null")
    several = page.locator(".scatter .mark[href^='#instances']").first
    if several.count():
        several.dispatch_event("pointermove")
        size = int(several.get_attribute("aria-label").split()[0])
        several.dispatch_event("click")
        section = page.locator("#instances")
        wait_for_count(section, size)
        section.get_by_role("button", name="reset", exact=True).click()
    ticks = [text.replace("\u202f", "") for text in page.locator(".scatter > text:not(.name):not(.region)").all_text_contents()]
    across = ticks[: [int(a) > int(b) for a, b in zip(ticks, ticks[1:])].index(True) + 1] if len(ticks) > 1 else ticks
    assert len(set(across)) == len(across), ticks


def check_column_of_one_cause(section):
    """Where all rows have the same cause, no column says it; what was chosen to be left out stays as it was."""
    head, box = section.locator("th[data-sort=cause]"), section.get_by_label("column cause", exact=True)
    assert not head.is_visible() and not section.locator("tbody td:nth-child(4)").first.is_visible()
    section.locator(".columns summary").click()
    assert box.is_disabled()
    other = section.get_by_label("column ms", exact=True)
    other.uncheck()
    section.get_by_label("cause", exact=True).select_option("")
    assert head.is_visible() and box.is_checked() and box.is_enabled() and not other.is_checked()
    other.check()
    section.locator(".columns summary").click()


def check_open_group(page, section, groups):
    """The address names the group that is open, of all those of its dataset; it opens it, and an unknown one is answered."""
    size = len(groups["id"])
    rows = section.locator("tbody tr:not(.detail)")
    rows.nth(1).locator("button").click()
    rows.nth(2).locator("button").click()
    assert section.locator("tr.detail").count() == 1 and rows.nth(1).locator("button").get_attribute("aria-expanded") == "false"
    assert "open=" in page.evaluate("location.hash")
    page.page.go_back()
    page.until("document.querySelector('#groups tbody tr:nth-child(3)').className === 'detail'")
    dropped = max(at for at, why in enumerate(groups["why"]) if why)
    name = f"{groups['repository'][dropped]}/{groups['id'][dropped]}"
    page.evaluate("(name) => { location.hash = '#groups?' + new URLSearchParams({ open: name }); }", name)
    wait_for_count(section, size)
    page.page.reload()
    ready(page)
    row = section.locator("tbody tr:has(+ tr.detail)")
    assert row.locator("td").first.inner_text().replace("\u200b", "") == groups["id"][dropped]
    assert row.locator("td").nth(1).inner_text().replace("\u200b", "") == groups["repository"][dropped]
    button = row.locator("button")
    assert button.get_attribute("aria-expanded") == "true" and button.evaluate("(button) => button === document.activeElement")
    top, bottom = (button.bounding_box()["y"] + more for more in (0, button.bounding_box()["height"]))
    assert 0 <= top and bottom <= page.page.viewport_size["height"], "it is seen"
    check_axe(page, "an open group", "#groups")
    other = groups["why"][next(at for at, why in enumerate(groups["why"]) if why and why != groups["why"][dropped])]
    page.evaluate("(asked) => { location.hash = '#groups?' + new URLSearchParams(asked); }", {"open": name, "cause": other})
    wait_for_count(section, groups["why"].count(other))
    assert section.locator("tr.detail").count() == 0
    section.get_by_role("link", name="Show it").click()
    wait_for_count(section, size)
    assert section.locator("tr.detail").count() == 1
    page.evaluate("location.hash = '#groups?open=no/such/group'")
    page.until("document.querySelector('#groups .answer').innerText.includes('There is no group “no/such/group” in')")
    assert section.locator("tr.detail").count() == 0
    page.evaluate("location.hash = '#groups?sort=group'")
    page.until("document.querySelector('#groups .answer').innerText === ''")


def check_groups(page, groups, evidence):
    size = len(groups["id"])
    section = page.locator("#groups")
    assert count(section) == [size, size]
    assert section.locator("tbody tr").count() == min(size, FEW), "few, until something is asked for"
    assert section.locator("button.more").is_visible() == (size > FEW)
    link = page.locator("#causes th a").first
    name = link.inner_text()
    link.click()
    wait_for_count(section, groups["why"].count(name))
    assert section.locator("tbody tr").count() == min(groups["why"].count(name), ROWS)
    assert set(column(section, 4)) == {name}
    check_column_of_one_cause(section)
    check_open_group(page, section, groups)
    link.click()
    wait_for_count(section, groups["why"].count(name))
    toggle = section.locator("tbody button").first
    toggle.click()
    assert toggle.get_attribute("aria-expanded") == "true"
    more = section.locator("tr.detail").first.inner_text()
    found = evidence["evidence"][groups["id"].index(toggle.inner_text())]
    assert found["summary"] in more and found.get("command", "") in more
    lines = found.get("excerpt", "").splitlines()
    added = [line for line in lines if line.startswith("+")] if any(line.startswith("@@ ") for line in lines) else []
    assert section.locator("tr.detail .plus").count() == len(added)
    toggle.click()
    assert section.locator("tr.detail").count() == 0
    section.get_by_role("button", name="reset", exact=True).click()
    wait_for_count(section, size)
    part = page.locator(".bars .stack a:not(.published):not(.kept):not(.unsolvable)").first
    family = part.get_attribute("class")
    part.click()
    wait_for_count(section, sum(cause is not None and groups["families"][cause] == family for cause in groups["cause"]))
    section.get_by_role("button", name="reset", exact=True).click()
    page.locator("#overview .legend a").first.click()
    wait_for_count(section, groups["state"].count(0))
    section.get_by_role("button", name="reset", exact=True).click()
    said = [text.replace("\u202f", "") for text in section.locator(".chip").all_text_contents()]
    assert said == [f"{name} {groups['state'].count(at)}" for at, name in enumerate(groups["states"])], said
    causes = section.get_by_label("cause", exact=True)
    causes.focus()
    said = [text.replace("\u202f", "") for text in causes.locator("option").all_text_contents()]
    assert said[1:] == [f"{cause} ({groups['why'].count(cause)})" for cause in sorted(groups["causes"])], said
    chip(section, "published").click()
    wait_for_count(section, groups["state"].count(0))
    causes.focus()
    said = causes.locator("option").all_text_contents()
    assert said[1:] == [f"{cause} (0)" for cause in sorted(groups["causes"])], f"what is published has no cause: {said}"
    chip(section, "published").click()
    wait_for_count(section, size)
    section.locator("th[data-sort=ms] button").click()
    shown = [float(cell) for cell in column(section, 9) if cell != "–"]
    assert shown == sorted(shown, reverse=True) and shown
    section.get_by_role("button", name="reset", exact=True).click()


def check_keyboard(page):
    """What the keyboard goes back to is below the heads that stay; what an address asks for and no list knows is seen."""
    section = page.locator("#groups")
    rows = section.locator("tbody tr:not(.detail) button")
    rows.nth(9).evaluate("(button) => { button.scrollIntoView({ block: 'start' }); scrollBy(0, 300); button.focus({ preventScroll: true }); }")
    for _ in range(5):
        page.page.keyboard.press("Shift+Tab")
        top = page.evaluate("document.activeElement.getBoundingClientRect().top")
        below = section.locator("table.live thead").evaluate("(heads) => heads.rows[0].cells[0].getBoundingClientRect().bottom")
        assert page.evaluate("document.activeElement.closest('#groups tbody') !== null")
        assert top >= below, f"a row that has the focus is at {top}, the heads end at {below}"
    page.evaluate("location.hash = '#groups?cause=no-such-cause'")
    wait_for_count(section, 0)
    assert section.get_by_label("cause", exact=True).locator("option:checked").inner_text() == "no-such-cause (0)"
    section.get_by_role("button", name="reset", exact=True).click()


def check_names(page, name):
    """The other columns of a table leave the names their part of it."""
    for table in ("instances", "groups"):
        whole, names = (page.locator(f"#{table} {part}").first.bounding_box()["width"] for part in ("table.live", "thead th"))
        assert names >= whole * LEAST_FOR_NAMES, f"{name}: names of {table} have {names} of {whole}"


def check_signs(page, name):
    """Each head says that it sorts, and the one that does which way."""
    signs = page.locator("table.live thead button").evaluate_all("all => all.map((one) => getComputedStyle(one, '::after').content.replace(/[^↕↑↓]/g, ''))")
    assert sorted(set(signs)) == ["↓", "↕"] and signs.count("↓") == 1, f"{name}: {signs}"


def check_print(page, folder):
    page.page.emulate_media(media="print")
    assert not page.locator("#instances .tools").is_visible() and page.locator("#instances table").is_visible()
    more = page.locator("#groups button.more")
    if more.is_visible():
        said = more.evaluate("(button) => getComputedStyle(button, '::after').content")
        assert "attr" in said or "more" in said, f"paper says what it leaves out: {said}"
    assert page.locator("#instances thead button").first.evaluate("(button) => getComputedStyle(button).display") == "contents", "heads are repeated"
    page.page.pdf(path=folder / "print.pdf")
    page.page.emulate_media(media="screen")


def check_phone(page, instances):
    section = page.locator("#instances")
    assert not section.locator("thead").is_visible(), "rows are cards"
    section.get_by_label("sort by").select_option("-length")
    shown = [int(cell) for cell in column(section, 5)]
    assert shown == sorted(instances["length"], reverse=True)[:ROWS]
    section.locator("tbody a").first.click()
    calls = page.locator("#one table.calls")
    ends = calls.evaluate("""(table) => [table, ...table.rows].map((row) => Math.round(row.getBoundingClientRect().right))""")
    places = calls.evaluate("""(table) => [table.rows[0], table.tBodies[0].rows[0]].map((row) => [...row.cells].map((cell) => Math.round(cell.getBoundingClientRect().left)).filter(Boolean))""")
    assert len(set(ends)) == 1, f"rows are as wide as their table: {ends}"
    assert places[0] == places[1] and len(places[0]) == 3, f"heads are above their cells: {places}"
    page.locator("#close").click()
    page.until("address.now().open === null")
    section.get_by_role("button", name="reset", exact=True).click()


def shoot(page, folder, name):
    page.page.screenshot(path=folder / f"{name}.png")
    for section in ("causes", "difficulty", "instances", "groups", "environments"):
        page.evaluate("(id) => document.getElementById(id).scrollIntoView()", section)
        page.page.screenshot(path=folder / f"{name}-{section}.png")
    page.evaluate("scrollTo(0, 0)")


def check_plain(browser, url, folder, instances):
    page = Page(browser, url, java_script_enabled=False, viewport=DESK)
    assert page.locator("#instances tbody tr").count() == min(ROWS, len(instances["id"]))
    assert page.locator("#overview .figures li").count() == 4
    size = len(instances["id"])
    said = " ".join(page.locator("#overview .figures li").last.inner_text().replace("\u202f", "").split())
    assert said == f"{size} of {size} agree in 12 runs and 2 worlds, and cold", said
    assert "namespaces" in page.locator("#environments .trust").inner_text()
    bars, load = (page.locator(part).first.bounding_box()["y"] for part in ("#overview .stack", "#load"))
    assert bars < DESK["height"] and bars < load, "the picture is on the first screen, and before how to load"
    tiers = page.locator("#instances tbody .tier").all_inner_texts()
    assert tiers == sorted(tiers, key=["hard", "medium", "easy"].index), "the hardest come first"
    assert page.locator("#overview .stack > a").first.is_visible()
    assert page.locator("#difficulty svg").first.is_visible() and page.locator("#difficulty .histogram").first.is_visible()
    assert "JavaScript" in page.locator("#groups noscript").inner_text()
    page.page.screenshot(path=folder / "plain.png")
    page.close()


def main(report, folder, chromium):
    folder.mkdir(parents=True, exist_ok=True)
    url = report.resolve().as_uri()
    measured = {"bytes": report.stat().st_size}
    papers = {}
    sizes = {"desk": DESK, "tablet": TABLET, "phone": PHONE}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in ("desk-light", "desk-dark", "tablet-light", "phone-light", "phone-dark"):
            size, scheme = name.split("-")
            page = Page(browser, url, color_scheme=scheme, viewport=sizes[size])
            ready(page)
            if name == "desk-light":
                measured["interactive_ms"] = round(page.evaluate("performance.getEntriesByName('ready')[0].startTime"))
                instances, groups, evidence, details = embedded(page)
                measured |= {"groups": len(groups["id"]), "instances": len(instances["id"])}
            papers[name] = check_contrast(page, name, MARKS)
            tiers = luminances(page, ["--easy", "--medium", "--hard"])
            steps = [contrast(tiers[a], tiers[b]) for a, b in (("--easy", "--medium"), ("--medium", "--hard"))]
            assert min(steps) >= LEAST_BETWEEN_TIERS, f"{name}: tiers by light and dark alone: {steps}"
            check_width(page, name)
            if size == "desk":
                for width in (1280, 1100):
                    page.page.set_viewport_size({"width": width, "height": 900})
                    check_width(page, f"{name} at {width}")
                page.page.set_viewport_size(DESK)
            if size != "phone":
                check_names(page, name)
                check_signs(page, name)
            shoot(page, folder, name)
            # A page with thousands of rows takes its time: it is tried in one of them.
            if name == "desk-light" or measured["groups"] < 1000 and size != "tablet":
                if size == "desk":
                    check_tools(page, instances)
                    check_saving(page, instances)
                    check_print(page, folder)
                    check_view(page, instances, details, url)
                else:
                    check_phone(page, instances)
                check_search(page, instances, groups, evidence)
                check_scatter(page, instances)
                if size == "desk":
                    check_groups(page, groups, evidence)
                    check_keyboard(page)
                    check_columns(page, folder)
                check_width(page, name)
            page.locator("#groups tbody button").first.click()
            if name == "desk-light" or measured["groups"] < 1000:
                check_axe(page, name)
            page.locator("#instances tbody a").first.click()
            page.page.screenshot(path=folder / f"{name}-instance.png")
            check_width(page, name + " with an instance")
            page.page.keyboard.press("Escape")
            page.close()
        assert papers["desk-dark"] < 0.1 < 0.8 < papers["desk-light"], papers
        check_plain(browser, url, folder, instances)
        browser.close()
    print(json.dumps(measured))


if __name__ == "__main__":
    run(main, __doc__)
