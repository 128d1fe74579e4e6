// --- the scatter: what a mark is, at once; one stop for the keyboard, arrows from mark to mark
// A finger is nearer to a mark than on it: its first touch says what the mark is, the second one follows it.
const marks = [...document.querySelectorAll(".mark")];
const tooltip = make("div", { id: "tooltip", hidden: true });
document.body.append(tooltip);
function explain(mark, x, y) {
  const title = mark.querySelector("title");
  if (title) {
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  tooltip.textContent = mark.getAttribute("aria-label");
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  tooltip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + "px";
  tooltip.style.top = (y + 18 + height > innerHeight ? y - height - 10 : y + 18) + "px";
}
const scatter = document.querySelector(".scatter");
if (scatter) {
  const markAt = (event) => event.target.closest(".mark");
  const quiet = () => { tooltip.hidden = true; };
  scatter.addEventListener("pointermove", (event) => (markAt(event) ? explain(markAt(event), event.clientX, event.clientY) : quiet()));
  scatter.addEventListener("pointerleave", quiet);
  scatter.addEventListener("focusin", (event) => {
    const mark = markAt(event);
    if (!mark) return;
    const box = mark.getBoundingClientRect();
    explain(mark, box.right, box.bottom);
  });
  scatter.addEventListener("focusout", quiet);
  let touched = null;
  scatter.addEventListener("click", (event) => {
    quiet();
    if (event.pointerType !== "touch") return;
    event.preventDefault();
    const away = (mark) => {
      const box = mark.querySelector("path").getBoundingClientRect();
      return Math.hypot(event.clientX - (box.left + box.right) / 2, event.clientY - (box.top + box.bottom) / 2);
    };
    const near = marks.reduce((best, mark) => (away(mark) < away(best) ? mark : best));
    const isNear = away(near) < 24;
    if (isNear && near === touched) location.hash = near.getAttribute("href");
    else if (isNear) explain(near, event.clientX, event.clientY);
    touched = isNear && near !== touched ? near : null;
  });
  let inOrderOfLength = null;
  scatter.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key], mark = markAt(event);
    if (!by || !mark) return;
    event.preventDefault();
    inOrderOfLength = inOrderOfLength || marks.map((one) => [one.getBoundingClientRect().left, one]).sort((a, b) => a[0] - b[0]).map((one) => one[1]);
    const next = inOrderOfLength[inOrderOfLength.indexOf(mark) + by];
    if (!next) return;
    mark.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
  if (marks.length) marks[0].setAttribute("tabindex", "0");
}

address.apply(location.hash.length > 1);
performance.mark("ready");
document.documentElement.dataset.ready = "yes";
