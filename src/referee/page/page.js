const { runs, tables, submissions, dataset, version } = data("data");
const short = (value) => (Number.isInteger(value) ? String(value) : Math.abs(value) < 0.001 && value !== 0 ? value.toExponential(1) : value.toFixed(3));

// --- the tables
function valueCell(value) {
  switch (value.kind) {
    case "text": return make("td", {}, value.text);
    case "rate": return make("td", { className: "n" }, percent(value.rate), value.rate === null ? null : make("span", { className: "of" }, " (" + value.n + ")"));
    case "interval": return make("td", { className: "n" }, (100 * value.low).toFixed(1) + " – " + (100 * value.high).toFixed(1));
    default: return make("td", { className: "n" }, value.value === null ? "–" : short(value.value));
  }
}
// What a note has between backticks is code.
const codeIn = (text) => text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
function table(one) {
  const numeric = one.columns.map((_, at) => one.rows.some((row) => row[at].kind !== "text"));
  const head = make("tr", {}, ...one.columns.map((name, at) => make("th", { scope: "col", className: numeric[at] ? "n" : "" }, name)));
  const rows = one.rows.map((row) => make("tr", {}, ...row.map(valueCell)));
  const frame = make("div", { className: "wide", tabIndex: 0, ariaLabel: one.title },
    make("table", {}, make("caption", {}, ...codeIn(one.note)), make("thead", {}, head), make("tbody", {}, ...rows)));
  frame.setAttribute("role", "region");
  return [make("h2", { id: one.id }, one.title), frame];
}
const absent = submissions.filter((one) => one.class === "file-creation-failure").length;
const outcome = (one) => (one.fidelity === null ? "lost" : one.fidelity ? "right" : one.class);
byId("what").textContent = plural(runs.length, "run") + ", " + plural(submissions.length, "submission")
  + (absent ? ", " + number(absent) + " of them without a file" : "") + ". In brackets: how many a number is of.";
byId("tables").append(...tables.flatMap(table));

// --- three figures a run, and a bar by tier
const CLASSES = [...new Set(submissions.filter((one) => one.class).map((one) => one.class))].sort();
const shade = (name) => (name === "right" ? "right" : "failure-" + (CLASSES.indexOf(name) % 6));
function mean(list, key) {
  const values = list.map((one) => one[key]).filter((value) => value !== null);
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}
function figure(value, words) {
  return make("li", {}, make("b", {}, percent(value)), words);
}
const listed = (wanted) => "#submissions?" + Object.entries(wanted).map(([key, value]) => key + "=" + encodeURIComponent(value)).join("&");
function bar(run, tier, list) {
  const parts = ["right", ...CLASSES].map((name) => [name, list.filter((one) => outcome(one) === name).length]).filter(([, size]) => size);
  const part = ([name, size]) => make("a", {
    className: shade(name), href: listed({ run, ...(tier ? { tier } : {}), outcome: name }), title: name + ": " + number(size), style: "width:" + (100 * size) / list.length + "%",
  }, make("span", { className: "quiet" }, name + ": " + number(size)));
  const right = list.filter((one) => one.fidelity).length;
  return make("tr", {}, make("th", { scope: "row" }, tier || "all"), make("td", {}, make("div", { className: "stack" }, ...parts.map(part))),
    make("td", { className: "n" }, number(right) + " of " + number(list.length)));
}
function overview(name) {
  const all = submissions.filter((one) => one.run === name && one.fidelity !== null), right = all.filter((one) => one.fidelity);
  if (!all.length) return [make("h2", {}, breakable(name)), make("p", {}, "All submissions were lost: this machine could not run them.")];
  const tiers = ["easy", "medium", "hard"].map((tier) => [tier, all.filter((one) => one.tier === tier)]).filter(([, list]) => list.length);
  const head = make("thead", { className: "quiet" }, make("tr", {}, ...["tier", "outcomes", "right"].map((name) => make("th", { scope: "col" }, name))));
  return [make("h2", {}, breakable(name)),
    make("ul", { className: "figures" }, figure(right.length / all.length, number(right.length) + " of " + number(all.length) + " do what the test does (fidelity)"),
      figure(mean(right, "execution"), "of the lines of those that do are executed"), figure(mean(all, "existence"), "of the lines of all files are the repository’s")),
    make("table", { className: "bars" }, make("caption", { className: "quiet" }, "Outcomes of the run " + name + " by tier"),
      make("colgroup", {}, make("col", { className: "who" }), make("col"), make("col", { className: "numbers" })), head,
      make("tbody", {}, bar(name, null, all), ...tiers.map(([tier, list]) => bar(name, tier, list))))];
}
const legend = ["right", ...CLASSES].map((name) => make("li", {}, make("i", { className: "dot " + shade(name) }),
  make("a", { href: listed({ outcome: name }) }, name), " " + number(submissions.filter((one) => outcome(one) === name).length)));
byId("overview").append(make("ul", { className: "legend", ariaLabel: "Colours" }, ...legend), ...runs.flatMap((run) => overview(run.name)));

// --- the list
const TIERS = { easy: 0, medium: 1, hard: 2 };
const idOf = (at) => submissions[at].run + "/" + submissions[at].instance;
const places = new Map(submissions.map((_, at) => [idOf(at), at]));
const of = (key) => (at) => submissions[at][key];
const filter = (key, value) => ({
  key, label: key, values: [...new Set(submissions.map(value))].sort().map((one) => [one, one]), test: (at, wanted) => value(submissions[at]) === wanted,
});
const share = (at) => (submissions[at].passed ? submissions[at].passed[0] / submissions[at].passed[1] : null);
liveTable({
  name: "submissions", noun: "submission", size: submissions.length,
  text: (at) => [submissions[at].group, submissions[at].instance, submissions[at].run, submissions[at].tier, outcome(submissions[at]), submissions[at].detail || ""].join(" "),
  columns: {
    run: of("run"), test: of("group"), tier: (at) => TIERS[submissions[at].tier], outcome: (at) => outcome(submissions[at]), detail: of("detail"),
    execution: of("execution"), existence: of("existence"), f1: of("f1"), cases: share, lines: of("lines"),
  },
  fields: { run: of("run"), test: of("group"), tier: of("tier"), outcome: (at) => outcome(submissions[at]), detail: of("detail"), lines: of("lines") },
  filters: [filter("run", (one) => one.run), filter("repository", (one) => one.slug), filter("tier", (one) => one.tier), filter("outcome", outcome)],
  row: (at) => {
    const one = submissions[at];
    return make("tr", {}, cell(breakable(one.run)), cell(make("a", { className: "link", href: "#i=" + encodeURIComponent(idOf(at)) }, testName(one.group)), "id"),
      cell(one.tier + (one.hard ? ", top" : "")), cell(breakable(outcome(one)), one.fidelity ? "good" : one.fidelity === false ? "bad" : ""), cell(breakable(one.detail || "")),
      cell(percent(one.execution), "n", "execution"), cell(percent(one.existence), "n", "existence"), cell(one.f1 === null ? "–" : one.f1.toFixed(2), "n", "test F1"),
      cell(one.passed ? one.passed.join(" of ") : "–", "n", "cases"), cell(number(one.lines), "n", "lines"));
  },
  record: (at) => {
    const { passed, ...one } = submissions[at];
    return { ...one, outcome: outcome(one), cases_passed: passed ? passed[0] : null, cases: passed ? passed[1] : null };
  },
  ids: idOf,
});

// --- one submission
// What the page holds of the lines, by the first physical line of each: see `Lines` of the program that wrote it.
function units(detail) {
  const found = new Map(), { flat, types, files } = detail.lines;
  let [first, there] = [0, 0];
  for (let i = 0; i < flat.length; i += 5) {
    const [ahead, more, code, file, from] = flat.slice(i, i + 5);
    first += ahead;
    there += from;
    const state = (digit) => [null, false, true][digit];
    found.set(first, {
      last: first + more, type: types[Math.floor(code / 9)], exists: state(Math.floor(code / 3) % 3), ran: state(code % 3),
      place: file ? files[file - 1] + ":" + there : "",
    });
  }
  return found;
}
function source(detail) {
  const lines = detail.text.split(/\r\n|\r|\n/);
  if (lines[lines.length - 1] === "") lines.pop();
  const byLine = units(detail), [replaced, original] = detail.replacement || [null, null];
  const rows = [];
  let last = null;
  for (const [at, text] of lines.entries()) {
    const line = at + 1, unit = byLine.get(line);
    if (unit) last = unit;
    const within = last && line <= last.last ? last : null;
    const out = replaced && line >= replaced.first && line <= replaced.last;
    const marks = unit ? [{ true: "in the original", false: "new" }[unit.exists], { true: "ran", false: "did not run" }[unit.ran]].filter(Boolean).join(", ") : "";
    const kinds = [within && within.exists === false ? "missing" : "", within && within.ran === false ? "idle" : "", within && within.ran ? "ran" : "", out ? "replaced" : ""];
    rows.push(make("tr", { className: kinds.filter(Boolean).join(" "), title: unit ? unit.type : "" }, make("td", { className: "n" }, String(line)),
      make("td", { className: "source" }, text), make("td", { className: "mark" }, out ? "" : marks), make("td", { className: "place" }, unit ? unit.place : "")));
    if (out && line === replaced.last) {
      for (const text of original.replace(/\r?\n$/, "").split("\n")) {
        rows.push(make("tr", { className: "original" }, make("td", { className: "n" }, "+"), make("td", { className: "source" }, text), make("td", { className: "mark" }, "the original test"), make("td")));
      }
    }
  }
  const names = ["line", "source", "what it is", "where it is"].map((name) => make("th", { scope: "col" }, name));
  return make("table", { className: "code" }, make("caption", { className: "quiet" }, "The file line by line"), make("thead", {}, make("tr", {}, ...names)), make("tbody", {}, ...rows));
}
function list(title, items, text) {
  return items.length ? [make("h3", {}, title), make("ul", {}, ...items.map((item) => make("li", {}, text(item))))] : [];
}
function submission(at) {
  const one = submissions[at], detail = data("d" + at);
  const known = facts([
    ["run", one.run], ["instance", one.instance], ["command", command(detail.command)], ["outcome", outcome(one) + (one.detail ? ", " + one.detail : "")],
    ["violations", detail.violations.join(", ")],
    ["the test", { equal: "is the original", replaced: "was replaced by the original", none: "is not a definition in the original; run as submitted" }[detail.injection]],
    ["runs that agree", detail.attempts[0] ? detail.attempts[1] + " of " + detail.attempts[0] : ""],
    ["line execution", percent(one.execution) + (detail.untraced ? " (" + detail.untraced + ")" : "")],
    ["line existence", percent(one.existence)], ["test F1", one.f1 === null ? "–" : one.f1.toFixed(3)],
    ["not readable", detail.unreadable ? JSON.stringify(detail.unreadable) : ""],
  ]);
  const cases = (detail.cases || []).flatMap((item) => [make("h3", {}, item.case + ": " + item.difference),
    ...(item.expected || item.seen ? [make("pre", {}, "expected: " + item.expected + "\nseen:     " + item.seen)] : [])]);
  return [make("h2", { id: "one-name" }, testName(one.group)), known, ...cases,
    ...list("Findings", detail.findings, (item) => item.kind + ", line " + item.line + ": " + item.evidence),
    ...list("Imports of the repository", detail.imports, (item) => item.module + " by " + item.file + ":" + item.line),
    ...(detail.output ? [make("h3", {}, "End of the output"), make("pre", {}, detail.output)] : []),
    ...(detail.text !== null ? [make("h3", {}, "The file"), copyButton("copy it", detail.text), source(detail)]
      : [make("p", {}, detail.bytes === null ? "There is no file." : "The file has " + number(detail.bytes) + " bytes and is not shown here.")])];
}
viewer({
  place: (id) => places.get(id), id: idOf, size: submissions.length, table: "submissions", show: submission,
  unknown: (id) => [make("h2", { id: "one-name" }, "No such submission"), make("p", {}, "There is no submission “" + id + "” among the scores of " + dataset + " " + version + ".")],
});
address.apply(location.hash.length > 1);
document.documentElement.dataset.ready = "yes";
