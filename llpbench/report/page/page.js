// The page itself: controls, what it says of the table, the address, and the file of what is shown.

const controls = /** @type {HTMLFormElement} */ (document.getElementById("controls"));

const FACETS = ["dataset", "size", "encoder", "pretraining"];

/** What stands in a group of check boxes for the encoder that a method does not have. */
const NO_ENCODER = "no encoder";

function render() {
  const board = chosenBoard();
  const criterion = data.criteria.find((each) => each.name === board.criterion);
  document.getElementById("selection").textContent = criterion.selection;
  document.getElementById("board-caption").replaceChildren(
    element("strong", { text: board.title }),
    element("span", { text: board.setting }),
  );
  showTable(view(board, readFilters()));
  showNotes(board);
  describe();
}

/** Says in words and in the address what is shown. */
function describe() {
  const set = setControls();
  document.getElementById("shown").textContent = `${counts().join(" · ")}.`;
  document.getElementById("board-region").hidden = current.lines.length === 0;
  document.getElementById("active").textContent = set.length ? `(${set.length} set)` : "";
  document.getElementById("reset").hidden = set.length === 0 && sorting === null;
  writeAddress(set);
}

/** What is shown and what is hidden, and what means and ranks are computed on. */
function counts() {
  const { board, columns, lines, counting, runs, compared } = current;
  const [shown, all] = [lines.length * columns.length, board.rows.length * board.columns.length];
  const used = counting.filter((seeds) => seeds.length > 0).length;
  const { common } = readFilters();
  return [
    `${lines.length} of ${board.rows.length} rows, ${columns.length} of ${board.columns.length} columns`,
    shown < all ? `filters hide ${all - shown} of ${all} scores` : `all ${all} scores are shown`,
    common && runs === 0
      ? nothingCommon()
      : `means and ranks over ${runs} runs in ${used} columns` +
        (common ? `, all that the ${compared} compared rows have in common` : ""),
  ];
}

/** Says which row keeps the others from having a run in common. */
function nothingCommon() {
  const number = (values) => values.filter((value) => value !== null).length;
  const done = ({ row }) => current.columns.reduce((sum, column) => sum + number(row.values[column]), 0);
  const compared = current.lines.filter(({ row }) => row.role === "");
  if (compared.length === 0) return "there is nothing to compare";
  const least = compared.reduce((a, b) => (done(b) < done(a) ? b : a));
  const text = `the ${compared.length} compared rows have no run in common`;
  return `${text}; fewest has ${least.row.label}, with ${done(least)}`;
}

function showNotes(board) {
  const kinds = [["Failed or undefined", board.failures], ["Worth a look", board.surprises]];
  const notes = kinds.filter(([, lines]) => lines.length > 0).map(([title, lines]) =>
    element(
      "details",
      {},
      element("summary", { text: `${title} (${lines.length})` }),
      element("ul", {}, ...lines.map((text) => element("li", { text }))),
    ),
  );
  document.getElementById("notes").replaceChildren(...notes);
}

// ---- controls -----------------------------------------------------------------------------------------------------

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
  document.getElementById("criteria").append(
    ...data.criteria.map(({ name, regime, title }) => choice("radio", "criterion", name, title, regime)),
  );
  for (const name of ["bagging", "protocol"]) {
    const select = controls.elements[name];
    const options = distinct(boards.map((board) => board[name]));
    select.append(...options.map((value) => element("option", { value, text: value })));
    select.parentElement.hidden = options.length < 2;
  }
  controls.elements.configuration.parentElement.hidden = distinct(rows.map((row) => row.default)).length < 2;
}

function choice(type, name, value, title, detail = "") {
  const text = element("span", {}, title);
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

/** Names and values of the controls that differ from what the page begins with. */
function setControls() {
  const { criterion, bagging, protocol, configuration } = controls.elements;
  const usual = new Map([["search", ""], ["criterion", criterion[0].value]]);
  for (const select of [bagging, protocol, configuration]) usual.set(select.name, select.options[0].value);
  return [...new FormData(controls)].filter(([name, value]) => usual.get(name) !== value);
}

// ---- the address --------------------------------------------------------------------------------------------------

/** Writes what is shown into the address, so that it can be passed on and survives a reload. */
function writeAddress(set) {
  const state = new URLSearchParams(set);
  if (sorting) state.set("sort", `${sorting.direction} ${sorting.key}`);
  const text = state.toString();
  // the anchor of a section stays until something is chosen
  if (text || location.hash.includes("=")) {
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }
}

/** Sets the controls to what the address says; what it says of things that are not here is ignored. */
function readAddress() {
  const state = new URLSearchParams(location.hash.slice(1));
  controls.reset();
  controls.elements.criterion[0].checked = true;
  for (const input of controls.querySelectorAll("[name]")) {
    const values = state.getAll(input.name);
    if (input.type === "search") input.value = values[0] ?? "";
    else if (input.type === "checkbox" || input.type === "radio") input.checked ||= values.includes(input.value);
    else if ([...input.options].some(({ value }) => value === values[0])) input.value = values[0];
  }
  const [, direction, key] = (state.get("sort") ?? "").match(/^(ascending|descending) (.+)$/s) ?? [];
  sorting = key === undefined ? null : { key, direction };
}

// ---- what is shown, as a file -------------------------------------------------------------------------------------

/** The shown lines in their order, as CSV; what is not known is an empty field. */
function csv() {
  const { board, columns } = current;
  const [titles, names] = [["mean AUC", ...columns.map((column) => columnName(board, column))], ["mean", "std", "n"]];
  const described = ["method", "encoder", "pretraining", "configuration"];
  const parts = (summary) =>
    summary ? [summary.mean.toFixed(4), summary.std?.toFixed(4) ?? "", summary.n] : ["", "", 0];
  const heading = ["criterion", "bagging", "protocol", "rank", "role", ...described];
  const lines = [...body.rows].map((row) => lineOf.get(row)).map(({ row, rank, mean, scores }) => [
    ...[board.criterion, board.bagging, board.protocol, rank ?? "", row.role],
    ...described.map((name) => row[name] ?? ""),
    ...[mean, ...scores].flatMap(parts),
  ]);
  const field = (value) =>
    /[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  return [[...heading, ...titles.flatMap((title) => names.map((name) => `${title} ${name}`))], ...lines]
    .map((line) => `${line.map(field).join(",")}\n`)
    .join("");
}

function columnName(board, column) {
  return `${board.columns[column].dataset} ${board.columns[column].size}`;
}

function download() {
  const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  element("a", { href: address, download: `llpbench-${current.board.criterion}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// ---- the beginning ------------------------------------------------------------------------------------------------

/** Everything back to what the page begins with, but for the criterion. */
function showAll() {
  const criterion = controls.elements.criterion.value;
  controls.reset();
  controls.elements.criterion.value = criterion;
  sorting = null;
  render();
  controls.elements.search.focus();
}

function listen() {
  controls.elements.search.addEventListener("input", render);
  controls.addEventListener("change", (event) => {
    // leaving the search field changes nothing, and must not take away the score that is being clicked on
    if (event.target !== controls.elements.search) render();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("download").addEventListener("click", download);
  document.getElementById("reset").addEventListener("click", showAll);
  window.addEventListener("hashchange", () => {
    if (location.hash && !location.hash.includes("=")) return; // a link to a section
    readAddress();
    render();
  });
  head.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    sortBy(button.dataset.key);
    describe();
  });
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button.score");
    if (!button) return;
    makeTabStop(button);
    const { place } = fields[button.parentElement.cellIndex];
    showProvenance(current.board, lineOf.get(button.closest("tr")).row, current.columns[place], button);
  });
  body.addEventListener("keydown", moveFocus);
}

if (data.boards.length > 0) {
  makeControls();
  readAddress();
  controls.hidden = false;
  document.getElementById("download").hidden = false;
  document.getElementById("filters").open = matchMedia("(min-width: 45rem)").matches;
  render();
  listen();
}
document.querySelectorAll("table.plain").forEach(makeSortable);
