// --- one instance
const commandOf = (at) => data("details").command.texts[data("details").command.of[at]].replace("\u0000", () => instances.group[at]);
const casesOf = (at) => ({ list: data("details").cases.of[at], more: data("details").cases.more[at] || 0 });
function casesView(at) {
  const { list, more } = casesOf(at);
  const output = (name, text) => (text === null ? [] : [make("div", { className: "soft" }, name), make("pre", {}, text)]);
  const rows = list.map(([name, outcome = null, exception = null, stdout = null, stderr = null]) => make("tr", {}, make("th", { scope: "row" }, ...(name ? breakable(name) : ["the only case"])),
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
    ["tier", [badge("tier", instances.tier[at]), instances.hard[at].length ? ", in the top subset by " + instances.hard[at].map(axisName).join(" and ") : ""]],
    ["expected outcome", hinted(outcomes(at), "What all runs of the original agree on; a solution has to show the same.")],
    ["trace length", number(instances.length[at]) + " calls into the tree, " + number(details.package[at]) + " outside the tests, " + number(details.total[at])
      + " in all code" + (details.stable[at] ? "" : " (traced attempts disagree)")],
    ["covers", plural(instances.files[at], "file") + ", " + plural(details.functions[at], "function") + ", " + (details.lines[at] === null ? "" : plural(details.lines[at], "line") + "; ")
      + plural(details.imports[at], "call") + " while importing"],
    ["strength", strengthOf(at)],
    ["flags", instances.flags[at].join(", ")],
    ["attempts", [bound ? hinted(agree, bound) : agree, ...(group === null ? [] : stripped(group))]],
  ]);
}
function strengthOf(at) {
  const { mutants, mutation_score: score, needed, surviving } = data("details");
  if (mutants[at] === null || mutants[at] === undefined) return "";
  const said = hinted("the test notices " + percent(score[at]) + " of " + plural(mutants[at], "mutant"), "Small changes of the code that it runs, one at a time; what it does not notice is a wrong solution that it accepts.");
  const removed = needed[at] === null ? "" : "; it needs " + percent(needed[at]) + " of the statements that were taken away";
  if (!surviving[at].length) return [said, removed];
  const list = make("ul", { className: "plain" }, ...surviving[at].map((one) => make("li", {}, ...breakable(one))));
  return [said, removed, make("details", {}, make("summary", {}, "Surviving mutants"), list)];
}
function outcomes(at) {
  const { list, more } = casesOf(at), counts = new Map();
  for (const one of list) counts.set(one[1] || "unknown", (counts.get(one[1] || "unknown") || 0) + 1);
  const all = [...counts].map(([outcome, count]) => number(count) + " " + outcome).join(", ");
  return plural(list.length + more, "case") + ": " + all + (more ? " and " + number(more) + " more" : "");
}
function commandsOf(at) {
  const id = quoted(instances.id[at]);
  return facts([
    ["run it", command(commandOf(at))], ["what is known", command(withDataset("gistmill show " + id))],
    ["in another world", command(withDataset("gistmill replay " + id + " --world everything"))],
  ]);
}
function instanceView(at) {
  return [make("h2", { id: "one-name" }, testName(instances.group[at])), factsOf(at), make("h3", {}, "The test"), ...sourceView(at), make("h3", {}, "Cases"), ...casesView(at).filter(Boolean),
    make("h3", {}, "Commands, in the folder of this dataset"), commandsOf(at), make("h3", {}, "Calls by file"), ...callsView(at), ...witnessView(at)];
}
viewer({
  place: (id) => placeOf.get(id), id: (at) => instances.id[at], size: instances.id.length, table: "instances", show: instanceView,
  unknown: (id) => [make("h2", { id: "one-name" }, "No such instance"),
    make("p", {}, "There is no instance “" + id + "” in " + dataset.name + " " + dataset.version + "."),
    make("p", {}, make("a", { href: "#instances?q=" + encodeURIComponent(id.split(/[.-]/)[0]) }, "Search the instances"))],
});
