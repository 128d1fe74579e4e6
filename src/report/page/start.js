// --- the scatter: what a mark is, at once; one stop for the keyboard, arrows from mark to mark
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
  scatter.addEventListener("click", quiet);
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
