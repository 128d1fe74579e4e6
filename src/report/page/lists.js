// --- the two tables of the dataset's page
const { slugs, groups, instances, dataset } = data("data");
const TIERS = { easy: 0, medium: 1, hard: 2 };
const badge = (kind, text) => make("span", { className: kind + " " + text }, text);
const axisName = (axis) => axis.replace(/_/g, " ");
const placeOf = new Map(instances.id.map((id, at) => [id, at]));
const groupOf = instances.place; // place in `groups` by place in `instances`
instances.group = groupOf.map((place) => (place === null ? "" : groups.id[place]));
groups.instance = new Array(groups.id.length).fill(null);
groupOf.forEach((place, at) => { if (place !== null) groups.instance[place] = at; });
const filesOf = (group) => {
  const { names, sets, of } = data("evidence").files;
  return group === null ? [] : sets[of[group]].map((file) => names[file]);
};
const inOrder = new Intl.Collator("en", { numeric: true }).compare; // pkg2 before pkg10
const choices = (values) => [...values].sort(inOrder).map((value) => [value, value]);
const rankOf = new Map(slugs.map((slug, at) => [slug, at]).sort((a, b) => inOrder(a[0], b[0])).map(([, at], rank) => [at, rank]));
// A command is a group of its own; older datasets have none.
const kindOf = (group) => (group.startsWith("entry::") ? "command" : "test");
// Where a dataset has both.
const kindFilter = (names) => {
  const values = choices(new Set(names.map(kindOf)));
  return values.length > 1 ? [{ key: "kind", label: "kind", values, test: (at, value) => kindOf(names[at]) === value }] : [];
};
const occurring = (lists) => choices(new Set(lists.flat()));

const instanceLink = (at, content) => make("a", { className: "link", href: "#i=" + encodeURIComponent(instances.id[at]) }, content);
liveTable({
  name: "instances", noun: "instance", size: instances.id.length,
  text: (at) => [instances.id[at], slugs[instances.slug[at]], instances.group[at], instances.tier[at], ...instances.flags[at],
    ...instances.hard[at].map((axis) => "top " + axis), ...filesOf(groupOf[at])].join(" "),
  columns: {
    test: (at) => instances.group[at], repository: (at) => rankOf.get(instances.slug[at]), tier: (at) => instances.difficulty[at],
    top: (at) => instances.hard[at].join() || null, length: (at) => instances.length[at], files: (at) => instances.files[at],
    cases: (at) => instances.cases[at],
  },
  fields: {
    id: (at) => instances.id[at], test: (at) => instances.group[at], kind: (at) => kindOf(instances.group[at]), repository: (at) => slugs[instances.slug[at]], repo: (at) => slugs[instances.slug[at]],
    tier: (at) => instances.tier[at], top: (at) => instances.hard[at].join(" "), flag: (at) => instances.flags[at].join(" "),
    file: (at) => filesOf(groupOf[at]).join(" "), length: (at) => instances.length[at], files: (at) => instances.files[at], cases: (at) => instances.cases[at],
  },
  filters: [
    { key: "repository", label: "repository", values: choices(new Set(instances.slug.map((slug) => slugs[slug]))), test: (at, value) => slugs[instances.slug[at]] === value },
    ...kindFilter(instances.group),
    { key: "tier", label: "tier", chip: (tier) => badge("tier", tier), values: Object.keys(TIERS).map((tier) => [tier, tier]), test: (at, value) => instances.tier[at] === value },
    { key: "top", label: "top by", values: [["either", "either"], ["trace_length", "trace length"], ["unique_files", "unique files"], ["neither", "neither"]],
      test: (at, value) => (value === "either" || value === "neither" ? instances.hard[at].length > 0 === (value === "either") : instances.hard[at].includes(value)) },
    { key: "flag", label: "flag", values: occurring(instances.flags), test: (at, value) => instances.flags[at].includes(value) },
  ],
  row: (at) => make("tr", {},
    cell(instanceLink(at, testName(instances.group[at])), "id"), cell(breakable(slugs[instances.slug[at]])), cell(badge("tier", instances.tier[at])),
    cell(instances.hard[at].map(axisName).join(", "), "", "top by"), cell(number(instances.length[at]), "n", "trace length"), cell(number(instances.files[at]), "n", "files"),
    cell(number(instances.cases[at]), "n", "cases")),
  record: (at) => ({
    instance_id: instances.id[at], slug: slugs[instances.slug[at]], group_id: instances.group[at], tier: instances.tier[at], top_by: instances.hard[at],
    trace_length: instances.length[at], unique_files: instances.files[at], n_cases: instances.cases[at], flags: instances.flags[at],
  }),
  ids: (at) => instances.id[at],
  order: "-tier", // the hardest first
});

// --- groups with their evidence
const cause = (at) => (groups.cause[at] === null ? null : groups.causes[groups.cause[at]]);
const causeOf = (at) => (cause(at) === null ? "" : [make("i", { className: "dot " + groups.families[groups.cause[at]] }), ...breakable(cause(at))]);
// As the legend of colours says it.
const familyName = (family) => (document.querySelector(`#overview .legend a[href$="family=${family}"]`) || { textContent: family }).textContent;
const stateOf = (at) => groups.states[groups.state[at]];
const summary = (at) => (data("evidence").evidence[at] || {}).summary || "";

// Attempts as a row of squares for each world.
function strip(at) {
  const { worlds, methods, outcomes, strips, of } = data("evidence").attempts;
  if (of[at] === null) return null;
  const flat = strips[of[at]], rows = new Map(), firsts = new Map();
  for (let i = 0; i < flat.length; i += 4) {
    const [world, method, outcome, seen] = [worlds[flat[i]], methods[flat[i + 1]], outcomes[flat[i + 2]], flat[i + 3]];
    if (!firsts.has(method)) firsts.set(method, seen);
    if (!rows.has(world)) rows.set(world, []);
    rows.get(world).push({ method, outcome, differs: firsts.get(method) !== seen });
  }
  const square = ({ method, outcome, differs }) => {
    const kind = outcome === "passed" ? "" : outcome === "skipped" || outcome === "xfailed" ? " skipped" : " not";
    return make("i", {
      className: "run" + kind + (method === "cold" ? " cold" : "") + (differs ? " differs" : ""),
      title: method + ": " + outcome + (differs ? ", shows something else than the first one" : ""),
    }, outcome === "passed" ? "✓" : kind === " skipped" ? "–" : "✗");
  };
  const spoken = (list) => {
    const counts = new Map();
    for (const one of list) {
      const name = (one.method === "cold" ? "cold " : "") + one.outcome + (one.differs ? ", different output" : "");
      counts.set(name, (counts.get(name) || 0) + 1);
    }
    return [...counts].map(([name, count]) => count + " " + name).join("; ");
  };
  return make("div", { className: "strip" }, ...[...rows].flatMap(([world, list]) => {
    const runs = make("span", { className: "runs", ariaLabel: spoken(list) }, ...list.map(square));
    runs.setAttribute("role", "img");
    return [make("span", {}, world), runs];
  }));
}
// What this page lies beside is enough: a command that names the configuration of the build is for whoever has that.
const withDataset = (text) => (text.startsWith("gistmill ") ? text.split(" --config ")[0] + " --dataset ." : text);
const sample = (kind, sign, meaning) => make("span", { className: "sample" }, make("i", { className: "run" + kind, ariaHidden: "true" }, sign), meaning);
const stripped = (at) => (strip(at) === null ? [] : [strip(at), make("small", { className: "samples" }, sample("", "✓", "passed"), sample(" skipped", "–", "skipped or expected to fail"),
  sample(" not", "✗", "anything else"), sample(" cold", "✓", "framed: the entry command in a process of its own"), sample(" differs", "✓", "round: its output differs from the first one"))]);
// In colour: what a difference adds and takes away, and the lines that pytest marks as the error.
function excerpt(text) {
  const isDifference = /^@@ /m.test(text);
  return make("pre", {}, ...text.split(/(?<=\n)/).map((line) => {
    const kind = /^E\s/.test(line) ? "minus" : isDifference ? { "+": "plus", "-": "minus" }[line[0]] : null;
    return kind ? make("span", { className: kind }, line) : line;
  }));
}
function evidence(at) {
  const found = data("evidence").evidence[at] || {};
  const place = groups.instance[at];
  const pairs = [
    ["evidence", found.summary], ["seen in", (found.seen || []).join(", ")], ["excerpt", found.excerpt && excerpt(found.excerpt)],
    ["see it again", found.command && command(withDataset(found.command))], ["flags", groups.flags[at].join(", ")], ["attempts", strip(at) && stripped(at)],
    ["instance", place !== null && instanceLink(place, instances.id[place])],
    ["state", { kept: "kept, but not in the sample", unsolvable: "kept, and not published: no submission can solve it by the rules, or none can be judged; its flags say why" }[stateOf(at)]],
    ["files", filesOf(at).length > 0 && make("details", {}, make("summary", {}, plural(filesOf(at).length, "file")), filesOf(at).join(", "))],
  ].filter(([, value]) => value);
  return make("tr", { className: "detail" }, make("td", { colSpan: named.get("groups").width() }, facts(pairs)));
}
function groupRow(at) {
  const toggle = make("button", { type: "button", className: "link" }, testName(groups.id[at]));
  const row = make("tr", {}, cell(toggle, "id"), cell(breakable(slugs[groups.slug[at]])), cell(badge("state", stateOf(at))), cell(causeOf(at)),
    cell(number(groups.cases[at]), "n", "cases"), cell(number(groups.attempts[at]), "n", "attempts"), cell(number(groups.length[at]), "n", "trace length"),
    cell(number(groups.files[at]), "n", "files"), cell(groups.ms[at] === null ? "–" : number(groups.ms[at].toFixed(1)), "n", "ms"));
  toggle.ariaExpanded = "false";
  toggle.addEventListener("click", () => named.get("groups").toggle(at));
  return row;
}
// What a group is called in an address.
const groupName = (at) => slugs[groups.slug[at]] + "/" + groups.id[at];
let groupPlaces = null;
function groupPlace(name) {
  groupPlaces = groupPlaces || new Map(groups.id.map((_, at) => [groupName(at), at]));
  return groupPlaces.get(name);
}
const tierOf = (at) => (groups.instance[at] === null ? null : instances.tier[groups.instance[at]]);
liveTable({
  name: "groups", noun: "group", size: groups.id.length,
  text: (at) => [groups.id[at], slugs[groups.slug[at]], stateOf(at), cause(at) || "", tierOf(at) || "", ...groups.flags[at], summary(at), ...filesOf(at)].join(" "),
  columns: {
    group: (at) => groups.id[at], repository: (at) => rankOf.get(groups.slug[at]), state: (at) => groups.state[at], cause,
    cases: (at) => groups.cases[at], attempts: (at) => groups.attempts[at], length: (at) => groups.length[at],
    files: (at) => groups.files[at], ms: (at) => groups.ms[at],
  },
  fields: {
    group: (at) => groups.id[at], kind: (at) => kindOf(groups.id[at]), repository: (at) => slugs[groups.slug[at]], repo: (at) => slugs[groups.slug[at]], state: stateOf, cause, tier: tierOf,
    flag: (at) => groups.flags[at].join(" "), file: (at) => filesOf(at).join(" "), length: (at) => groups.length[at], files: (at) => groups.files[at],
    cases: (at) => groups.cases[at], attempts: (at) => groups.attempts[at],
  },
  filters: [
    { key: "repository", label: "repository", values: choices(new Set(groups.slug.map((slug) => slugs[slug]))), test: (at, value) => slugs[groups.slug[at]] === value },
    ...kindFilter(groups.id),
    { key: "state", label: "state", chip: (state) => badge("state", state), values: groups.states.map((state) => [state, state]), test: (at, value) => stateOf(at) === value },
    { key: "family", label: "family", values: choices(new Set(groups.families)).map(([family]) => [family, familyName(family)]), test: (at, value) => groups.cause[at] !== null && groups.families[groups.cause[at]] === value },
    { key: "cause", label: "cause", values: choices(groups.causes), alike: true, test: (at, value) => cause(at) === value },
    { key: "flag", label: "flag", values: occurring(groups.flags), test: (at, value) => groups.flags[at].includes(value) },
  ],
  row: groupRow,
  record: (at) => ({
    slug: slugs[groups.slug[at]], group_id: groups.id[at], state: stateOf(at), cause: cause(at), n_cases: groups.cases[at], attempts: groups.attempts[at],
    trace_length: groups.length[at], unique_files: groups.files[at], duration_ms: groups.ms[at], flags: groups.flags[at],
  }),
  ids: (at) => groups.id[at],
  few: 20,
  detail: {
    row: evidence, id: groupName, place: groupPlace,
    unknown: (name) => ["There is no group “" + name + "” in " + dataset.name + " " + dataset.version + ". ",
      make("a", { href: "#groups?" + new URLSearchParams({ q: name.split("::").pop() }) }, "Search the groups")],
  },
});
