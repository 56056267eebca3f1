"use strict";
// Choice of a board, filters, sorting, and the runs of an entry. All numbers come from Python.

/** Result of `page_data`; null until `loaded` resolves. @type {any} */
let data = null;

const boards = [...document.querySelectorAll("section.board[id]")];
const at = (id) => document.getElementById(id);
const NOTHING = "–";

/** Characters without a shape, such as control characters, as in `wording.clean`. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

const loaded = unpacked(at("data").textContent).then((value) => (data = value));

/** Returns the value that was compressed to base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Returns a new element. Texts of the journal enter the page only here, as text. */
function element(tag, { text = "", ...attributes } = {}, ...children) {
  const created = document.createElement(tag);
  if (text !== "") created.textContent = text.replace(UNSEEN, " ");
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children);
  return created;
}

// ---- the board ----------------------------------------------------------------------------------------------------

/** Shows the chosen board with its filters. */
function render() {
  const board = boards.find(({ id }) => id === at("board").value);
  for (const other of boards) other.hidden = other !== board;
  const table = board.querySelector("table");
  const heads = [...table.tHead.rows[0].cells];
  for (const name of ["dataset", "size"]) offer(at(name), new Set(heads.map((cell) => cell.dataset[name])));
  const [search, rows] = [at("search").value.trim().toLowerCase(), at("rows").value];
  for (const row of written(table)) {
    const wanted = rows === "all entries" || (rows ? row.dataset.rows === rows : !row.matches(".unranked"));
    row.hidden = search ? !row.cells[1].textContent.toLowerCase().includes(search) : !wanted;
  }
  const hidden = heads.map(({ dataset }) => {
    if (dataset.dataset === undefined) return dataset.optional !== undefined && !at("columns").checked;
    return ["dataset", "size"].some((name) => at(name).value && at(name).value !== dataset[name]);
  });
  for (const row of table.rows) hidden.forEach((isHidden, place) => (row.cells[place].hidden = isHidden));
  const seen = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
  at("shown").textContent = `${seen} of ${table.tBodies[0].rows.length} entries.${seen ? "" : " No method passes the filters."}`;
}

/** Hides options that the board does not have, and resets a choice that is hidden. */
function offer(select, names) {
  for (const option of select.options) option.hidden = option.value !== "" && !names.has(option.value);
  if (select.value && !names.has(select.value)) select.value = "";
}

/** Rows of each table in their original order, by rank. */
const inOrder = new WeakMap();

function written(table) {
  if (!inOrder.has(table)) inOrder.set(table, [...table.tBodies[0].rows]);
  return inOrder.get(table);
}

/** Returns the sort value of a cell: its first number or its text; null if it is unknown. */
function valueOf(cell) {
  const text = cell.textContent.trim();
  if (text.startsWith(NOTHING) || text === "") return null;
  if (!cell.matches(".number")) return text;
  const number = text.replaceAll(",", "").replace("−", "-").match(/-?\d+(\.\d+)?/);
  return number && Number(number[0]);
}

/** Sorts by a heading: first largest scores, then smallest, then the original order. Unknown values are last. */
function sortBy(head) {
  const table = head.closest("table");
  const directions = head.matches(".number") ? ["descending", "ascending"] : ["ascending", "descending"];
  const next = directions[directions.indexOf(head.getAttribute("aria-sort")) + 1];
  for (const cell of head.parentElement.cells) cell.removeAttribute("aria-sort");
  const rows = [...written(table)];
  if (next) {
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const keys = new Map(rows.map((row) => [row, valueOf(row.cells[head.cellIndex])]));
    const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b), "en") : a - b);
    rows.sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      return a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b);
    });
  }
  table.tBodies[0].append(...rows);
}

// ---- the runs of an entry -------------------------------------------------------------------------------------------

/** Opens the runs of an entry by task: chosen epoch, metrics on test rows, times and memory. */
function showRuns(button) {
  const [row, board] = [button.closest("tr"), button.closest("section.board")];
  const place = written(row.closest("table")).indexOf(row);
  const { tasks, runs } = data.boards[boards.indexOf(board)];
  const fact = (name, index) => runs[name][index];
  const groups = Map.groupBy(runs.entry.flatMap((number, index) => (number === place ? [index] : [])), (index) => runs.task[index]);
  const facts = { seed: "seed", status: "status", epoch: "epoch", validation: "validation", ...data.metrics, seconds_train: "train s", seconds_warm_up: "warm-up s", seconds_pretraining: "pretraining s", memory_mb: "MB", finished: "finished" };
  const shown = [...groups].map(([task, indices]) => {
    const cell = fact("cell", indices[0]);
    const lines = indices.map((index) => Object.keys(facts).map((name) => fact(name, index)));
    const reasons = [...new Set(indices.map((index) => fact("reason", index)).filter(Boolean))];
    const seeds = indices.map((index) => fact("seed", index));
    const command = data.commands[cell] ? `${data.commands[cell]} --seeds ${seeds.length === 1 ? `${seeds[0]}-${seeds[0]}` : seeds.join(",")}` : "";
    return element("details", groups.size === 1 ? { open: "" } : {},
      element("summary", { text: tasks[task] }),
      grid(Object.values(facts), lines),
      ...reasons.map((text) => element("p", { class: "bad", text })),
      ...(command ? [element("pre", { tabindex: "0" }, element("code", { text: command }))] : []),
      element("p", { class: "explained", text: `Cell ${cell}; ${[...new Set(indices.map((index) => `llpbench ${fact("version", index)} on ${fact("machine", index)}`))].join("; ")}` }),
    );
  });
  const links = [["code", `method ${row.dataset.method ?? ""}`], ["journal", "journal"]].filter(([, name]) => data.links[name]);
  at("origin-title").textContent = button.textContent;
  at("origin-body").replaceChildren(...shown, element("p", {}, ...links.flatMap(([text, name]) => [element("a", { href: encodeURI(data.links[name]), text }), " "])));
  at("origin").addEventListener("close", () => button.focus(), { once: true });
  at("origin").showModal();
}

function grid(heads, lines) {
  const cells = (tag, values) => element("tr", {}, ...values.map((value) => element(tag, { text: String(value ?? NOTHING) })));
  const table = element("table", { class: "runs" }, element("thead", {}, cells("th", heads)), element("tbody", {}, ...lines.map((line) => cells("td", line))));
  return element("div", { class: "scroll", role: "region", "aria-label": "Runs", tabindex: "0" }, table);
}

// ---- the page -----------------------------------------------------------------------------------------------------

/** Shows the tab, board or figure that the address names. */
function follow() {
  const target = location.hash.length > 1 ? at(decodeURIComponent(location.hash.slice(1))) : null;
  if (target?.matches("section.board[id]")) at("board").value = target.id;
  if (boards.length) render();
  const tab = target?.closest(".tab")?.id ?? "summary";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${tab}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function start() {
  if (boards.length) {
    at("controls").hidden = false;
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    for (const id of ["search", "rows", "dataset", "size", "columns"]) at(id).addEventListener("input", render);
    at("board").addEventListener("input", () => (location.hash = at("board").value));
    for (const table of document.querySelectorAll("table.scores")) {
      table.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button?.closest("thead")) sortBy(button.closest("th"));
        else if (button) showRuns(button);
      });
    }
    at("close").addEventListener("click", () => at("origin").close());
    window.addEventListener("hashchange", follow);
  }
  follow();
  for (const image of document.querySelectorAll("img[data-plot]")) {
    image.src ||= `data:image/svg+xml,${encodeURIComponent(data.plots[image.dataset.plot])}`;
  }
  document.documentElement.dataset.ready = "";
}

loaded.then(start);
