
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 100;
  const TIERS = { easy: 0, medium: 1, hard: 2 };

  // --- small helpers; every text goes through textContent, so nothing of the data is taken for markup
  function make(tag, properties = {}, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const number = (value) => (value === null || value === undefined ? "–" : String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009"));
  const cell = (value, kind) => make("td", { className: kind || "" }, value);
  const badge = (kind, text) => make("span", { className: kind + " " + text }, text);

  // --- a table that is searched, filtered and sorted over indices, and rendered as far as it is scrolled to
  function liveTable(section, { size, haystack, keys, filters, row, start }) {
    const table = section.querySelector("table");
    const body = table.tBodies[0];
    const tools = section.querySelector(".tools");
    const search = make("input", { type: "search", placeholder: "search", ariaLabel: "search" });
    const count = make("output");
    const selects = filters.map((filter) => {
      const select = make("select", { ariaLabel: filter.name }, make("option", { value: "" }, filter.name + ": all"));
      for (const value of filter.values) select.append(make("option", { value }, value));
      select.addEventListener("change", update);
      return select;
    });
    tools.append(search, ...selects, count);
    tools.hidden = table.hidden = false;
    const frame = table.parentElement;
    frame.classList.add("scroll");

    const texts = Array.from({ length: size }, (_, at) => haystack(at).toLowerCase());
    let shown = [], rendered = 0, sort = start, timer = 0;

    function passes(at, words) {
      return filters.every((filter, i) => !selects[i].value || filter.test(at, selects[i].value))
        && words.every((word) => texts[at].includes(word));
    }
    function compare(a, b) {
      const [x, y] = [keys[sort.key](a), keys[sort.key](b)];
      if (x === y) return a - b;
      if (x === null || x === undefined) return 1; // unknown values last, whichever way
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : 1) * (sort.down ? -1 : 1);
    }
    function update() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = [];
      for (let at = 0; at < size; at++) if (passes(at, words)) shown.push(at);
      if (sort) shown.sort(compare);
      count.textContent = number(shown.length) + " of " + number(size);
      body.replaceChildren();
      frame.scrollTop = 0;
      rendered = 0;
      more();
    }
    function more() {
      const next = shown.slice(rendered, rendered + PAGE);
      rendered += next.length;
      body.append(...next.map(row));
      if (rendered < shown.length) watcher.observe(body.lastElementChild);
    }
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watcher.unobserve(entry.target);
        if (entry.target === body.lastElementChild) more();
      }
    }, { root: frame, rootMargin: "600px" });
    for (const head of table.tHead.querySelectorAll("[data-sort]")) {
      head.classList.add("live");
      head.tabIndex = 0;
      const resort = () => {
        const key = head.dataset.sort;
        sort = { key, down: sort && sort.key === key ? !sort.down : head.classList.contains("n") };
        for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
        update();
      };
      head.addEventListener("click", resort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") resort(); });
    }
    search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(update, 120); });
    update();
    return {
      show(values) {
        search.value = "";
        selects.forEach((select, i) => { select.value = values[filters[i].name] || ""; });
        update();
      },
    };
  }

  // --- instances and their traces
  const instances = data.instances;
  const placeOf = new Map(instances.id.map((id, at) => [id, at]));
  const slugs = [...new Set(instances.slug)];
  const openTrace = (at, text) => {
    const button = make("button", { type: "button", className: "link" }, text);
    button.addEventListener("click", () => {
      history.replaceState(null, "", "#i=" + instances.id[at]); // a link to share; `follow` reads it
      showTrace(at);
    });
    return button;
  };
  liveTable(document.getElementById("instances"), {
    size: instances.id.length,
    haystack: (at) => instances.id[at] + " " + instances.slug[at] + " " + instances.group[at],
    keys: {
      group: (at) => instances.group[at], slug: (at) => instances.slug[at], tier: (at) => TIERS[instances.tier[at]],
      hard: (at) => instances.hard[at].join(", ") || null, length: (at) => instances.length[at],
      files: (at) => instances.files[at], cases: (at) => instances.cases[at],
    },
    filters: [
      { name: "repository", values: slugs, test: (at, value) => instances.slug[at] === value },
      { name: "tier", values: Object.keys(TIERS), test: (at, value) => instances.tier[at] === value },
      { name: "top by", values: ["trace_length", "unique_files", "either"],
        test: (at, value) => (value === "either" ? instances.hard[at].length > 0 : instances.hard[at].includes(value)) },
    ],
    row: (at) => make("tr", {},
      cell(openTrace(at, instances.group[at]), "id"), cell(instances.slug[at]), cell(badge("tier", instances.tier[at])),
      cell(instances.hard[at].join(", ")), cell(number(instances.length[at]), "n"), cell(number(instances.files[at]), "n"),
      cell(number(instances.cases[at]), "n")),
  });

  function facts(pairs) {
    return make("dl", {}, ...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  }
  function traceTree(at) {
    const { functions, files, of } = instances.trace;
    const flat = of[at];
    if (!flat) return make("p", {}, "The page holds the traces of the hardest instances only; this one is in traces.parquet.");
    const root = { folders: new Map(), files: new Map(), calls: 0 };
    for (let i = 0; i < flat.length; i += 2) {
      const [file, name, line] = functions[flat[i]];
      const steps = files[file].split("/");
      const leaf = steps.pop();
      let node = root;
      node.calls += flat[i + 1];
      for (const step of steps) {
        if (!node.folders.has(step)) node.folders.set(step, { folders: new Map(), files: new Map(), calls: 0 });
        node = node.folders.get(step);
        node.calls += flat[i + 1];
      }
      if (!node.files.has(leaf)) node.files.set(leaf, []);
      node.files.get(leaf).push([name, line, flat[i + 1]]);
    }
    return make("div", { className: "tree" }, ...branches(root));
  }
  const calls = (value) => make("span", { className: "n" }, " " + number(value) + (value === 1 ? " call" : " calls"));
  function branches(node) {
    const folders = [...node.folders].map(([name, child]) => make("details", { open: true },
      make("summary", {}, name + "/", calls(child.calls)), ...branches(child)));
    const files = [...node.files].map(([name, list]) => make("details", { open: list.length <= 12 },
      make("summary", {}, name, calls(list.reduce((sum, one) => sum + one[2], 0))),
      make("ul", {}, ...list.map(([name, line, count]) => make("li", {}, name + " ", make("small", {}, "line " + line), calls(count))))));
    return [...folders, ...files];
  }
  const dialog = document.getElementById("trace");
  function showTrace(at) {
    dialog.querySelector("div").replaceChildren(
      make("h2", {}, instances.group[at]),
      make("pre", {}, instances.command[at]),
      facts([
        ["instance", instances.id[at]], ["repository", instances.slug[at]], ["tier", badge("tier", instances.tier[at])],
        ["top by", instances.hard[at].join(", ") || "–"],
        ["trace length", number(instances.length[at]) + " calls into the tree, " + number(instances.package[at])
          + " outside the tests, " + number(instances.total[at]) + " in all code"
          + (instances.stable[at] ? "" : " (traced attempts disagree)")],
        ["reach", number(instances.files[at]) + " files, " + number(instances.functions[at]) + " functions, "
          + number(instances.lines[at]) + " lines; " + number(instances.imports[at]) + " calls while importing"],
        ["attempts", number(instances.attempts[at]) + " agree in " + instances.worlds[at].join(", ")
          + "; failure rate below " + (100 * instances.bound[at]).toFixed(1) + " %"],
      ]),
      traceTree(at));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  function follow() {
    const at = location.hash.startsWith("#i=") ? placeOf.get(location.hash.slice(3)) : undefined;
    if (at !== undefined) showTrace(at);
  }
  dialog.addEventListener("close", () => history.replaceState(null, "", "#"));
  window.addEventListener("hashchange", follow);

  // --- groups with their evidence
  const groups = data.groups;
  const cause = (at) => (groups.cause[at] === null ? null : groups.causes[groups.cause[at]]);
  function evidence(at) {
    const found = groups.evidence[at] || {};
    const pairs = [];
    if (found.summary) pairs.push(["evidence", found.summary]);
    if (found.seen && found.seen.length) pairs.push(["seen in", found.seen.join(", ")]);
    if (found.excerpt) pairs.push(["excerpt", make("pre", {}, found.excerpt)]);
    if (found.command) pairs.push(["see it again", make("pre", {}, found.command)]);
    if (groups.flags[at].length) pairs.push(["flags", groups.flags[at].join(", ")]);
    if (groups.tier[at]) pairs.push(["tier", badge("tier", groups.tier[at])]);
    const place = groups.state[at] === "published" ? placeOf.get(groups.instance[at]) : undefined;
    if (place !== undefined) pairs.push(["instance", openTrace(place, groups.instance[at])]);
    if (!pairs.length) pairs.push(["state", "kept, but not in the sample"]);
    return make("tr", { className: "more" }, make("td", { colSpan: 9 }, facts(pairs)));
  }
  function groupRow(at) {
    const toggle = make("button", { type: "button", className: "link" }, groups.id[at]);
    const row = make("tr", {}, cell(toggle, "id"), cell(groups.slugs[groups.slug[at]]), cell(badge("state", groups.state[at])),
      cell(cause(at) || ""), cell(number(groups.cases[at]), "n"), cell(number(groups.attempts[at]), "n"),
      cell(number(groups.length[at]), "n"), cell(number(groups.files[at]), "n"),
      cell(groups.ms[at] === null ? "–" : groups.ms[at].toFixed(1), "n"));
    toggle.ariaExpanded = "false";
    toggle.addEventListener("click", () => {
      const open = toggle.ariaExpanded === "true";
      if (open) row.nextElementSibling.remove(); else row.after(evidence(at));
      toggle.ariaExpanded = String(!open);
    });
    return row;
  }
  const groupTable = liveTable(document.getElementById("groups"), {
    size: groups.id.length,
    haystack: (at) => groups.id[at] + " " + groups.slugs[groups.slug[at]] + " " + (cause(at) || "") + " "
      + groups.flags[at].join(" ") + " " + ((groups.evidence[at] || {}).summary || ""),
    keys: {
      id: (at) => groups.id[at], slug: (at) => groups.slugs[groups.slug[at]], state: (at) => groups.state[at], cause,
      cases: (at) => groups.cases[at], attempts: (at) => groups.attempts[at], length: (at) => groups.length[at],
      files: (at) => groups.files[at], ms: (at) => groups.ms[at],
    },
    filters: [
      { name: "repository", values: groups.slugs, test: (at, value) => groups.slugs[groups.slug[at]] === value },
      { name: "state", values: ["published", "kept", "dropped"], test: (at, value) => groups.state[at] === value },
      { name: "cause", values: [...groups.causes].sort(), test: (at, value) => cause(at) === value },
    ],
    row: groupRow,
  });
  for (const link of document.querySelectorAll("[data-cause]")) {
    link.addEventListener("click", () => groupTable.show({ cause: link.dataset.cause }));
  }
  follow();
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
})();
