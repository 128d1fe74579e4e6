// --- a dialog with one of the things that a table lists; next and previous follow the table
// `place` finds what an id names, `id` is the other way, `show` and `unknown` are what the dialog holds.
function viewer({ place, id, size, table, show, unknown }) {
  const dialog = byId("one"), view = byId("view"), [previous, next] = [byId("previous"), byId("next")];
  let openAt = null; // -1 when there is no such thing
  const around = () => {
    const shown = named.get(table).shown();
    const list = shown.includes(openAt) ? shown : Array.from({ length: size }, (_, at) => at);
    return { list, at: list.indexOf(openAt) };
  };
  const step = (by) => {
    const { list, at } = around();
    if (at >= 0 && list[at + by] !== undefined) address.open(id(list[at + by]));
  };
  address.opens = (wanted) => {
    if (wanted === null) {
      openAt = null;
      if (dialog.open) dialog.close();
      return;
    }
    const found = place(wanted);
    const at = found === undefined ? -1 : found;
    if (at !== openAt || at < 0) {
      openAt = at;
      view.replaceChildren(...(at < 0 ? unknown(wanted) : show(at)));
      dialog.scrollTop = 0;
    }
    const { list, at: position } = around();
    byId("position").textContent = at < 0 ? "" : number(position + 1) + " of " + number(list.length);
    previous.disabled = at < 0 || position <= 0;
    next.disabled = at < 0 || position === list.length - 1;
    if (!dialog.open) dialog.showModal();
  };
  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  byId("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => { if (address.now().open !== null) address.go({ ...address.now(), open: null }); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
}
