// --- one instance
const dialog = byId("instance"), view = byId("view");
let openAt = null; // place of what is open; -1 when there is no such instance

function casesView(at) {
  const { list, more } = data("details").cases[at];
  const output = (name, text) => (text === null ? [] : [make("div", { className: "soft" }, name), make("pre", {}, text)]);
  const rows = list.map(([name, outcome, exception, stdout, stderr]) => make("tr", {}, make("th", { scope: "row" }, ...(name ? breakable(name) : ["the only case"])),
    make("td", {}, outcome || "–"), make("td", {}, ...(exception ? [exception] : []), ...output("stdout", stdout), ...output("stderr", stderr))));
  const heads = ["case", "outcome", "exception and output"].map((name) => make("th", { scope: "col" }, name));
  return [make("table", { className: "cases" }, make("caption", { className: "quiet" }, "What the original showed"), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)),
    more ? make("p", { className: "soft" }, "and " + number(more) + " more in cases.parquet") : null];
}
function factsOf(at) {
  const details = data("details"), group = groupOf[at];
  const agree = number(details.attempts[at]) + " of " + number(details.attempts[at]) + " runs agree";
  const bound = details.bound[at] === null ? "" : "So many runs that agree bound the failure rate below " + percent(details.bound[at]) + " with 95 % confidence.";
  return facts([
    ["instance", [instances.id[at], " ", copyButton("copy", instances.id[at])]],
    ["repository", slugs[instances.slug[at]]],
    ["tier", [badge("tier", instances.tier[at]), instances.hard[at].length ? " in the top subset by " + instances.hard[at].map(axisName).join(" and ") : ""]],
    ["golden outcome", outcomes(at)],
    ["trace length", number(instances.length[at]) + " calls into the tree, " + number(details.package[at]) + " outside the tests, " + number(details.total[at])
      + " in all code" + (details.stable[at] ? "" : " (traced attempts disagree)")],
    ["reach", plural(instances.files[at], "file") + ", " + plural(details.functions[at], "function") + ", " + (details.lines[at] === null ? "" : plural(details.lines[at], "line") + "; ")
      + plural(details.imports[at], "call") + " while importing"],
    ["flags", instances.flags[at].join(", ")],
    ["attempts", [bound ? hinted(agree, bound) : agree, group === null ? "" : strip(group) || ""]],
  ]);
}
function outcomes(at) {
  const { list, more } = data("details").cases[at], counts = new Map();
  for (const one of list) counts.set(one[1] || "unknown", (counts.get(one[1] || "unknown") || 0) + 1);
  const all = [...counts].map(([outcome, count]) => number(count) + " " + outcome).join(", ");
  return plural(list.length + more, "case") + ": " + all + (more ? " and " + number(more) + " more" : "");
}
function commandsOf(at) {
  const test = quoted(instances.group[at]);
  return facts([
    ["run it", command(data("details").command[at])], ["what is known", command("gistmill show " + test)],
    ["in another world", command("gistmill replay " + test + " --world everything")],
  ]);
}
function show(at) {
  const heading = make("h2", { id: "instance-name" }, testName(instances.group[at]));
  view.replaceChildren(heading, factsOf(at), make("h3", {}, "The test"), ...sourceView(at), make("h3", {}, "Cases"), ...casesView(at).filter(Boolean),
    make("h3", {}, "Commands"), commandsOf(at), make("h3", {}, "Calls by file"), ...callsView(at), ...witnessView(at));
}
function unknown(id) {
  view.replaceChildren(make("h2", { id: "instance-name" }, "No such instance"),
    make("p", {}, "There is no instance “" + id + "” in " + dataset.name + " " + dataset.version + "."),
    make("p", {}, make("a", { href: "#instances?q=" + encodeURIComponent(id.split(/[.-]/)[0]) }, "Search the instances")));
}
const around = () => {
  const list = inOrder.includes(openAt) ? inOrder : instances.id.map((_, at) => at);
  return { list, at: list.indexOf(openAt) };
};
function step(by) {
  const { list, at } = around();
  if (at >= 0 && list[at + by] !== undefined) address.open(instances.id[list[at + by]]);
}
address.opens = (id) => {
  const at = id === null ? null : placeOf.has(id) ? placeOf.get(id) : -1;
  if (at === null) {
    openAt = null;
    if (dialog.open) dialog.close();
    return;
  }
  if (at !== openAt || at < 0) {
    openAt = at;
    at < 0 ? unknown(id) : show(at);
  }
  const { list, at: place } = around();
  byId("position").textContent = place < 0 ? "" : number(place + 1) + " of " + number(list.length);
  byId("previous").disabled = place <= 0;
  byId("next").disabled = place < 0 || place === list.length - 1;
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
};
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
byId("close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => { if (address.now().open !== null) address.go({ ...address.now(), open: null }); });
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
