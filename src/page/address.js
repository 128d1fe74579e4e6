// --- the state of the page is its address: `#groups?cause=fails&sort=-ms;instances?tier=hard;i=<id>`. The first part is
// what is looked at; a table that is not named is as it was at first; `i` is what is open in the dialog, `open` of a table its row.
const address = {
  tables: new Map(), // name → function of its parameters, which returns the row that it opens
  opens: null, // function of the id that is open, or null
  parse(hash) {
    const found = { at: null, open: null, parts: new Map() };
    for (const part of hash.replace(/^#/, "").split(";").filter(Boolean)) {
      const own = part.startsWith("i=");
      if (own) {
        try { found.open = decodeURIComponent(part.slice(2)); } catch { found.open = part.slice(2); }
        continue;
      }
      const end = part.indexOf("?");
      const name = end < 0 ? part : part.slice(0, end);
      if (found.at === null) found.at = name;
      found.parts.set(name, new URLSearchParams(end < 0 ? "" : part.slice(end + 1)));
    }
    return found;
  },
  spell({ at, open, parts }) {
    const names = [...parts.keys()].sort((a, b) => (b === at) - (a === at));
    const spelled = names.filter((name) => name === at || parts.get(name).size).map((name) => name + (parts.get(name).size ? "?" + parts.get(name) : ""));
    if (open !== null) spelled.push("i=" + encodeURIComponent(open));
    return "#" + spelled.join(";");
  },
  now() { return this.parse(location.hash); },
  // A step back in the browser's history leads to what was before a link or a button, not to each letter of a search.
  go(state, { replaces = false, scrolls = false } = {}) {
    const hash = this.spell(state);
    if (hash !== location.hash && !(hash === "#" && !location.hash)) history[replaces ? "replaceState" : "pushState"](null, "", hash);
    this.apply(scrolls);
  },
  apply(scrolls) {
    const state = this.now();
    let row = null;
    for (const [name, show] of this.tables) row = show(state.parts.get(name) || new URLSearchParams()) || row;
    if (this.opens) this.opens(state.open);
    const target = scrolls && state.open === null && state.at ? byId(state.at) : null;
    if (target) {
      (row || target).scrollIntoView();
      if (row) row.querySelector("button").focus({ preventScroll: true });
      else if (target.tabIndex === -1 && target.hasAttribute("tabindex")) target.focus({ preventScroll: true });
    }
  },
  set(name, parameters, options) {
    const state = this.now();
    state.parts.set(name, parameters);
    state.at = name;
    this.go(state, options);
  },
  open(id) {
    this.go({ ...this.now(), open: id });
  },
  // Links into the page change what they name and leave the rest.
  follow(event) {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const [state, wanted] = [this.now(), this.parse(link.getAttribute("href"))];
    for (const [name, parameters] of wanted.parts) if (parameters.size || !state.parts.has(name)) state.parts.set(name, parameters);
    state.at = wanted.at || state.at;
    state.open = wanted.open;
    this.go(state, { scrolls: true });
  },
};
