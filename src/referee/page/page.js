
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 100;
  const byId = (id) => document.getElementById(id);
  // Every text goes through the DOM, so nothing of a submission is taken for markup.
  function make(tag, properties = {}, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %");
  const short = (value) => (Number.isInteger(value) ? String(value) : Math.abs(value) < 0.001 && value !== 0 ? value.toExponential(1) : value.toFixed(3));

  // --- the tables
  function cell(value) {
    switch (value.kind) {
      case "text": return make("td", {}, value.text);
      case "rate": return make("td", { className: "n" }, percent(value.rate), value.rate === null ? null : make("span", { className: "of" }, " (" + value.n + ")"));
      case "interval": return make("td", { className: "n" }, (100 * value.low).toFixed(1) + " – " + (100 * value.high).toFixed(1));
      default: return make("td", { className: "n" }, value.value === null ? "–" : short(value.value));
    }
  }
  function table(one) {
    const numeric = one.columns.map((_, at) => one.rows.some((row) => row[at].kind !== "text"));
    const head = make("tr", {}, ...one.columns.map((name, at) => make("th", { scope: "col", className: numeric[at] ? "n" : "" }, name)));
    const rows = one.rows.map((row) => make("tr", {}, ...row.map(cell)));
    return [make("h2", { id: one.id }, one.title), make("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: one.title },
      make("table", {}, make("caption", {}, one.note), make("thead", {}, head), make("tbody", {}, ...rows)))];
  }
  const absent = data.submissions.filter((one) => one.class === "file-creation-failure").length;
  byId("what").textContent = data.runs.length + (data.runs.length === 1 ? " run, " : " runs, ") + data.submissions.length
    + " submissions" + (absent ? ", " + absent + " of them without a file" : "") + ". In brackets: how many a number is of.";
  byId("tables").append(...data.tables.flatMap(table));

  // --- the list: filters and order live in the address
  const outcome = (one) => (one.fidelity === null ? "lost" : one.fidelity ? "right" : one.class);
  const FILTERS = { run: (one) => one.run, repository: (one) => one.slug, tier: (one) => one.tier, outcome };
  const COLUMNS = [
    ["run", (one) => one.run], ["test", (one) => one.group], ["tier", (one) => one.tier], ["outcome", outcome],
    ["detail", (one) => one.detail || ""], ["execution", (one) => one.execution], ["existence", (one) => one.existence],
    ["test F1", (one) => one.f1], ["cases", (one) => (one.passed ? one.passed[0] / one.passed[1] : null)], ["lines", (one) => one.lines],
  ];
  const state = () => new URLSearchParams(location.hash.slice(1));
  function go(change) {
    const next = state();
    for (const [name, value] of Object.entries(change)) value === "" || value === null ? next.delete(name) : next.set(name, value);
    location.hash = next.toString();
  }
  const form = byId("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  const search = make("input", { type: "search", id: "q" });
  search.addEventListener("input", () => go({ q: search.value, show: null }));
  form.append(make("label", {}, "search", search));
  const selects = {};
  for (const [name, of] of Object.entries(FILTERS)) {
    const values = [...new Set(data.submissions.map(of))].sort();
    const select = make("select", {}, make("option", { value: "" }, "all"), ...values.map((value) => make("option", { value }, value)));
    select.addEventListener("change", () => go({ [name]: select.value, show: null }));
    selects[name] = select;
    form.append(make("label", {}, name, select));
  }
  const reset = make("button", { type: "button" }, "reset");
  reset.addEventListener("click", () => { location.hash = ""; });
  form.append(reset);
  const head = make("tr");
  for (const [at, [name]] of COLUMNS.entries()) {
    const button = make("button", { type: "button", className: "link" }, name);
    button.addEventListener("click", () => go({ sort: state().get("sort") === String(at) ? "-" + at : at }));
    head.append(make("th", { scope: "col", className: at > 4 ? "n" : "" }, button));
  }
  byId("list").tHead.append(head);

  let order = [], shown = 0;
  function update() {
    const wanted = state();
    if (search.value !== (wanted.get("q") || "")) search.value = wanted.get("q") || "";
    for (const name of Object.keys(FILTERS)) selects[name].value = wanted.get(name) || "";
    const words = (wanted.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    order = data.submissions.map((_, at) => at).filter((at) => {
      const one = data.submissions[at];
      const text = (one.group + " " + one.instance + " " + one.run + " " + (one.detail || "")).toLowerCase();
      return words.every((word) => text.includes(word))
        && Object.entries(FILTERS).every(([name, of]) => !wanted.get(name) || of(one) === wanted.get(name));
    });
    const sort = wanted.get("sort");
    const column = sort === null ? undefined : COLUMNS[Math.abs(parseInt(sort, 10))];
    for (const [at, th] of [...head.children].entries()) {
      const own = sort !== null && Math.abs(parseInt(sort, 10)) === at;
      own ? th.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending") : th.removeAttribute("aria-sort");
    }
    if (column) {
      const sign = sort.startsWith("-") ? -1 : 1;
      order.sort((a, b) => {
        const [x, y] = [column[1](data.submissions[a]), column[1](data.submissions[b])];
        if (x === y) return a - b;
        if (x === null) return 1;
        if (y === null) return -1;
        return x < y ? -sign : sign;
      });
    }
    byId("count").textContent = order.length === 0 ? "No submission passes these filters." : order.length + " of " + data.submissions.length;
    byId("list").tBodies[0].replaceChildren();
    shown = 0;
    more();
    show(wanted.get("show"));
  }
  function more() {
    const rows = order.slice(shown, shown + PAGE).map((at) => {
      const one = data.submissions[at];
      const open = make("button", { type: "button", className: "link" }, one.group);
      open.addEventListener("click", () => go({ show: at }));
      const n = (text) => make("td", { className: "n" }, text);
      return make("tr", {}, make("td", {}, one.run), make("td", { className: "id" }, open), make("td", {}, one.tier + (one.hard ? " (hard subset)" : "")),
        make("td", { className: one.fidelity ? "good" : one.fidelity === false ? "bad" : "" }, outcome(one)), make("td", {}, one.detail || ""),
        n(percent(one.execution)), n(percent(one.existence)), n(one.f1 === null ? "–" : one.f1.toFixed(2)),
        n(one.passed ? one.passed.join(" of ") : "–"), n(one.lines));
    });
    byId("list").tBodies[0].append(...rows);
    shown += rows.length;
    byId("more").hidden = shown >= order.length;
  }
  byId("more").addEventListener("click", more);

  // --- one submission
  function source(detail) {
    const lines = detail.text.split(/\r\n|\r|\n/);
    if (lines[lines.length - 1] === "") lines.pop();
    const units = new Map(detail.lines.map((unit) => [unit[0], unit]));
    const [replaced, original] = detail.replacement || [null, null];
    const rows = [];
    let last = null;
    for (const [at, text] of lines.entries()) {
      const number = at + 1;
      const unit = units.get(number);
      if (unit) last = unit;
      const within = last && number <= last[1] ? last : null;
      const out = replaced && number >= replaced.first && number <= replaced.last;
      const marks = !unit ? "" : (unit[3] === null ? "" : unit[3] ? "in the original" : "new") + (unit[5] === null ? "" : unit[5] ? ", ran" : ", did not run");
      const kinds = [within && within[3] === false ? "missing" : "", within && within[5] === false ? "idle" : "", out ? "replaced" : ""];
      rows.push(make("tr", { className: kinds.filter(Boolean).join(" "), title: unit ? unit[2] : "" }, make("td", { className: "n" }, String(number)),
        make("td", { className: "source" }, text), make("td", { className: "mark" }, out ? "" : marks.replace(/^, /, "")), make("td", { className: "place" }, (unit && unit[4]) || "")));
      if (out && number === replaced.last) {
        for (const text of original.replace(/\r?\n$/, "").split("\n")) {
          rows.push(make("tr", { className: "original" }, make("td", { className: "n" }, "+"), make("td", { className: "source" }, text), make("td", { className: "mark" }, "the original test"), make("td")));
        }
      }
    }
    const names = ["line", "source", "what it is", "where it stands"].map((name) => make("th", { scope: "col" }, name));
    return make("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: "source" }, make("table", { className: "code" }, make("thead", {}, make("tr", {}, ...names)), make("tbody", {}, ...rows)));
  }
  function show(at) {
    const place = byId("one");
    const element = at === null ? null : byId("d" + at);
    place.hidden = !element;
    place.replaceChildren();
    if (!element) return;
    const one = data.submissions[at], detail = JSON.parse(element.textContent);
    const facts = make("dl");
    const fact = (name, value) => value === null || value === undefined || value === "" ? null : facts.append(make("dt", {}, name), make("dd", {}, value));
    fact("run", one.run); fact("instance", one.instance); fact("command", detail.command);
    fact("outcome", outcome(one) + (one.detail ? ", " + one.detail : ""));
    fact("violations", detail.violations.join(", "));
    fact("the test", { equal: "is the original", replaced: "was replaced by the original", none: "is no definition in the original; run as submitted" }[detail.injection]);
    fact("runs that agree", detail.attempts[0] ? detail.attempts[1] + " of " + detail.attempts[0] : "");
    fact("line execution", percent(one.execution) + (detail.untraced ? " (" + detail.untraced + ")" : ""));
    fact("line existence", percent(one.existence)); fact("test F1", one.f1 === null ? "–" : one.f1.toFixed(3));
    fact("not readable", detail.unreadable ? JSON.stringify(detail.unreadable) : "");
    const close = make("button", { type: "button" }, "close");
    close.addEventListener("click", () => go({ show: null }));
    place.append(make("h2", {}, one.group), close, facts);
    for (const item of detail.cases || []) {
      place.append(make("h3", {}, item.case + ": " + item.difference));
      if (item.expected || item.seen) place.append(make("pre", {}, "expected: " + item.expected + "\nseen:     " + item.seen));
    }
    const list = (title, items, text) => items.length && place.append(make("h3", {}, title), make("ul", {}, ...items.map((item) => make("li", {}, text(item)))));
    list("Findings", detail.findings, (item) => item.kind + ", line " + item.line + ": " + item.evidence);
    list("Imports of the repository", detail.imports, (item) => item.module + " by " + item.file + ":" + item.line);
    if (detail.output) place.append(make("h3", {}, "End of the output"), make("pre", {}, detail.output));
    if (detail.text !== null) place.append(make("h3", {}, "The file"), source(detail));
    else place.append(make("p", {}, detail.bytes === null ? "There is no file." : "The file has " + detail.bytes + " bytes and is not shown here."));
    place.scrollIntoView();
    place.focus({ preventScroll: true });
  }
  addEventListener("hashchange", update);
  update();
})();
