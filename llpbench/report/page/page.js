// The page itself: which board is shown, what its filters hide, what it says of that, and the address.

const controls = /** @type {HTMLFormElement} */ (document.getElementById("controls"));
const boards = [...document.querySelectorAll("section.board")];

/** Filters of rows and of columns, by the attribute that they compare. */
const [ROWS, COLUMNS] = [["encoder", "pretraining"], ["dataset", "size"]];

/** By the name of a column, in whichever board has it; null: by rank. @type {Sorting | null} */
let sorting = null;

/** Shows the chosen board as the controls and the order say; all its numbers stay as they were written. */
function render() {
  const board = chosenBoard();
  for (const other of boards) other.hidden = other !== board;
  const table = board.querySelector("table");
  const form = new FormData(controls);
  const [search, configuration] = [String(form.get("search")).trim().toLowerCase(), form.get("configuration")];
  const admits = (names, { dataset }) => names.every((name) => !form.has(name) || form.getAll(name).includes(dataset[name]));
  for (const row of writtenRows(table)) {
    const found = row.dataset.label.toLowerCase().includes(search);
    row.hidden = !(found && admits(ROWS, row) && (!configuration || configuration === row.dataset.configuration));
  }
  showColumns(table, (cell) => cell.dataset.dataset === undefined || admits(COLUMNS, cell));
  order(table, sorting);
  const first = [...board.querySelectorAll("button.score")].find((button) => button.checkVisibility());
  if (first) makeTabStop(first);
  describe(table);
}

/** Says in words and in the address what is shown. */
function describe(table) {
  const set = setControls();
  const [rows, columns] = [writtenRows(table), headings(table).filter((cell) => cell.dataset.dataset !== undefined)];
  const seenOf = (items) => items.filter((item) => !item.hidden).length;
  const [shown, all] = [seenOf(rows) * seenOf(columns), rows.length * columns.length];
  const counts = `${seenOf(rows)} of ${rows.length} rows, ${seenOf(columns)} of ${columns.length} columns`;
  document.getElementById("shown").textContent =
    shown < all
      ? `${counts} · filters hide ${all - shown} of ${all} scores; ranks and means are those of the whole board.`
      : `${counts} · all ${all} scores are shown.`;
  document.getElementById("active").textContent = set.length ? `(${set.length} set)` : "";
  document.getElementById("reset").hidden = set.length === 0 && sorting === null;
  writeAddress(set);
}

/** The board that the controls choose. Protocols that a bagging does not have cannot be chosen. */
function chosenBoard() {
  const { bagging, protocol, criterion } = controls.elements;
  const found = boards.filter(
    ({ dataset }) => dataset.criterion === criterion.value && dataset.bagging === bagging.value,
  );
  for (const option of protocol.options) {
    option.disabled = !found.some(({ dataset }) => dataset.protocol === option.value);
  }
  if (protocol.selectedOptions[0]?.disabled !== false) protocol.value = found[0].dataset.protocol;
  return found.find(({ dataset }) => dataset.protocol === protocol.value);
}

/** Names and values of the controls that differ from what the page begins with. */
function setControls() {
  const { criterion, bagging, protocol, configuration } = controls.elements;
  const usual = new Map([["search", ""], ["criterion", criteria()[0].value]]);
  for (const select of [bagging, protocol, configuration]) usual.set(select.name, select.options[0].value);
  return [...new FormData(controls)].filter(([name, value]) => usual.get(name) !== value);
}

function criteria() {
  return [...controls.querySelectorAll("[name=criterion]")];
}

// ---- the address --------------------------------------------------------------------------------------------------

/** Writes what is shown into the address, so that it can be passed on and survives a reload. */
function writeAddress(set) {
  const state = new URLSearchParams(set);
  if (sorting) state.set("sort", `${sorting.direction} ${sorting.name}`);
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
  for (const input of controls.querySelectorAll("[name]")) {
    const values = state.getAll(input.name);
    if (input.type === "search") input.value = values[0] ?? "";
    else if (input.type === "checkbox" || input.type === "radio") input.checked ||= values.includes(input.value);
    else if ([...input.options].some(({ value }) => value === values[0])) input.value = values[0];
  }
  const [, direction, name] = (state.get("sort") ?? "").match(/^(ascending|descending) (.+)$/s) ?? [];
  sorting = name === undefined ? null : { name, direction };
}

// ---- what is done -------------------------------------------------------------------------------------------------

/** What is shown of the board, as a file that says which board it is. */
function download() {
  const board = chosenBoard();
  const { criterion, bagging, protocol } = board.dataset;
  const [names, ...rows] = seen(board.querySelector("table"));
  const lines = rows.map((row) => [criterion, bagging, protocol, ...row]);
  const text = toCsv([["criterion", "bagging", "protocol", ...names], ...lines]);
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: address, download: `llpbench-${criterion}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

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
  for (const board of boards) {
    const table = board.querySelector("table");
    table.tHead.addEventListener("click", (event) => {
      const cell = event.target.closest("button")?.closest("th");
      if (!cell) return;
      sorting = nextSorting(cell);
      order(table, sorting);
      describe(table);
    });
    table.tBodies[0].addEventListener("click", (event) => {
      const button = event.target.closest("button.score");
      if (!button) return;
      makeTabStop(button);
      showOrigin(button);
    });
    table.tBodies[0].addEventListener("keydown", moveFocus);
  }
}

if (boards.length > 0) {
  readAddress();
  controls.hidden = false;
  document.getElementById("download").hidden = false;
  document.getElementById("filters").open = matchMedia("(min-width: 45rem)").matches;
  render();
  listen();
}
for (const table of document.querySelectorAll("table.plain")) {
  table.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.closest("th");
    if (cell) order(table, nextSorting(cell));
  });
}
