// --- a table that is searched, filtered and sorted over indices, a hundred rows at a time
// `columns` says by the key of a head what a row is sorted by; `fields` what `key:value` in a search looks at; `filters` are
// what can be chosen, `alike` where its column then says the same in every row; `text` is what words are searched in; `record` is
// a row for CSV and JSONL; `order` is how the table is sorted, and `few` how many rows it has, until something is asked for.
// Where rows have a `detail`: `row` of it, `id` and, the other way, `place`, and what is said of an id that is `unknown`.
const ROWS = 100;
const named = new Map(); // tables by name
function liveTable({ name, noun, size, columns, fields, filters, text, row, record, ids, order = "", few = ROWS, detail = null }) {
  const section = byId(name), table = section.querySelector("table.live"), body = table.tBodies[0];
  const heads = [...table.tHead.querySelectorAll("[data-sort]")];
  let state = null, shown = [], rendered = 0, timer = 0, texts = null, opened = null;
  const rows = new Map(); // what is rendered, by place

  // --- tools
  const search = make("input", { type: "search", placeholder: "search, or tier:hard, files:>9", ariaLabel: "search " + noun + "s" });
  // How many rows each of a filter's values would leave of those that everything else leaves.
  function counts(filter) {
    const others = tests(filter), left = [];
    for (let at = 0; at < size; at++) if (others.every((test) => test(at))) left.push(at);
    return filter.values.map(([value]) => number(left.filter((at) => filter.test(at, value)).length));
  }
  // A filter is a list to choose from or, where it has a few values to be seen at once, a button for each with its rows.
  const controls = filters.map((filter) => (filter.chip ? chips(filter) : options(filter)));
  function chips(filter) {
    const buttons = filter.values.map(([value]) => {
      const button = make("button", { type: "button", className: "chip" }, filter.chip(value), " ", make("b"));
      button.addEventListener("click", () => change({ [filter.key]: state.get(filter.key) === value ? "" : value }));
      return button;
    });
    const set = (chosen) => {
      const rows = counts(filter);
      buttons.forEach((button, at) => {
        button.ariaPressed = String(filter.values[at][0] === chosen);
        button.lastChild.textContent = rows[at];
      });
    };
    return { node: make("div", { className: "chips", role: "group", ariaLabel: filter.label }, ...buttons), set };
  }
  function options(filter) {
    const select = make("select", { ariaLabel: filter.label }, make("option", { value: "" }, "all"), ...filter.values.map(([value, label]) => make("option", { value }, label)));
    select.addEventListener("change", () => change({ [filter.key]: select.value }));
    // Counted when somebody is about to choose.
    select.addEventListener("focus", () => {
      const rows = counts(filter);
      filter.values.forEach(([, label], at) => { select.options[at + 1].textContent = label + " (" + rows[at] + ")"; });
    });
    // What else is chosen then changes them.
    select.addEventListener("blur", () => filter.values.forEach(([, label], at) => { select.options[at + 1].textContent = label; }));
    // An address may ask for what this dataset has not: it is seen as well.
    const set = (chosen) => {
      if (chosen && !filter.values.some(([value]) => value === chosen) && ![...select.options].some((option) => option.value === chosen)) {
        select.append(make("option", { value: chosen }, chosen + " (0)"));
      }
      select.value = chosen;
    };
    return { node: make("label", {}, filter.label, select), set };
  }
  const sorts = make("select", { ariaLabel: "sort by" }, ...(order ? [] : [make("option", { value: "" }, "as written")]), ...heads.flatMap((head) => [
    make("option", { value: head.dataset.sort }, head.textContent + " ↑"), make("option", { value: "-" + head.dataset.sort }, head.textContent + " ↓")]));
  sorts.addEventListener("change", () => change({ sort: sorts.value }));
  // Names stay. What is left out is a rule of style, which rows to come and paper follow as well.
  const boxes = new Map(heads.slice(1).map((head) => [head.dataset.sort, make("input", { type: "checkbox", ariaLabel: "column " + head.textContent })]));
  const hidden = () => [...boxes.keys()].filter((key) => !boxes.get(key).checked);
  const width = () => heads.length - hidden().length;
  const leftOut = () => (state.get("without") || "").split(" ");
  const hiding = make("style");
  document.head.append(hiding);
  for (const box of boxes.values()) box.addEventListener("change", () => change({ without: hidden().filter((key) => !boxes.get(key).disabled || leftOut().includes(key)).join(" ") }));
  const chooser = make("details", { className: "columns" }, make("summary", {}, "columns"),
    ...heads.slice(1).map((head) => make("label", {}, boxes.get(head.dataset.sort), head.textContent)));
  const reset = make("button", { type: "button" }, "reset");
  const clear = () => address.set(name, new URLSearchParams());
  reset.addEventListener("click", clear);
  const count = make("output", { ariaLive: "polite" });
  const save = (label, type, ending, content) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => download(noun + "s." + ending, type, content(shown.map(record))));
    return button;
  };
  const tools = section.querySelector(".tools");
  tools.append(
    make("div", { className: "filters", role: "search", ariaLabel: noun + "s" }, search,
      ...controls.map((control) => control.node), make("label", { className: "sorts" }, "sort by", sorts), reset, chooser),
    make("div", { className: "found" }, count, copyButton("copy ids", () => shown.map(ids).join("\n")),
      save("CSV", "text/csv", "csv", csv), save("JSONL", "application/jsonl", "jsonl", (records) => records.map((record) => JSON.stringify(record) + "\n").join(""))));
  const answer = make("p", { className: "answer" });
  answer.setAttribute("role", "status");
  tools.append(answer);
  const more = make("button", { type: "button", className: "more" });
  more.addEventListener("click", () => {
    const first = rendered;
    render();
    body.rows[first] && body.querySelectorAll(":scope > tr:not(.detail)")[first].querySelector("button, a").focus();
  });
  table.after(more);
  tools.hidden = table.hidden = false;
  for (const head of heads) {
    const button = make("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const key = head.dataset.sort, falls = head.classList.contains("n");
      const [first, then] = falls ? ["-" + key, key] : [key, "-" + key];
      change({ sort: sorting() === first ? then : first });
    });
  }

  // --- what is asked for
  function change(values, options) {
    const next = new URLSearchParams(state);
    for (const [key, value] of Object.entries(values)) value ? next.set(key, value) : next.delete(key);
    address.set(name, next, options);
  }
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => change({ q: search.value }, { replaces: true }), 80);
  });
  // `length:7`, `length:>7`, `length:7..9` of numbers, a part of everything else.
  function field(key, value) {
    const of = fields[key];
    const range = /^(\d+)\.\.(\d+)$/.exec(value), bound = /^([<>]=?)(\d+)$/.exec(value);
    if (range) return (at) => of(at) !== null && of(at) >= +range[1] && of(at) <= +range[2];
    if (bound) {
      const holds = { "<": (x, y) => x < y, "<=": (x, y) => x <= y, ">": (x, y) => x > y, ">=": (x, y) => x >= y }[bound[1]];
      return (at) => of(at) !== null && holds(of(at), +bound[2]);
    }
    return (at) => (typeof of(at) === "number" ? String(of(at)) === value : String(of(at) || "").toLowerCase().includes(value));
  }
  // What a row has to pass; without what one of the filters asks for.
  function tests(aside) {
    const words = (state.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const end = word.indexOf(":");
      if (end > 0 && Object.hasOwn(fields, word.slice(0, end))) return field(word.slice(0, end), word.slice(end + 1));
      texts = texts || Array.from({ length: size }, (_, at) => text(at).toLowerCase());
      return (at) => texts[at].includes(word);
    });
    const chosen = filters.filter((filter) => filter !== aside && state.get(filter.key)).map((filter) => {
      const value = state.get(filter.key);
      return (at) => filter.test(at, value);
    });
    return [...chosen, ...words];
  }
  const sorting = () => state.get("sort") || order;
  function sorted() {
    const sort = sorting(), down = sort.startsWith("-"), key = sort.replace(/^-/, "");
    for (const head of heads) {
      if (head.dataset.sort === key) head.setAttribute("aria-sort", down ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
    }
    if (!Object.hasOwn(columns, key)) return;
    const values = columns[key];
    shown.sort((a, b) => {
      const [x, y] = [values(a), values(b)];
      if (x === y) return a - b;
      if (x === null || x === undefined) return 1; // unknown values last, whichever way
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : 1) * (down ? -1 : 1);
    });
  }
  function show(parameters) {
    const asked = new URLSearchParams(parameters), wanted = detail && asked.get("open");
    asked.delete("open");
    const isOther = !state || asked.toString() !== state.toString();
    if (isOther) list(asked);
    return isOther || wanted !== opened ? unfold(wanted) : null;
  }
  function list(asked) {
    state = asked;
    if (document.activeElement !== search) search.value = state.get("q") || "";
    filters.forEach((filter, at) => controls[at].set(state.get(filter.key) || ""));
    sorts.value = sorting();
    reset.disabled = state.size === 0;
    for (const [key, box] of boxes) {
      box.disabled = filters.some((filter) => filter.key === key && filter.alike && state.get(key));
      box.checked = !box.disabled && !leftOut().includes(key);
    }
    const places = heads.flatMap((head, at) => (at && !boxes.get(head.dataset.sort).checked ? [`:nth-child(${at + 1})`] : []));
    const cells = ["colgroup", "* > tr"].map((rows) => `#${name} table.live > ${rows} > :is(${places.join()})`);
    hiding.textContent = places.length ? cells.join() + " { display: none }" : "";
    const all = tests();
    shown = [];
    for (let at = 0; at < size; at++) if (all.every((test) => test(at))) shown.push(at);
    sorted();
    count.textContent = number(shown.length) + " of " + plural(size, noun);
    if (shown.length || !size) renderAll(); else nothing();
  }
  // The row that the address names is open, and no other one. It comes first where it is not among those that are seen.
  function unfold(wanted) {
    const before = opened !== null && rows.get(detail.place(opened));
    if (before) fold(before, false);
    opened = wanted;
    const at = wanted === null ? undefined : detail.place(wanted), isListed = shown.includes(at);
    answer.replaceChildren(...(wanted === null || isListed ? [] : at === undefined ? detail.unknown(wanted)
      : ["What is open is not among these. ", make("a", { href: "#" + name + "?" + new URLSearchParams({ open: wanted }) }, "Show it")]));
    if (!isListed) return null;
    if (!rows.has(at)) {
      shown = [at, ...shown.filter((other) => other !== at)];
      renderAll();
    }
    const line = rows.get(at);
    fold(line, true);
    line.after(detail.row(at));
    return line;
  }
  function fold(line, isOpen) {
    line.querySelector("[aria-expanded]").ariaExpanded = String(isOpen);
    if (!isOpen && line.nextElementSibling && line.nextElementSibling.className === "detail") line.nextElementSibling.remove();
  }
  function nothing() {
    const asked = [...state].filter(([key]) => !["sort", "without"].includes(key)).map(([key, value]) => (key === "q" ? "“" + value + "”" : key + " " + value));
    const button = make("button", { type: "button" }, "Clear filters");
    button.addEventListener("click", () => { clear(); search.focus(); });
    const query = meant(), better = make("button", { type: "button", className: "link" }, query || "");
    better.addEventListener("click", () => change({ q: query }));
    rows.clear();
    body.replaceChildren(make("tr", { className: "nothing" }, make("td", { colSpan: width() }, "No " + noun + " matches " + asked.join(", "),
      ...(query ? ["; did you mean ", better, "? "] : [". "]), button)));
    more.hidden = true;
  }
  // The search with its misspelled keys and values set right: `tier:hard` for `tier:hrad`; null where it knows nothing better.
  function meant() {
    const asked = state.get("q") || "";
    const better = asked.split(/\s+/).map((word) => {
      const [, key, value] = /^([^:]+):([^:]+)$/.exec(word.toLowerCase()) || [];
      const known = key && (Object.hasOwn(fields, key) ? key : nearest(key, Object.keys(fields)));
      if (!known) return word;
      const filter = filters.find((filter) => filter.key.startsWith(known)), values = filter ? filter.values.map(([value]) => value) : [];
      return known + ":" + (values.some((one) => one.toLowerCase().includes(value)) ? value : nearest(value, values) || value);
    }).join(" ");
    return better === asked ? null : better;
  }
  function renderAll() {
    body.replaceChildren();
    rows.clear();
    rendered = 0;
    render();
  }
  function render() {
    const next = shown.slice(rendered, rendered + (rendered || state.size ? ROWS : few));
    rendered += next.length;
    for (const at of next) rows.set(at, row(at));
    body.append(...next.map((at) => rows.get(at)));
    const left = shown.length - rendered;
    more.hidden = left === 0;
    more.dataset.left = number(left);
    more.textContent = "Show " + Math.min(ROWS, left) + " more of " + number(left);
  }
  address.tables.set(name, show);
  const toggle = (at) => change({ open: opened === detail.id(at) ? "" : detail.id(at) });
  named.set(name, { shown: () => shown, width, toggle });
}
// A cell that says on a phone what it is.
const cell = (value, kind, label) => {
  const node = make("td", { className: kind || "" }, ...(Array.isArray(value) ? value : [value]));
  if (label) node.dataset.label = label;
  return node;
};
