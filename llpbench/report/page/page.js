// The page itself: which board is shown, what its filters hide, what it says of that, and the address.

const controls = /** @type {HTMLFormElement} */ (document.getElementById("controls"));
const boards = [...document.querySelectorAll("section.board")];

/** Filters of rows and of columns, by the attribute that they compare. */
const [ROWS, COLUMNS] = [["family", "encoder", "pretraining"], ["dataset", "size"]];

/** What is drawn below the board while it is open, by the id of its element. */
const VIEWS = { dots: showDots, pair: showPair };

/** The lists of the views, by their names in the address. */
const LISTS = { of: "dots-dataset", first: "pair-first", second: "pair-second" };

/** By the name of a column, in whichever board has it; null: by rank. @type {Sorting | null} */
let sorting = null;

/** Shows the chosen board as the controls and the order say; what Python has written stays as it is. */
function render() {
  const board = chosenBoard();
  for (const other of boards) other.hidden = other !== board;
  const table = board.querySelector("table");
  const metric = chosenMetric();
  measure(board, metric);
  offerFilters(table);
  const form = new FormData(controls);
  const [search, configuration] = [String(form.get("search")).trim().toLowerCase(), form.get("configuration")];
  const admits = (names, { dataset }) => names.every((name) => !form.has(name) || form.getAll(name).includes(dataset[name]));
  for (const row of writtenRows(table)) {
    const found = row.dataset.label.toLowerCase().includes(search);
    row.hidden = !(found && admits(ROWS, row) && (!configuration || configuration === row.dataset.configuration));
  }
  const optional = new Set(columnChoices().map(({ value }) => value));
  const chosen = new Set(form.getAll("column"));
  showColumns(table, (cell) => {
    if (cell.dataset.dataset !== undefined) return admits(COLUMNS, cell) && !unrecorded.has(cell);
    if (metric && BY_BOARD.has(cell.dataset.key)) return false;
    return !optional.has(cell.dataset.name) || chosen.has(cell.dataset.name);
  });
  titleWhole(board, metric);
  order(table, sortingOf(metric));
  const first = [...board.querySelectorAll("button.score")].find((button) => button.checkVisibility());
  if (first) makeTabStop(first);
  describe(table);
  drawViews();
}

/** Says in the headings of what goes over all columns that it does, where some of these are hidden; of another metric's
 *  means over how many columns they go, where some have not recorded it. */
function titleWhole(board, metric) {
  const cells = headings(board.querySelector("table"));
  const columns = cells.filter(({ dataset }) => dataset.dataset !== undefined);
  const isFiltered = columns.some((cell) => cell.hidden);
  const counted = columns.filter(({ dataset }) => dataset.seeds).length;
  const few = metric && averaged.get(board) < counted ? `of ${averaged.get(board)} of ${columns.length} columns` : "";
  for (const cell of cells) {
    const { key, parts, dataset } = cell.dataset;
    if (parts === undefined || dataset !== undefined) continue;
    const button = cell.querySelector("button");
    button.querySelector("small")?.remove();
    const text = (key === "mean" && few) || (isFiltered && "all columns");
    if (text) button.append(element("small", { text }));
  }
}

/** Shows the filters that the board has something for, and those that are set, which are to be seen whatever they do. */
function offerFilters(table) {
  for (const [names, items] of [[ROWS, writtenRows(table)], [COLUMNS, headings(table)]]) {
    for (const name of names) {
      const there = new Set(items.map(({ dataset }) => dataset[name]));
      const inputs = [...controls.querySelectorAll(`[name="${name}"]`)];
      for (const input of inputs) input.closest("label").hidden = !there.has(input.value) && !input.checked;
      const seen = inputs.filter((input) => !input.closest("label").hidden);
      if (inputs.length > 0) inputs[0].closest("fieldset").hidden = seen.length < 2 && !seen.some(({ checked }) => checked);
    }
  }
}

/** The chosen order; without one that of ranks, of another metric than the board's its best mean first. */
function sortingOf(metric) {
  const best = data.metrics[metric].maximise ? "descending" : "ascending";
  return sorting ?? (metric ? { name: meanColumn(), direction: best } : null);
}

/** The name of the column of means. */
function meanColumn() {
  return headings(chosenBoard().querySelector("table")).find(({ dataset }) => dataset.key === "mean").dataset.name;
}

/** Draws the views that are open. */
function drawViews() {
  const board = chosenBoard();
  for (const [id, draw] of Object.entries(VIEWS)) if (document.getElementById(id).open) draw(board, chosenMetric());
  writeAddress();
}

/** Says in words what is shown. */
function describe(table) {
  const set = setControls();
  const [rows, columns] = [writtenRows(table), headings(table).filter((cell) => cell.dataset.dataset !== undefined)];
  const seenOf = (items) => items.filter((item) => !item.hidden).length;
  const recorded = columns.filter((cell) => !unrecorded.has(cell));
  const [shown, all] = [seenOf(rows) * seenOf(columns), rows.length * recorded.length];
  const counts = `${seenOf(rows)} of ${rows.length} rows, ${seenOf(columns)} of ${columns.length} columns`;
  const metric = data.metrics[chosenMetric()];
  const said = [
    shown < all
      ? `${counts} · filters hide ${all - shown} of ${all} scores; ranks and means are those of the whole board.`
      : recorded.length < columns.length
        ? `${counts}.`
        : `${counts} · all ${all} scores are shown.`,
  ];
  const means = averaged.get(table.closest(".board"));
  if (chosenMetric() && recorded.length < columns.length) {
    const title = metric.title[0].toUpperCase() + metric.title.slice(1);
    said.push(`${title} is recorded in ${recorded.length} of ${columns.length} columns, which alone are shown.`);
  }
  if (chosenMetric() && means) {
    const better = metric.maximise ? "best first" : "the smallest, which is best, first";
    const few = means < columns.filter(({ dataset }) => dataset.seeds).length;
    const over = few ? `over the ${means === 1 ? "column" : `${means} columns`} in which more than half of the runs have recorded it` : "of the runs that count";
    said.push(`Means of ${metric.title} are made here, ${over}, ${better}; ranks and tests are of ${data.metrics[0].title} alone.`);
  }
  document.getElementById("shown").textContent = said.join(" ");
  const hides = set.filter(([name]) => !["criterion", "metric", "search"].includes(name));
  document.getElementById("active").textContent = hides.length ? `(${hides.length} set)` : "";
  document.getElementById("reset").hidden = set.length === 0 && sorting === null;
  const nothing = document.getElementById("nothing");
  nothing.hidden = shown > 0;
  const search = controls.elements.search.value.trim();
  const why = search ? `No method of this board whose name holds “${search}”` : "No score";
  nothing.textContent = recorded.length ? `${why} passes the filters. “Show all” takes them away.` : `No run of this board has recorded ${metric.title}.`;
}

/** The board that the controls choose. Protocols that a bagging does not have cannot be chosen. */
function chosenBoard() {
  const { bagging, protocol, criterion } = controls.elements;
  const found = boards.filter(
    ({ dataset }) =>
      dataset.bagging === bagging.value && (dataset.criterion === criterion.value || dataset.any !== undefined),
  );
  for (const option of protocol.options) {
    option.disabled = !found.some(({ dataset }) => dataset.protocol === option.value);
  }
  if (protocol.selectedOptions[0]?.disabled !== false) protocol.value = found[0].dataset.protocol;
  return found.find(({ dataset }) => dataset.protocol === protocol.value);
}

/** The place of the chosen metric in `data.metrics`. */
function chosenMetric() {
  return controls.elements.metric.selectedIndex;
}

/** Names and values of the controls that differ from what the page begins with. */
function setControls() {
  const { criterion, bagging, protocol, configuration, metric } = controls.elements;
  const usual = new Map([["search", ""], ["criterion", criteria()[0].value]]);
  for (const select of [bagging, protocol, configuration, metric]) usual.set(select.name, select.options[0].value);
  const set = [...new FormData(controls)].filter(([name, value]) => name !== "column" && usual.get(name) !== value);
  const columns = columnChoices();
  if (columns.some((each) => each.checked !== each.defaultChecked)) {
    set.push(["columns", columns.filter((each) => each.checked).map(({ value }) => value).join("|")]);
  }
  return set;
}

function criteria() {
  return [...controls.querySelectorAll("[name=criterion]")];
}

function columnChoices() {
  return [...controls.querySelectorAll("[name=column]")];
}

// ---- the address --------------------------------------------------------------------------------------------------

/** Writes what is shown into the address, so that it can be passed on and survives a reload. */
function writeAddress() {
  const state = new URLSearchParams(setControls());
  if (sorting) state.set("sort", `${sorting.direction} ${sorting.name}`);
  const open = Object.keys(VIEWS).filter((id) => document.getElementById(id).open);
  if (open.length) state.set("open", open.join("|"));
  for (const [name, id] of Object.entries(LISTS)) {
    const list = document.getElementById(id);
    if (list.value && list.closest("details").open) state.set(name, list.value);
  }
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
    if (input.name === "column") input.checked = state.has("columns") ? columnsOf(state).includes(input.value) : input.defaultChecked;
    else if (input.type === "search") input.value = values[0] ?? "";
    else if (input.type === "checkbox" || input.type === "radio") input.checked ||= values.includes(input.value);
    else if ([...input.options].some(({ value }) => value === values[0])) input.value = values[0];
  }
  const open = (state.get("open") ?? "").split("|");
  for (const id of Object.keys(VIEWS)) document.getElementById(id).open = open.includes(id);
  for (const [name, id] of Object.entries(LISTS)) {
    const list = document.getElementById(id);
    list.replaceChildren();
    list.dataset.wanted = state.get(name) ?? "";
  }
  const [, direction, name] = (state.get("sort") ?? "").match(/^(ascending|descending) (.+)$/s) ?? [];
  sorting = name === undefined ? null : { name, direction };
}

function columnsOf(state) {
  return state.get("columns").split("|");
}

// ---- what is done -------------------------------------------------------------------------------------------------

/** What is shown of the board, as CSV that says which board it is. */
function asCsv() {
  const board = chosenBoard();
  const { criterion, bagging, protocol } = board.dataset;
  const [names, ...rows] = seen(board.querySelector("table"));
  const { name } = data.metrics[chosenMetric()];
  const lines = rows.map((row) => [criterion, bagging, protocol, name, ...row]);
  return toCsv([["criterion", "bagging", "protocol", "metric", ...names], ...lines]);
}

function download() {
  const { criterion, metric } = controls.elements;
  const address = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  element("a", { href: address, download: `llpbench-${criterion.value}-${metric.value}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Copies a text and says so, or that the browser does not let it. */
async function copy(text, what, instead) {
  const said = document.getElementById("shown");
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = `${what} copied.`;
  } catch {
    said.textContent = `This browser does not let the page copy. ${instead}`;
  }
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
  document.getElementById("copy").addEventListener("click", () => copy(asCsv(), "The table", "Download it as CSV."));
  document.getElementById("copy-link").addEventListener("click", () =>
    copy(location.href, "The link to this view", "The link to this view stands in the address bar."),
  );
  document.getElementById("reset").addEventListener("click", showAll);
  for (const id of Object.keys(VIEWS)) document.getElementById(id).addEventListener("toggle", drawViews);
  document.getElementById("views").addEventListener("change", drawViews);
  window.addEventListener("hashchange", () => {
    if (location.hash && !location.hash.includes("=")) return openTarget(); // a link to a section
    readAddress();
    render();
  });
  for (const board of boards) {
    const table = board.querySelector("table");
    table.tHead.addEventListener("click", (event) => {
      const cell = event.target.closest("button")?.closest("th");
      if (!cell) return;
      sorting = nextSorting(cell);
      order(table, sortingOf(chosenMetric()));
      describe(table);
      drawViews();
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

/** Builds the chosen table from the data: every text of it enters the page as text. */
function showTable() {
  const { value } = document.querySelector("#find select");
  const chosen = data.tables.find(({ name }) => name === value);
  const place = document.getElementById("table");
  if (!chosen) return place.replaceChildren();
  const { title, caption, heads, numeric, rows, bold, notes } = chosen;
  const heading = (text, index) =>
    element(
      "th",
      { scope: "col", "data-name": text, className: numeric[index] ? "number" : "" },
      element("button", { type: "button", text }),
    );
  const cell = (lines, index, isBold) => {
    const [first, ...more] = lines.split("\n");
    const further = more.flatMap((line) => [" ", element("span", { className: "further", text: line })]);
    const made = element("td", { className: isBold ? "best" : "", text: first });
    made.append(...further);
    if (numeric[index]) made.dataset.value = first.replaceAll(",", "").replace("−", "-").match(/[-+]?\d+(\.\d+)?/)?.[0] ?? "";
    return made;
  };
  const line = (fields, row) =>
    element("tr", {}, ...fields.map((lines, index) => cell(lines, index, bold[row].includes(index))));
  const head = element("thead", {}, element("tr", {}, ...heads.map(heading)));
  const table = element("table", { className: "plain" }, head, element("tbody", {}, ...rows.map(line)));
  sortable(table);
  place.replaceChildren(
    element("h3", { text: title }),
    element("p", { className: "explained", text: caption }),
    element("div", { className: "scroll", role: "region", "aria-label": title, tabindex: "0" }, table),
    ...Object.entries(notes).map(([what, lines]) =>
      element("details", { className: "notes" }, element("summary", { text: `${what} (${lines.length})` }), element("ul", {}, ...lines.map((text) => element("li", { text })))),
    ),
  );
}

/** Lets a click on a heading sort a table. */
function sortable(table) {
  table.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.closest("th");
    if (cell) order(table, nextSorting(cell));
  });
}

/** Opens the view or the table that an address names. */
function openTarget() {
  const name = decodeURIComponent(location.hash.slice(1));
  const target = document.getElementById(name);
  if (target?.matches("details")) target.open = true;
  const list = document.querySelector("#find select");
  const table = name.startsWith("table-") ? name.slice("table-".length) : "";
  if (!list || ![...list.options].some(({ value }) => value && value === table)) return;
  list.value = table;
  showTable();
  list.scrollIntoView();
}

/** Notes that are closed on the screen are printed open, and closed again. */
const openedForPaper = [];

function closeAfterPrint() {
  document.documentElement.classList.remove("printing");
  for (const details of openedForPaper.splice(0)) details.open = false;
}

/** Shows the plots, one whenever the browser has time. */
async function loadPlots() {
  const idle = window.requestIdleCallback ?? ((done) => setTimeout(done, 50));
  for (const image of document.querySelectorAll("figure img")) {
    showPlot(image);
    await new Promise((done) => idle(done));
  }
}

function showPlot(image) {
  if (!image.src) image.src = `data:image/svg+xml,${encodeURIComponent(data.plots[image.dataset.plot])}`;
}

/** Tables that are wider than a sheet of paper are printed smaller, so that nothing of them is cut off. */
function fitPaper() {
  document.querySelectorAll("figure img").forEach(showPlot);
  document.documentElement.classList.add("printing");
  for (const details of document.querySelectorAll("details.notes:not([open])")) {
    details.open = true;
    openedForPaper.push(details);
  }
  const sheet = 1020; // CSS pixels of A4 across, without its margins
  for (const table of document.querySelectorAll(".scroll > table")) {
    if (table.offsetParent) table.style.setProperty("--fit", Math.min(1, sheet / table.scrollWidth).toFixed(3));
  }
}

function start() {
  if (boards.length > 0) {
    readAddress();
    if (location.hash && !location.hash.includes("=")) openTarget();
    for (const hidden of [controls, document.querySelector(".toolbar"), document.getElementById("views")]) hidden.hidden = false;
    document.getElementById("filters").open = matchMedia("(min-width: 45rem)").matches;
    render();
    listen();
  }
  const find = document.getElementById("find");
  if (find) {
    find.hidden = false;
    find.querySelector("select").addEventListener("change", showTable);
    if (location.hash.startsWith("#table-")) openTarget();
  }
  document.querySelectorAll("#which table.plain").forEach(sortable);
  window.addEventListener("beforeprint", fitPaper);
  window.addEventListener("afterprint", closeAfterPrint);
  document.documentElement.dataset.ready = "";
  loadPlots();
}

loaded.then(start);
