// The page itself: controls, the table, its order, the address, and the file of what is shown.

const controls = /** @type {HTMLFormElement} */ (document.getElementById("controls"));
const table = /** @type {HTMLTableElement} */ (document.getElementById("board"));
const [head, body] = [table.tHead, table.tBodies[0]];

const FACETS = ["dataset", "size", "encoder", "pretraining"];

/** What stands in a group of check boxes for the encoder that a method does not have. */
const NO_ENCODER = "no encoder";

/** The order of the table: a key of `fields`, and a direction as `aria-sort` has it; null: by rank. */
let sorting = null;

/** What is shown, its fields, and its lines by their table rows. */
let current = null;
let fields = [];
let lineOf = new Map();

/** Characters of the longest spread that is shown: the others are filled up to it, so that means stand in line. */
let spreadWidth = 0;
const FIGURE_SPACE = "\u2007";

/** Of the columns, by kind. CSS knows them, since a small screen has narrower ones. */
const WIDTHS = {
  rank: "5rem",
  method: "var(--method)",
  text: "var(--text)",
  words: "var(--words)",
  mean: "var(--score)",
  score: "minmax(var(--score), 1fr)",
};

/** @typedef {{key: string, title: string, detail?: string, kind: string, sort: (line: Line) => string | number | null}} Field */

/** The table's columns. Scores are told apart by their place among the shown columns. */
function fieldsOf({ board, columns, lines, counting }) {
  const some = (name, usual) => lines.some(({ row }) => (row[name] ?? usual) !== usual);
  const described = [
    ["encoder", "text", true],
    ["pretraining", "text", some("pretraining", "none")],
    ["configuration", "words", some("configuration", "")],
  ];
  return [
    { key: "rank", title: "Rank", kind: "rank", sort: ({ rank }) => rank },
    { key: "method", title: "Method", kind: "method", sort: ({ row }) => row.method },
    ...described
      .filter(([, , needed]) => needed)
      .map(([key, kind]) => ({ key, kind, title: key[0].toUpperCase() + key.slice(1), sort: ({ row }) => row[key] || null })),
    { key: "mean", title: "Mean AUC", kind: "mean", sort: ({ mean }) => mean && mean.mean },
    ...columns.map((column, place) => ({
      key: `${board.columns[column].dataset} ${board.columns[column].size}`,
      title: board.columns[column].dataset,
      detail: String(board.columns[column].size),
      kind: place > 0 && board.columns[columns[place - 1]].dataset === board.columns[column].dataset ? "score" : "score first",
      place,
      apart: counting[place].length === 0,
      sort: ({ scores }) => scores[place] && scores[place].mean,
    })),
  ];
}

/** Whether larger values are better, so that a first click should bring them to the top. */
function isNumeric(field) {
  return field.kind.startsWith("score") || field.kind === "mean";
}

function render() {
  const filters = readFilters();
  const board = chosenBoard();
  current = view(board, filters);
  fields = fieldsOf(current);
  const criterion = data.criteria.find((each) => each.name === board.criterion);
  document.getElementById("selection").textContent = criterion.selection;
  document.getElementById("board-caption").replaceChildren(
    element("strong", { text: board.title }), element("span", { text: board.setting }),
  );
  table.style.setProperty("--columns", fields.map((field) => WIDTHS[field.kind.split(" ")[0]]).join(" "));
  head.replaceChildren(element("tr", { role: "row" }, ...fields.map(headCell)));
  const summaries = current.lines.flatMap((each) => [each.mean, ...each.scores]).filter((summary) => summary);
  spreadWidth = summaries.reduce((width, summary) => Math.max(width, scoreTexts(summary)[1].length), 0);
  lineOf = new Map(current.lines.map((each) => [lineRow(each), each]));
  showOrder();
  showCounts(filters);
  showNotes(board);
  writeAddress();
}

function headCell(field) {
  const button = element("button", { type: "button", "data-key": field.key }, field.title);
  if (field.detail) button.append(element("small", { text: field.detail }));
  if (field.apart) button.append(element("small", { text: "not in the mean" }));
  return element("th", { className: field.kind, role: "columnheader", scope: "col" }, button);
}

/** A table row. The scores' buttons are reached by arrow keys, so that Tab leaves the table after one of them. */
function lineRow(each) {
  const made = element("tr", { className: each.row.role || (each.rank === null ? "unranked" : "ranked"), role: "row" });
  for (const field of fields) made.append(lineCell(each, field));
  return made;
}

function lineCell(each, field) {
  const { row, rank, mean, lacking } = each;
  if (field.kind === "method") return methodCell(row);
  if (field.place !== undefined) return scoreCell(each, field);
  const made = element("td", { className: field.kind, role: "cell" });
  if (field.kind === "rank") {
    made.append(row.role ? element("span", { className: `badge ${row.role}`, text: row.role }) : String(rank ?? NOTHING));
  } else if (field.kind === "mean") {
    made.append(...(mean ? spread(mean) : [NOTHING]));
    if (lacking > 0) made.append(element("span", { className: "lack quiet", text: `lacks ${lacking}/${current.runs}` }));
  } else {
    made.textContent = (field.key === "pretraining" && row.pretraining === "none" ? "" : row[field.key]) || NOTHING;
  }
  return made;
}

/** The name of a row; on a small screen, where only it stays in sight, with what tells the row from others of its name. */
function methodCell(row) {
  const made = element("th", { className: "method", role: "rowheader", scope: "row" }, row.method);
  const described = [row.encoder, row.pretraining === "none" ? "" : row.pretraining, row.configuration].filter(Boolean);
  if (described.length > 0) made.append(element("small", { text: described.join(", "), "aria-hidden": "true" }));
  return made;
}

function scoreCell(each, { kind, place }) {
  const column = current.columns[place];
  const runs = each.row.scores[column];
  const made = element("td", { className: current.leaders[place].has(each) ? `${kind} best` : kind, role: "cell" });
  if (runs.every((run) => run === null)) {
    made.textContent = NOTHING;
    return made;
  }
  const lacking = lacks(each.row, column);
  const failed = lacking.failed === runs.length;
  const button = element("button", { type: "button", className: "score", tabindex: "-1" });
  button.append(...(each.scores[place] ? spread(each.scores[place]) : [failed ? "failed" : NOTHING]));
  if (failed) button.classList.add("failed");
  for (const [what, number] of Object.entries(lacking)) {
    if (number > 0 && !failed) button.append(element("span", { className: "lack", text: `${number}/${runs.length} ${what}` }));
  }
  made.append(button);
  return made;
}

function spread(summary) {
  const [mean, rest] = scoreTexts(summary);
  return [`${mean} `, element("span", { className: "spread", text: rest.padStart(spreadWidth, FIGURE_SPACE) })];
}

/** Puts the rows in order; they are moved, not made again, which is what takes time. */
function showOrder() {
  const field = sorting && fields.find(({ key }) => key === sorting.key);
  const rows = [...lineOf.keys()];
  const shownRows = field ? sorted(rows, (row) => field.sort(lineOf.get(row)), sorting.direction) : rows;
  body.replaceChildren(...shownRows);
  [...head.rows[0].cells].forEach((cell, place) => {
    const active = field && fields[place] === field;
    if (active) cell.setAttribute("aria-sort", sorting.direction);
    else cell.removeAttribute("aria-sort");
  });
  for (const button of body.querySelectorAll("button.score[tabindex='0']")) button.tabIndex = -1;
  const first = body.querySelector("button.score");
  if (first) first.tabIndex = 0;
}

/** Items in the order of their values; what has none comes last in either direction, and equal ones stay as they are. */
function sorted(items, valueOf, direction) {
  const sign = direction === "ascending" ? 1 : -1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const pairs = items.map((item) => [valueOf(item), item]);
  pairs.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
  return pairs.map(([, item]) => item);
}

/** The order after another click on a heading: its first direction, the other one, and none. */
function nextDirection(direction, numeric) {
  const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
  return direction === first ? second : direction === second ? null : first;
}

function showCounts({ common }) {
  const { board, columns, lines, counting, runs, compared } = current;
  const scores = lines.length * columns.length;
  const all = board.rows.length * board.columns.length;
  const parts = [
    `${lines.length} of ${board.rows.length} rows, ${columns.length} of ${board.columns.length} columns`,
    scores < all ? `filters hide ${all - scores} of ${all} scores` : `all ${all} scores are shown`,
    common && runs === 0 ? nothingCommon() : `means and ranks over ${runs} runs in ${counting.filter((seeds) => seeds.length > 0).length} columns` +
      (common ? `, all that the ${compared} compared rows have in common` : ""),
  ];
  document.getElementById("shown").textContent = `${parts.join(" · ")}.`;
  document.getElementById("board-region").hidden = lines.length === 0;
  const active = new FormData(controls).entries().filter(([name, value]) => isFilter(name, value)).toArray().length;
  document.getElementById("active").textContent = active ? `(${active} set)` : "";
  document.getElementById("reset").hidden = active === 0 && sorting === null;
}

/** Says which row keeps the others from having a run in common. */
function nothingCommon() {
  const done = ({ row }) => current.columns.reduce((sum, column) => sum + row.values[column].filter((value) => value !== null).length, 0);
  const compared = current.lines.filter(({ row }) => row.role === "");
  if (compared.length === 0) return "there is nothing to compare";
  const least = compared.reduce((a, b) => (done(b) < done(a) ? b : a));
  return `the ${compared.length} compared rows have no run in common; fewest has ${least.row.label}, with ${done(least)}`;
}

function showNotes(board) {
  const kinds = [["Failed or undefined", board.failures], ["Worth a look", board.surprises]];
  const notes = kinds.filter(([, lines]) => lines.length > 0).map(([title, lines]) =>
    element("details", {},
      element("summary", { text: `${title} (${lines.length})` }),
      element("ul", {}, ...lines.map((text) => element("li", { text }))),
    ),
  );
  document.getElementById("notes").replaceChildren(...notes);
}

// ---- controls and the address -------------------------------------------------------------------------------------

function distinct(values) {
  return [...new Set(values)];
}

/** Fills the controls with what the boards have; a choice between one thing is none, and is not shown. */
function makeControls() {
  const { boards } = data;
  const columns = boards.flatMap((board) => board.columns);
  const rows = boards.flatMap((board) => board.rows);
  const values = {
    dataset: distinct(columns.map(({ dataset }) => dataset)),
    size: distinct(columns.map(({ size }) => size)).sort((a, b) => a - b).map(String),
    encoder: distinct(rows.map(({ encoder }) => encoder ?? "")).sort(),
    pretraining: distinct(rows.map(({ pretraining }) => pretraining)),
  };
  for (const facet of FACETS) {
    const group = controls.querySelector(`[data-facet=${facet}]`);
    group.append(...values[facet].map((value) => choice("checkbox", facet, value, value || NO_ENCODER)));
    group.hidden = values[facet].length < 2;
  }
  const present = data.criteria.filter(({ name }) => boards.some((board) => board.criterion === name));
  document.getElementById("criteria").append(
    ...present.map(({ name, regime, title }) => choice("radio", "criterion", name, title, regime)),
  );
  controls.elements.criterion[0].checked = true;
  for (const name of ["bagging", "protocol"]) {
    const select = controls.elements[name];
    select.append(...distinct(boards.map((board) => board[name])).map((value) => element("option", { value, text: value })));
    select.parentElement.hidden = select.options.length < 2;
  }
  controls.elements.configuration.parentElement.hidden = distinct(rows.map((row) => row.default)).length < 2;
}

function choice(type, name, value, title, detail = "") {
  const text = element("span", { text: title });
  if (detail) text.prepend(element("b", { text: detail }), " · ");
  return element("label", { className: "choice" }, element("input", { type, name, value }), text);
}

/** The board that the controls choose. Protocols that a bagging does not have cannot be chosen. */
function chosenBoard() {
  const { bagging, protocol, criterion } = controls.elements;
  const boards = data.boards.filter((board) => board.criterion === criterion.value && board.bagging === bagging.value);
  for (const option of protocol.options) option.disabled = !boards.some((board) => board.protocol === option.value);
  if (protocol.selectedOptions[0]?.disabled !== false) protocol.value = boards[0].protocol;
  return boards.find((board) => board.protocol === protocol.value);
}

/** @returns {Filters} */
function readFilters() {
  const form = new FormData(controls);
  return {
    chosen: new Map(FACETS.map((facet) => [facet, new Set(form.getAll(facet))])),
    search: String(form.get("search")).trim(),
    configuration: String(form.get("configuration")),
    common: form.has("common"),
  };
}

/** Whether a value of a control differs from what the page begins with. */
function isFilter(name, value) {
  if (name === "configuration") return value !== "all";
  if (name === "criterion") return value !== controls.elements.criterion[0].value;
  const options = controls.elements[name].options;
  return options ? value !== options[0].value : value !== "" || name === "encoder";
}

/** Writes what is shown into the address, so that it can be passed on and survives a reload. */
function writeAddress() {
  const state = new URLSearchParams([...new FormData(controls)].filter(([name, value]) => isFilter(name, value)));
  if (sorting) state.set("sort", `${sorting.direction} ${sorting.key}`);
  const text = state.toString();
  // the anchor of a section stays until something is chosen
  if (text || location.hash.includes("=")) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

/** Sets the controls to what the address says; what it says of things that are not here is ignored. */
function readAddress() {
  const state = new URLSearchParams(location.hash.slice(1));
  controls.reset();
  controls.elements.criterion[0].checked = true;
  for (const input of controls.elements) {
    if (!input.name || !state.has(input.name)) continue;
    if (input.type === "checkbox" || input.type === "radio") input.checked = state.getAll(input.name).includes(input.value);
    else if (input.type === "search") input.value = state.get(input.name);
    else if ([...input.options].some(({ value }) => value === state.get(input.name))) input.value = state.get(input.name);
  }
  if (!controls.querySelector("[name=criterion]:checked")) controls.elements.criterion[0].checked = true;
  const [, direction, key] = (state.get("sort") ?? "").match(/^(ascending|descending) (.+)$/s) ?? [];
  sorting = key === undefined ? null : { key, direction };
}

// ---- what is shown, as a file -------------------------------------------------------------------------------------

/** The shown lines in their order, as CSV; what is not known is an empty field. */
function csv() {
  const { board, columns } = current;
  const parts = (summary) => (summary ? [summary.mean.toFixed(4), summary.std?.toFixed(4) ?? "", summary.n] : ["", "", 0]);
  const names = ["mean", "std", "n"];
  const titles = ["mean AUC", ...columns.map((column) => `${board.columns[column].dataset} ${board.columns[column].size}`)];
  const lines = [
    ["criterion", "bagging", "protocol", "rank", "role", "method", "encoder", "pretraining", "configuration",
      ...titles.flatMap((title) => names.map((name) => `${title} ${name}`))],
    ...[...body.rows].map((row) => lineOf.get(row)).map(({ row, rank, mean, scores }) => [
      board.criterion, board.bagging, board.protocol, rank ?? "", row.role, row.method, row.encoder ?? "",
      row.pretraining, row.configuration, ...[mean, ...scores].flatMap(parts),
    ]),
  ];
  const field = (value) => (/[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return lines.map((line) => `${line.map(field).join(",")}\n`).join("");
}

function download() {
  const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  element("a", { href: address, download: `llpbench-${current.board.criterion}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// ---- keys and clicks ----------------------------------------------------------------------------------------------

/** Arrow keys, Home and End move from score to score. */
function moveFocus(event) {
  const from = event.target.closest("button.score");
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  if (!from || !Object.hasOwn({ ...steps, Home: 0, End: 0 }, event.key)) return;
  event.preventDefault();
  const row = from.closest("tr");
  const inRow = [...row.querySelectorAll("button.score")];
  let next = event.key === "Home" ? inRow[0] : inRow.at(-1);
  if (Object.hasOwn(steps, event.key)) {
    const [down, right] = steps[event.key];
    let [line, place] = [row.sectionRowIndex, from.parentElement.cellIndex];
    do {
      [line, place] = [line + down, place + right];
      next = body.rows[line]?.cells[place]?.querySelector("button.score");
    } while (!next && body.rows[line]?.cells[place]);
  }
  if (next) focusScore(next);
}

function focusScore(button) {
  for (const other of body.querySelectorAll("button.score[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
  button.focus();
}

function start() {
  makeControls();
  readAddress();
  controls.hidden = false;
  document.getElementById("download").hidden = false;
  document.getElementById("filters").open = matchMedia("(min-width: 45rem)").matches;
  render();

  controls.elements.search.addEventListener("input", render);
  controls.addEventListener("change", (event) => {
    // leaving the search field changes nothing, and must not take away the score that is being clicked on
    if (event.target !== controls.elements.search) render();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("download").addEventListener("click", download);
  document.getElementById("reset").addEventListener("click", () => {
    const criterion = controls.elements.criterion.value;
    controls.reset();
    controls.elements.criterion.value = criterion;
    sorting = null;
    render();
    controls.elements.search.focus();
  });
  window.addEventListener("hashchange", () => {
    if (!location.hash || location.hash.includes("=")) {
      readAddress();
      render();
    }
  });
  head.addEventListener("click", (event) => {
    const key = event.target.closest("button")?.dataset.key;
    if (key === undefined) return;
    const direction = nextDirection(
      sorting?.key === key ? sorting.direction : null, isNumeric(fields.find((field) => field.key === key)),
    );
    sorting = direction && { key, direction };
    showOrder();
    showCounts(readFilters());
    writeAddress();
  });
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button.score");
    if (!button) return;
    const { place } = fields[button.parentElement.cellIndex];
    focusScore(button);
    showProvenance(current.board, lineOf.get(button.closest("tr")).row, current.columns[place], button);
  });
  body.addEventListener("keydown", moveFocus);
}

/** The further tables: their fields are texts, so numbers are read from them. */
function startPlainTable(plain) {
  const rows = plain.tBodies[0];
  const original = [...rows.rows];
  plain.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.closest("th");
    if (!cell) return;
    const numeric = cell.classList.contains("number");
    const direction = nextDirection(cell.getAttribute("aria-sort"), numeric);
    const valueOf = (row) => {
      const text = row.cells[cell.cellIndex].textContent;
      const number = Number.parseFloat(text.replace(/^</, "").replaceAll(",", "").replace("−", "-"));
      return text === NOTHING || text === "" ? null : !numeric ? text : Number.isNaN(number) ? null : number;
    };
    for (const other of plain.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    if (direction) cell.setAttribute("aria-sort", direction);
    rows.replaceChildren(...(direction ? sorted(original, valueOf, direction) : original));
  });
}

if (data.boards.length > 0) start();
for (const plain of document.querySelectorAll("table.plain")) startPlainTable(plain);
