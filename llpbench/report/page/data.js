"use strict";
// The facts of every run, and what is made of them beside the tables that the page was written with.

/** What `page_data.packed` says; there once `loaded` is. @type {any} */
let data = null;

const loaded = unpacked(document.getElementById("data").textContent).then((found) => (data = found));

/** From base64 to what was compressed. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const NOTHING = "–";

/** The value of a run or cell in a column whose values repeat. */
function fact(column, index) {
  return column.values[column.at[index]];
}

/** A test metric of a run, at the epoch that a criterion has chosen; null where there is none. */
function measured(run, criterion, metric) {
  const test = data.tests[data.runs.results[criterion].test[run]];
  return test?.[metric] ?? null;
}

/** The values of a score's runs, by seed. @returns {Map<number, number>} */
function valuesOf(button, criterion, metric) {
  const found = new Map();
  for (const run of runsOf(button)) {
    const value = measured(run, criterion, metric);
    if (value !== null) found.set(data.runs.seed[run], value);
  }
  return found;
}

/** The places of a score's runs in the columns of `data`: "0-9 15" are eleven. */
function runsOf(button) {
  const parts = button ? button.dataset.runs.split(" ") : [];
  return parts.flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, step) => first + step);
  });
}

/** Mean and sample standard deviation; null without values, no deviation of a single one. */
function summarised(values) {
  if (values.length === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, std: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : null, n: values.length };
}

/** The 95 % t interval of a mean; null of fewer than two values. */
function interval({ mean, std, n }) {
  if (std === null) return null;
  const half = (data.t[Math.min(n - 2, data.t.length - 1)] * std) / Math.sqrt(n);
  return [mean - half, mean + half];
}

/** A number as text, a negative one with a minus sign. */
function shown(value, digits) {
  if (value === null || value === undefined) return NOTHING;
  const text = digits === undefined ? String(value) : value.toFixed(digits);
  return typeof value === "number" ? text.replace(/^-/, "−") : text;
}

/** A new element. Texts from the journal enter the page here and nowhere else, as text. */
function element(tag, { className = "", text = "", ...attributes } = {}, ...children) {
  const made = tag === "svg" || SHAPES.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  if (className) made.setAttribute("class", className);
  if (text !== "") made.textContent = text.replace(UNSEEN, " ");
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Control characters, marks of direction and what else has no shape: as `wording.clean` has it. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** The namespace of drawings, from one that the page was written with. */
const SVG = document.getElementById("drawing").namespaceURI;
const SHAPES = new Set(["circle", "line", "path"]);
