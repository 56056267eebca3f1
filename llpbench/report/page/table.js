// The leaderboard as a table: its columns and rows, their order, and the keys that move in it.

const table = /** @type {HTMLTableElement} */ (document.getElementById("board"));
const [head, body] = [table.tHead, table.tBodies[0]];

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

/**
 * @typedef {object} Field  a column of the table
 * @property {string} key  by which the address names it
 * @property {string} title
 * @property {string} kind  of `WIDTHS`; its class
 * @property {(line: Line) => string | number | null} sort  what rows are sorted by
 * @property {number} [place]  of a score, among the shown columns
 * @property {number} [size]  of its bags
 * @property {boolean} [apart]  whether none of its runs counts
 */

/** The order of the table, by a field's key, with a direction as `aria-sort` has it; null: by rank. */
let sorting = null;

/** What is shown, its fields, and its lines by their table rows. */
let current = null;
let fields = [];
let lineOf = new Map();

/** Characters of the longest spread that is shown: the others are filled up to it, so that means stand in line. */
let spreadWidth = 0;

/** Shows what `view` has found. */
function showTable(found) {
  current = found;
  fields = fieldsOf(found);
  const summaries = found.lines.flatMap((each) => [each.mean, ...each.scores]).filter((summary) => summary);
  spreadWidth = summaries.reduce((width, summary) => Math.max(width, scoreTexts(summary)[1].length), 0);
  table.style.setProperty("--columns", fields.map(({ kind }) => WIDTHS[kind.split(" ")[0]]).join(" "));
  head.replaceChildren(element("tr", { role: "row" }, ...fields.map(headCell)));
  lineOf = new Map(found.lines.map((each) => [lineRow(each), each]));
  showOrder();
}

/** @returns {Field[]} */
function fieldsOf({ board, columns, lines, counting }) {
  const some = (name, usual) => lines.some(({ row }) => row[name] !== usual);
  const described = [
    { key: "encoder", title: "Encoder", kind: "text", needed: true },
    { key: "pretraining", title: "Pretraining", kind: "text", needed: some("pretraining", "none") },
    { key: "configuration", title: "Configuration", kind: "words", needed: some("configuration", "") },
  ];
  return [
    { key: "rank", title: "Rank", kind: "rank", sort: ({ rank }) => rank },
    { key: "method", title: "Method", kind: "method", sort: ({ row }) => row.method },
    ...described
      .filter(({ needed }) => needed)
      .map((field) => ({ ...field, sort: ({ row }) => row[field.key] || null })),
    { key: "mean", title: "Mean AUC", kind: "mean", sort: ({ mean }) => mean && mean.mean },
    ...columns.map((column, place) => {
      const { dataset, size } = board.columns[column];
      return {
        key: `${dataset} ${size}`,
        title: dataset,
        kind: place > 0 && board.columns[columns[place - 1]].dataset === dataset ? "score" : "score first",
        sort: ({ scores }) => scores[place] && scores[place].mean,
        place,
        size,
        apart: counting[place].length === 0,
      };
    }),
  ];
}

// ---- cells --------------------------------------------------------------------------------------------------------

function headCell(field) {
  const button = element("button", { type: "button", "data-key": field.key }, field.title);
  if (field.size !== undefined) button.append(element("small", { text: String(field.size) }));
  if (field.apart) button.append(element("small", { text: "not in the mean" }));
  return element("th", { className: field.kind, role: "columnheader", scope: "col" }, button);
}

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
    const { role } = row;
    made.append(role ? element("span", { className: `badge ${role}`, text: role }) : String(rank ?? NOTHING));
  } else if (field.kind === "mean") {
    made.append(...(mean ? spread(mean) : [NOTHING]));
    if (lacking > 0) {
      made.append(element("span", { className: "lack quiet", text: `lacks ${lacking}/${current.runs}` }));
    }
  } else {
    made.textContent = (field.key === "pretraining" && row.pretraining === "none" ? "" : row[field.key]) || NOTHING;
  }
  return made;
}

/** The name of a row; on a small screen, where only it stays in sight, with what tells it from others of its name. */
function methodCell(row) {
  const made = element("th", { className: "method", role: "rowheader", scope: "row" }, row.method);
  const pretraining = row.pretraining === "none" ? "" : row.pretraining;
  const described = [row.encoder, pretraining, row.configuration].filter(Boolean);
  if (described.length > 0) made.append(element("small", { text: described.join(", "), "aria-hidden": "true" }));
  return made;
}

/** A score is a button that opens its runs. Arrow keys reach it, so that Tab leaves the table after one of them. */
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
  const button = element("button", { type: "button", className: failed ? "score failed" : "score", tabindex: "-1" });
  button.append(...(each.scores[place] ? spread(each.scores[place]) : [failed ? "failed" : NOTHING]));
  for (const [what, number] of failed ? [] : Object.entries(lacking)) {
    if (number > 0) button.append(element("span", { className: "lack", text: `${number}/${runs.length} ${what}` }));
  }
  made.append(button);
  return made;
}

function spread(summary) {
  const [mean, rest] = scoreTexts(summary);
  return [`${mean} `, element("span", { className: "spread", text: rest.padStart(spreadWidth, FIGURE_SPACE) })];
}

// ---- order --------------------------------------------------------------------------------------------------------

/** Puts the rows in order; they are moved, not made again, which is what takes time. */
function showOrder() {
  const field = sorting && fields.find(({ key }) => key === sorting.key);
  const rows = [...lineOf.keys()];
  body.replaceChildren(...(field ? sorted(rows, (row) => field.sort(lineOf.get(row)), sorting.direction) : rows));
  [...head.rows[0].cells].forEach((cell, place) => {
    if (field && fields[place] === field) cell.setAttribute("aria-sort", sorting.direction);
    else cell.removeAttribute("aria-sort");
  });
  const first = body.querySelector("button.score");
  if (first) makeTabStop(first);
}

/** Sorts by a field, the other way round if it already does, and by rank again after that. */
function sortBy(key) {
  const numeric = /^(score|mean)/.test(fields.find((field) => field.key === key).kind);
  const direction = nextDirection(sorting?.key === key ? sorting.direction : null, numeric);
  sorting = direction && { key, direction };
  showOrder();
}

/** Items in the order of their values; what has none comes last in either direction, equal ones stay as they are. */
function sorted(items, valueOf, direction) {
  const sign = direction === "ascending" ? 1 : -1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const pairs = items.map((item) => [valueOf(item), item]);
  pairs.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
  return pairs.map(([, item]) => item);
}

/** The order after another click on a heading: of numbers the largest first, then the other way round, then none. */
function nextDirection(direction, numeric) {
  const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
  return direction === first ? second : direction === second ? null : first;
}

/** Makes a table sortable that the page was written with. Its fields are texts, so numbers are read from them. */
function makeSortable(plain) {
  const rows = plain.tBodies[0];
  const original = [...rows.rows];
  const numberOf = (text) => Number.parseFloat(text.replace(/^</, "").replaceAll(",", "").replace("−", "-"));
  plain.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.closest("th");
    if (!cell) return;
    const numeric = cell.classList.contains("number");
    const direction = nextDirection(cell.getAttribute("aria-sort"), numeric);
    const valueOf = (row) => {
      const text = row.cells[cell.cellIndex].textContent;
      if (text === "" || text.startsWith(NOTHING)) return null;
      return numeric ? numberOf(text) : text;
    };
    for (const other of plain.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    if (direction) cell.setAttribute("aria-sort", direction);
    rows.replaceChildren(...(direction ? sorted(original, valueOf, direction) : original));
  });
}

// ---- keys ---------------------------------------------------------------------------------------------------------

const STEPS = new Map([["ArrowLeft", [0, -1]], ["ArrowRight", [0, 1]], ["ArrowUp", [-1, 0]], ["ArrowDown", [1, 0]]]);

/** Arrow keys, Home and End move from score to score; places without a score are passed over. */
function moveFocus(event) {
  const from = event.target.closest("button.score");
  if (!from) return;
  const row = from.closest("tr");
  const inRow = row.querySelectorAll("button.score");
  let next = { Home: inRow[0], End: inRow[inRow.length - 1] }[event.key];
  const [down, right] = STEPS.get(event.key) ?? [0, 0];
  let [line, place] = [row.sectionRowIndex, from.parentElement.cellIndex];
  while (!next && (down || right) && body.rows[line]?.cells[place]) {
    [line, place] = [line + down, place + right];
    next = body.rows[line]?.cells[place]?.querySelector("button.score");
  }
  if (STEPS.has(event.key) || next) event.preventDefault();
  if (!next) return;
  makeTabStop(next);
  next.focus();
}

/** Of all scores, only this one is reached by Tab. */
function makeTabStop(button) {
  for (const other of body.querySelectorAll("button.score[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
}
