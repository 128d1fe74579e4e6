// --- a witness with the places that its lines come from
// `[{ text, file, line, kind }]` of a witness; kind: in a file, continued, new, or unknown.
function witnessLines(at) {
  const { files, text, file, line, of } = data("witness-lines");
  if (!of[at]) return null;
  const lines = [];
  for (let i = 0; i < of[at].length; i += 2) {
    for (let place = of[at][i]; place < of[at][i] + of[at][i + 1]; place++) {
      const kind = file[place] >= 0 ? "in" : { "-1": "unknown", "-2": "continued", "-3": "new" }[file[place]];
      lines.push({ text: text[place], kind, file: kind === "in" ? files[file[place]] : null, line: line[place] });
    }
  }
  return lines;
}
function witnessView(at) {
  const details = data("details"), kind = details.witness[at];
  if (kind === null) return [];
  const title = make("h3", {}, "Witness");
  const place = "witnesses/" + instances.id[at] + ".py";
  if (details.witness_lines[at] === null) return [title, make("p", {}, "No program found a solution: " + kind.replace(/-/g, " ") + "; the evidence is in witnesses/causes.jsonl.")];
  const rates = plural(details.witness_lines[at], "line") + ": a solution that a program found; " + percent(details.witness_existence[at]) + " of its lines are in the repository, "
    + percent(details.witness_execution[at]) + " run. ";
  const link = make("a", { href: place.split("/").map(encodeURIComponent).join("/") }, place);
  const lines = witnessLines(at);
  if (!lines) return [title, make("p", {}, rates, "It is in ", link, ".")];
  const counts = new Map();
  for (const one of lines) if (one.file) counts.set(one.file, (counts.get(one.file) || 0) + 1);
  const most = Math.max(...counts.values());
  const origins = [...counts].sort((a, b) => b[1] - a[1]).map(([file, count]) => make("tbody", {}, make("tr", {},
    make("th", { scope: "row", className: "name" }, ...breakable(file)), make("td", { className: "n" }, number(count)), meter(count, most))));
  const table = make("table", { className: "calls" }, make("caption", { className: "quiet" }, "Files that the lines come from"),
    make("colgroup", {}, make("col"), make("col"), make("col")), ...origins);
  ["", "6.5rem", "25%"].forEach((width, i) => { table.querySelectorAll("col")[i].style.width = width; });
  const code = make("details", {}, make("summary", {}, "The file, beside what it comes from"));
  code.addEventListener("toggle", () => { if (code.open && code.children.length === 1) code.append(witnessCode(lines)); });
  return [title, make("p", {}, rates, link, " ", copyButton("copy it", () => lines.map((one) => one.text + "\n").join(""))),
    counts.size ? table : make("p", { className: "soft" }, "The dataset has no tree of the repository to look its lines up in."), code];
}
// A line of another file than the one before begins with that file's name.
function witnessCode(lines) {
  const rows = [];
  const texts = python(lines.map((one) => one.text).join("\n"));
  let file = null;
  lines.forEach((one, i) => {
    if (one.file && one.file !== file) {
      file = one.file;
      rows.push(make("tr", { className: "band" }, make("th", { colSpan: 3, scope: "rowgroup" }, ...breakable(file))));
    }
    rows.push(make("tr", { className: one.kind }, make("td", { className: "n" }, String(i + 1)), make("td", {}, ...texts[i]),
      make("td", { className: "place" }, one.kind === "in" ? String(one.line) : one.kind === "new" ? "new" : "")));
  });
  const heads = ["line", "source", "line there"].map((name) => make("th", { scope: "col" }, name));
  return make("table", { className: "code" }, make("caption", {}, "Below a file's name: lines that are in it, with their numbers there"), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
}
