// Tables that the page was written with: their order, which of their columns are seen, and what they say as a file.

/**
 * @typedef {{name: string, direction: "ascending" | "descending"}} Sorting  by the name of a column
 */

/** The rows of each table as they were written: in the order of ranks. */
const written = new WeakMap();

function writtenRows(table) {
  if (!written.has(table)) written.set(table, [...table.tBodies[0].rows]);
  return written.get(table);
}

function headings(table) {
  return [...table.tHead.rows[0].cells];
}

/** What a field is sorted by; null where it says nothing. */
function valueOf(cell) {
  const { value: only, values } = cell.dataset;
  if (only === undefined && values === undefined) return cell.firstChild?.textContent.trim().replace(/^–$/, "") || null;
  const [value] = values === undefined ? [only] : JSON.parse(values);
  return value === null || value === "" || Number.isNaN(Number(value)) ? null : Number(value);
}

/**
 * Puts the rows of a table in order; they are moved, not made again.
 * @param {Sorting | null} sorting  null: as they were written; so is a table that has no such column
 */
function order(table, sorting) {
  const cells = headings(table);
  const place = sorting ? cells.findIndex((cell) => cell.dataset.name === sorting.name) : -1;
  cells.forEach((cell, index) => {
    if (index === place) cell.setAttribute("aria-sort", sorting.direction);
    else cell.removeAttribute("aria-sort");
  });
  const rows = writtenRows(table);
  table.tBodies[0].append(...(place < 0 ? rows : sorted(rows, (row) => valueOf(row.cells[place]), sorting.direction)));
}

/** Items in the order of their values; what has none comes last in either direction, equal ones stay as they are. */
function sorted(items, value, direction) {
  const sign = direction === "ascending" ? 1 : -1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const pairs = items.map((item) => [value(item), item]);
  pairs.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
  return pairs.map(([, item]) => item);
}

/**
 * The order after a click on a heading: of scores the largest first, then the other way round, then none.
 * @returns {Sorting | null}
 */
function nextSorting(cell) {
  const directions = ["ascending", "descending"];
  if (cell.matches(".score, .plain .number")) directions.reverse();
  const next = directions[directions.indexOf(cell.getAttribute("aria-sort")) + 1];
  return next ? { name: cell.dataset.name, direction: next } : null;
}

/** Shows those columns of a table whose headings pass, and hides the others. */
function showColumns(table, passes) {
  const hidden = headings(table).map((cell) => !passes(cell));
  for (const row of [table.tHead.rows[0], ...writtenRows(table)]) {
    hidden.forEach((isHidden, place) => (row.cells[place].hidden = isHidden));
  }
}

/** What names a row, in every file. */
const IDENTIFY = ["method", "encoder", "pretraining", "configuration"];

/** What is seen of a table, in its order, as rows of texts and numbers, names first. */
function seen(table) {
  const places = headings(table).flatMap((cell, place) =>
    cell.hidden && !IDENTIFY.includes(cell.dataset.name) ? [] : [[cell, place]],
  );
  const names = places.flatMap(([{ dataset }]) =>
    (dataset.parts ?? "").split(" ").map((part) => `${dataset.shown ?? dataset.name} ${part}`.trim()),
  );
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const values = (heading, { dataset, firstChild }) => {
    if (dataset.values !== undefined) return JSON.parse(dataset.values);
    const parts = heading.dataset.parts?.split(" "); // a score without runs says no values
    return parts ? parts.map(() => null) : [firstChild.textContent.trim()];
  };
  return [names, ...rows.map((row) => places.flatMap(([heading, place]) => values(heading, row.cells[place])))];
}

/** Rows as CSV; what is not known is an empty field. */
function toCsv(rows) {
  return rows.map((row) => `${row.map(csvField).join(",")}\n`).join("");
}

/** A field; texts that a spreadsheet would take for a formula begin with an apostrophe, numbers stay numbers. */
function csvField(value) {
  let text = String(value ?? "");
  if (/^[=+\-@\t\r\n＝＋－＠]./s.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// ---- keys ---------------------------------------------------------------------------------------------------------

const STEPS = new Map([["ArrowLeft", [0, -1]], ["ArrowRight", [0, 1]], ["ArrowUp", [-1, 0]], ["ArrowDown", [1, 0]]]);

/** Arrow keys, Home and End move from score to score; what is hidden and places without a score are passed over. */
function moveFocus(event) {
  const from = event.target.closest("button.score");
  if (!from) return;
  const row = from.closest("tr");
  const reached = (cell) => (cell.hidden || cell.parentElement.hidden ? null : cell.querySelector("button.score"));
  const inRow = [...row.cells].map(reached).filter(Boolean);
  let next = { Home: inRow[0], End: inRow.at(-1) }[event.key];
  const [down, right] = STEPS.get(event.key) ?? [0, 0];
  const rows = row.parentElement.rows;
  let [line, place] = [row.sectionRowIndex, from.parentElement.cellIndex];
  while (!next && (down || right) && rows[line]?.cells[place]) {
    [line, place] = [line + down, place + right];
    const cell = rows[line]?.cells[place];
    next = cell && reached(cell);
  }
  if (STEPS.has(event.key) || next) event.preventDefault();
  if (!next) return;
  makeTabStop(next);
  next.focus();
}

/** Of all scores, only this one is reached by Tab. */
function makeTabStop(button) {
  for (const other of document.querySelectorAll("button.score[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
}
