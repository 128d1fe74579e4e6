// --- an instance's calls, file by file, and the lines that ran
// Runs `[distance, length − 1, …]` from a function's line on, as numbers `[first, last]`.
function runsOf(line, place) {
  if (place < 0) return [];
  const flat = data("details").trace.lines[place], runs = [];
  for (let i = 0, at = line; i < flat.length; i += 2) {
    runs.push([at + flat[i], at + flat[i] + flat[i + 1]]);
    at += flat[i] + flat[i + 1];
  }
  return runs;
}
const rangeText = (runs) => runs.map(([first, last]) => (first === last ? first : first + "–" + last)).join(", ");

// `[{ path, tests, calls, order, functions: [{ name, line, calls, order, runs }] }]`, or null where the page has no trace.
function callsOf(at) {
  const { files, functions, of } = data("details").trace;
  if (!of[at]) return null;
  const found = new Map();
  for (let i = 0; i < of[at].length; i += 4) {
    const [file, name, line] = functions[of[at][i]], calls = of[at][i + 1];
    if (!found.has(file)) found.set(file, { path: files[file][0], tests: files[file][1], calls: 0, order: i, functions: [] });
    const entry = found.get(file);
    entry.calls += calls;
    entry.functions.push({ name, line, calls, order: i, runs: runsOf(line, of[at][i + 2]) });
  }
  return [...found.values()];
}

const ORDERS = {
  "first call": (a, b) => a.order - b.order,
  calls: (a, b) => b.calls - a.calls || a.order - b.order,
  name: (a, b) => ((a.path || a.name) < (b.path || b.name) ? -1 : 1),
};
function callsView(at) {
  const files = callsOf(at);
  if (!files) return [make("p", {}, "The page holds the traces of the hardest instances only; this one is in traces.parquet.")];
  const order = make("select", { ariaLabel: "order" }, ...Object.keys(ORDERS).map((name) => make("option", { value: name }, name)));
  const scope = make("select", { ariaLabel: "of" }, ...["all files", "package", "tests"].map((name) => make("option", { value: name }, name)));
  const search = make("input", { type: "search", placeholder: "function or file", ariaLabel: "search calls" });
  const table = make("table", { className: "calls" });
  const count = make("output");
  const update = () => {
    const word = search.value.toLowerCase();
    const shown = files.filter((file) => scope.value === "all files" || file.tests === (scope.value === "tests")).map((file) => {
      const all = file.path.toLowerCase().includes(word);
      return { ...file, functions: file.functions.filter((one) => all || one.name.toLowerCase().includes(word)) };
    }).filter((file) => file.functions.length).sort(ORDERS[order.value]);
    const total = files.reduce((sum, file) => sum + file.calls, 0);
    const rows = shown.reduce((sum, file) => sum + file.functions.length, 0);
    count.textContent = plural(rows, "function") + " in " + plural(shown.length, "file");
    const head = make("tr", {}, ...[["function", ""], ["executed lines", "lines"], ["calls", "n"], ["share", ""]].map(([name, kind]) => make("th", { scope: "col", className: kind }, name)));
    const columns = make("colgroup", {}, make("col"), make("col", { className: "lines" }), make("col"), make("col"));
    [null, "30%", "6.5rem", "18%"].forEach((width, i) => { if (width) columns.children[i].style.width = width; });
    table.replaceChildren(make("caption", { className: "quiet" }, "Calls by file and function"), columns, make("thead", {}, head),
      ...shown.map((file) => fileRows(file, total, word !== "" || rows <= 60)));
  };
  for (const node of [order, scope, search]) node.addEventListener("input", update);
  update();
  return [
    make("p", { className: "soft" }, "What was called and how often, in the order of the first call."),
    make("div", { className: "filters" }, search, make("label", {}, "order", order), make("label", {}, "of", scope), count), table,
    make("h3", {}, "Callers and callees"), ...callTree(at),
  ];
}

// Functions below those that called them, opened on demand. Those that only pytest or a module called are on top, and the
// first of each circle that nothing else leads to.
function callTree(at) {
  const { files, functions, callers, of } = data("details").trace, rows = of[at], size = rows.length / 4;
  if (rows[3] < 0) return [make("p", { className: "soft" }, "The dataset is of a version that did not record which function called which.")];
  const callees = Array.from({ length: size }, () => []), called = new Set(), reached = new Set(), tops = [];
  for (let one = 0; one < size; one++) for (const from of callers[rows[4 * one + 3]] || []) {
    if (from === one || from >= size) continue;
    callees[from].push(one);
    called.add(one);
  }
  const reach = (top) => {
    tops.push(top);
    for (const left = [top]; left.length;) {
      const one = left.pop();
      if (!reached.has(one)) { reached.add(one); left.push(...callees[one]); }
    }
  };
  for (let one = 0; one < size; one++) if (!called.has(one)) reach(one);
  for (let one = 0; one < size; one++) if (!reached.has(one)) reach(one);
  const node = (one, above) => {
    const [file, name, line] = functions[rows[4 * one]], below = callees[one].filter((it) => !above.includes(it));
    const again = (callers[rows[4 * one + 3]] || []).includes(one) ? ", calls itself" : "";
    const text = [make("code", {}, ...breakable(name)), make("small", {}, " " + files[file][0] + ":" + line + ", " + plural(rows[4 * one + 1], "call") + again)];
    if (!below.length) return make("li", {}, ...text);
    const inner = make("details", { open: size <= 60 && above.length < 3 }, make("summary", {}, ...text));
    inner.addEventListener("toggle", () => inner.append(make("ul", {}, ...below.map((it) => node(it, [...above, one])))), { once: true });
    return make("li", {}, inner);
  };
  const list = make("ul", { className: "tree" }, ...tops.map((top) => node(top, [])));
  return [make("p", { className: "soft" }, "Each function below what called it, directly or through code outside the repository. Calls are all calls of a function, whoever made them."), list];
}
const meter = (part, whole) => {
  const bar = make("div", { className: "meter" });
  bar.style.width = Math.max(0.5, 100 * part / Math.max(1, whole)) + "%";
  return make("td", {}, bar);
};
function fileRows(file, total, open) {
  const toggle = make("button", { type: "button", className: "link" }, ...breakable(file.path));
  const body = make("tbody", {}, make("tr", {}, make("th", { scope: "row", className: "name" }, toggle, file.tests ? make("small", {}, " tests") : null),
    make("td", { className: "lines" }), make("td", { className: "n" }, number(file.calls)), meter(file.calls, total)));
  const inner = file.functions.sort(ORDERS["first call"]).map((one) => make("tr", { className: "inner" },
    make("td", { className: "name" }, ...breakable(one.name), make("small", {}, " line " + one.line)), make("td", { className: "lines" }, rangeText(one.runs)),
    make("td", { className: "n" }, number(one.calls)), meter(one.calls, total)));
  const show = (wanted) => {
    toggle.ariaExpanded = String(wanted);
    if (wanted) body.append(...inner); else inner.forEach((row) => row.remove());
  };
  toggle.addEventListener("click", () => show(toggle.ariaExpanded !== "true"));
  show(open);
  return body;
}

// Python as the contents of its lines: comments, strings, keywords and decorators are elements of these classes.
const TOKEN = new RegExp([
  /(?<comment>#[^\n]*)/, /(?<string>[bBfFrRuU]{0,2}(?:"""[^]*?(?:"""|$(?![^]))|'''[^]*?(?:'''|$(?![^]))|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?))/,
  /(?<keyword>\b(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b)/,
  /(?<decorator>^[ \t]*@[\w.]+)/,
].map((part) => part.source).join("|"), "gm");
function python(text) {
  const lines = [[]];
  const add = (piece, kind) => piece.split("\n").forEach((part, i) => {
    if (i) lines.push([]);
    if (part) lines.at(-1).push(kind ? make("span", { className: kind }, part) : part);
  });
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    add(text.slice(end, found.index));
    add(found[0], Object.keys(found.groups).find((kind) => found.groups[kind] !== undefined));
    end = found.index + found[0].length;
  }
  add(text.slice(end));
  return lines;
}

// The test's source; lines that ran are marked.
function sourceView(at) {
  const details = data("details"), text = details.source[at];
  if (text === null) return [make("p", { className: "soft" }, "The dataset has no source of this test.")];
  const first = details.first[at] || 1, own = instances.group[at].split("::")[0], ran = new Set();
  for (const file of callsOf(at) || []) {
    if (file.path !== own) continue;
    for (const one of file.functions) for (const [from, to] of one.runs) for (let line = from; line <= to; line++) ran.add(line);
  }
  const rows = python(text.replace(/\r\n?/g, "\n")).map((line, i) => make("tr", { className: ran.has(first + i) ? "ran" : "" },
    make("td", { className: "n" }, String(first + i), ran.has(first + i) ? make("span", { className: "quiet" }, " ran") : null), make("td", {}, ...line)));
  return [
    make("p", { className: "soft" }, own + ", from line " + first + (ran.size ? "; a bar marks the lines that ran." : ".")),
    make("table", { className: "code" }, make("caption", { className: "quiet" }, "The test's source"), make("tbody", {}, ...rows)),
  ];
}
