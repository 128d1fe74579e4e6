"use strict";
// Every text goes through the DOM as text, so nothing of the data is taken for markup.
const byId = (id) => document.getElementById(id);
function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const number = (value) => (value === null || value === undefined ? "–" : String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f"));
const plural = (value, word) => number(value) + " " + word + (value === 1 ? "" : "s");
const percent = (value, digits = 1) => (value === null || value === undefined ? "–" : (100 * value).toFixed(digits) + " %");

// Data of a script element, parsed when it is first asked for.
const parsed = new Map();
function data(id) {
  if (!parsed.has(id)) parsed.set(id, JSON.parse(byId(id).textContent));
  return parsed.get(id);
}

// A name that breaks after its separators and not within words.
function breakable(text) {
  const pieces = text.replace(/(::|[/_.\-[,])/g, "$1\u0000").split("\u0000");
  return pieces.flatMap((piece, at) => (at ? [document.createElement("wbr"), piece] : [piece]));
}
// A test: its file soft, its name strong.
function testName(id) {
  const at = id.indexOf("::");
  if (at < 0) return make("span", {}, ...breakable(id));
  return make("span", {}, make("span", { className: "path" }, ...breakable(id.slice(0, at + 2))), make("b", {}, ...breakable(id.slice(at + 2))));
}
function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", {}, ...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...(Array.isArray(value) ? value : [value]))]));
}
// A word with an explanation, for pointers, keyboards and readers alike.
const hinted = (text, hint) => make("span", { className: "hinted", tabIndex: 0 }, text, make("span", { className: "hint" }, " " + hint));

// --- what leaves the page
const said = make("div", { className: "quiet", role: "status" });
document.body.append(said);
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page that was opened as a file may have no clipboard of its own.
    const field = make("textarea", { value: text });
    (document.querySelector("dialog[open]") || document.body).append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
function copyButton(label, text) {
  const button = make("button", { type: "button", className: "copy" }, label);
  button.addEventListener("click", async () => {
    await copy(typeof text === "function" ? text() : text);
    said.textContent = "copied";
    button.textContent = "copied";
    setTimeout(() => { button.textContent = label; said.textContent = ""; }, 1500);
  });
  return button;
}
// A command with its copy button.
const command = (text) => make("div", { className: "command" }, make("pre", {}, text), copyButton("copy", text));
const quoted = (text) => (/^[\w./:@%+=-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");
function download(name, type, text) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
// A spreadsheet takes what begins like a formula for one.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  let text = Array.isArray(value) ? value.join(" ") : String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}
function csv(records) {
  const names = Object.keys(records[0] || {});
  return [names, ...records.map((record) => names.map((name) => record[name]))].map((row) => row.map(csvCell).join(",") + "\r\n").join("");
}
for (const node of document.querySelectorAll("[data-copy]")) node.append(copyButton("copy", node.dataset.copy));
