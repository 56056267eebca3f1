// The dialog that traces a score to its runs: what they measured, what they were told, and where they ran.

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("origin"));

const NO_COMMAND = "No command of llpbench says this specification: it needs a script of its own.";

/** Opens the dialog on a score, to which the focus goes back when it is closed. */
function showOrigin(button) {
  const runs = runsOf(button);
  const cell = data.runs.cell[runs[0]];
  const board = button.closest("section.board");
  const column = headings(button.closest("table"))[button.parentElement.cellIndex];
  const { dataset, size } = column.dataset;
  document.getElementById("origin-title").textContent =
    `${button.closest("tr").dataset.label} on ${dataset}, bags of ${size}`;
  const score = button.firstChild.textContent.trim() === NOTHING ? "No score" : button.textContent;
  const explained = board.querySelector(".explained").textContent;
  document.getElementById("origin-body").replaceChildren(
    element("p", { text: `${score}: ${data.metrics[chosenMetric()].title} of test rows. ${explained}` }),
    section("Runs", runTable(runs, board.dataset.criterion), ...failures(runs)),
    section("Cost", costTable(runs)),
    section("Run it again", command(cell, runs)),
    section("Method and journal", ...links(cell, button.closest("tr"))),
    section("Origin", nested(origin(runs, cell))),
    section("Specification", nested(specification(cell))),
  );
  dialog.addEventListener("close", () => button.focus(), { once: true });
  dialog.showModal();
  dialog.scrollTop = 0;
}

document.getElementById("close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // the backdrop: everything inside is covered by children
});

function section(title, ...children) {
  return element("section", {}, element("h3", { text: title }), ...children);
}

/** Who made the method, and where its code and these runs can be read. */
function links(cell, row) {
  const { method, cells } = { method: fact(data.cells.spec.method, cell), cells: data.cells };
  const declared = fact(cells.method, cell);
  const code = data.links.methods[method];
  const about = [`${method}, ${row.dataset.family}`, declared.reference].filter(Boolean).join(": ");
  const first = element("p", { text: `${about}. ` });
  if (code) first.append(element("a", { href: encodeURI(code), text: "Its code" }));
  const second = element("p", { text: "In the journal: lines whose cell is " });
  second.append(element("code", { text: cells.id[cell] }));
  if (data.links.journal) second.append(" (", element("a", { href: encodeURI(data.links.journal), text: "journal" }), ")");
  return [first, second];
}

/** One line a run: what its criterion chose, and how that did on the test rows. */
function runTable(runs, criterion) {
  const chosen = data.runs.results[criterion];
  const heads = ["seed", "status", "best epoch", data.criteria[criterion]];
  heads.push(...data.metrics.map(({ title, unit }) => `${title} ${unit}`.trim()));
  const rows = runs.map((run) => {
    const tests = data.tests[chosen.test[run]] ?? [];
    const measured = data.metrics.map((metric, index) => shown(tests[index], metric.unit ? 2 : 4));
    const selected = [shown(chosen.epoch[run]), shown(chosen.validation[run], 4)];
    return [data.runs.seed[run], fact(data.runs.status, run), ...selected, ...measured];
  });
  return grid("Runs", heads, rows);
}

/** One line a run: what it took, in all its parts. */
function costTable(runs) {
  const times = Object.keys(data.runs.times).filter((name) => runs.some((run) => data.runs.times[name][run] !== null));
  const heads = ["seed", "epochs trained", "parameters", "peak memory, MB", ...times.map((name) => `${name}, s`)];
  const rows = runs.map((run) => [
    data.runs.seed[run],
    ...["epochs", "parameters", "memory_mb"].map((name) => shown(data.runs[name][run])),
    ...times.map((name) => shown(data.runs.times[name][run])),
  ]);
  return grid("Cost", heads, rows);
}

function grid(label, heads, rows) {
  const classOf = (text) => (text.length > 24 ? "long" : "");
  const head = element("tr", {}, ...heads.map((text) => element("th", { text, scope: "col", className: classOf(text) })));
  const line = (values) => element("tr", {}, ...values.map((value) => element("td", { text: String(value) })));
  const parts = [element("thead", {}, head), element("tbody", {}, ...rows.map(line))];
  const made = element("table", { className: "runs" }, ...parts);
  return element("div", { className: "scroll", role: "region", "aria-label": label, tabindex: "0" }, made);
}

function failures(runs) {
  const failed = runs.filter((run) => fact(data.runs.status, run) !== "ok");
  return failed.map((run) => {
    const reason = fact(data.runs.reason, run) || "no reason was given";
    return element("p", { className: "lack", text: `Seed ${data.runs.seed[run]}: ${reason}` });
  });
}

/** @returns {Map<string, unknown>} where the runs come from; what they share stands once */
function origin(runs, cell) {
  const columns = {
    "data, hash of the table": (run) => fact(data.runs.fingerprint, run),
    "split and bags, hash": (run) => fact(data.runs.manifest, run),
    hardware: (run) => fact(data.runs.hardware, run),
    code: (run) => fact(data.runs.code, run),
    "hashes of the sources": (run) => fact(data.runs.sources, run),
    "version of the numerics": (run) => fact(data.runs.numerics, run),
    restamped: (run) => fact(data.runs.restamped, run),
    libraries: (run) => fact(data.runs.libraries, run),
    finished: (run) => data.runs.finished[run],
  };
  const found = new Map([["cell", data.cells.id[cell]]]);
  for (const [name, read] of Object.entries(columns)) found.set(name, bySeeds(runs, read));
  return found;
}

/** A value that all runs share, or else each value with the seeds that have it. */
function bySeeds(runs, read) {
  const groups = new Map();
  for (const run of runs) {
    const key = JSON.stringify(read(run) ?? null);
    groups.set(key, [...(groups.get(key) ?? []), data.runs.seed[run]]);
  }
  if (groups.size === 1) return JSON.parse([...groups.keys()][0]);
  const name = (seeds) => `seed${seeds.length === 1 ? "" : "s"} ${seeds.join(", ")}`;
  return new Map([...groups].map(([key, seeds]) => [name(seeds), JSON.parse(key)]));
}

function specification(cell) {
  const spec = new Map();
  for (const [name, column] of Object.entries(data.cells.spec)) spec.set(name, fact(column, cell));
  spec.set("declaration of the method", fact(data.cells.method, cell));
  return spec;
}

/** Names and values, values that are mappings inside. */
function nested(value) {
  if (value === null || value === undefined || value === "") return element("span", { text: NOTHING });
  if (typeof value !== "object" || Array.isArray(value)) {
    return element("span", { text: typeof value === "string" ? value : JSON.stringify(value) });
  }
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  if (entries.length === 0) return element("span", { text: "none" });
  const pairs = entries.map(([name, inner]) =>
    element("div", {}, element("dt", { text: name }), element("dd", {}, nested(inner))),
  );
  return element("dl", {}, ...pairs);
}

/** The shell command that runs these runs again, or that there is none. */
function command(cell, runs) {
  const begun = data.cells.command[cell];
  if (begun === null) return element("p", { text: NO_COMMAND });
  const seeds = runs.map((run) => data.runs.seed[run]); // a single number would say how many
  const text = `${begun} --seeds ${seeds.length === 1 ? `${seeds[0]}-${seeds[0]}` : seeds.join(",")}`;
  return element("pre", { tabindex: "0" }, element("code", { text }));
}
