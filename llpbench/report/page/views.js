// What stands beside the leaderboard: other metrics in its places, the seeds of a dataset, and two rows side by side.

/** The scores that the page was written with, by cell, while another metric stands in their place. */
const writtenScores = new WeakMap();

/** Keys of columns that go by the metric of the boards, whatever metric is shown. */
const BY_BOARD = new Set(["rank", "interval", "tie", "floor", "mean_rank", "gap", "wins"]);

/** Rows of a view: more could not be read. */
const MOST_ROWS = 60;

/** Digits of a metric, as text. */
function digitsOf(metric) {
  return data.metrics[metric].unit ? 2 : 4;
}

// ---- the metric ---------------------------------------------------------------------------------------------------

/** Headings of columns in which no run has recorded the metric that is shown. */
const unrecorded = new WeakSet();

/** By board: of how many columns its means are made; of the board's own Python has made them. */
const averaged = new WeakMap();

/** Puts a metric, by its place in `data.metrics`, in the scores of a board; its own as Python has written it. */
function measure(board, metric) {
  if (Number(board.dataset.metric ?? 0) === metric) return;
  board.dataset.metric = metric;
  const table = board.querySelector("table");
  const { title, unit } = data.metrics[metric];
  const cells = headings(table);
  const [mean] = cells.filter(({ dataset }) => dataset.key === "mean");
  mean.dataset.shown = metric ? `mean ${title}` : mean.dataset.name;
  mean.querySelector("button").textContent = metric ? `mean ${title} ${unit}`.trim() : mean.dataset.name;
  const places = cells.flatMap((cell, place) => (cell.dataset.dataset === undefined ? [] : [place]));
  const rows = writtenRows(table);
  const counting = new Map();
  const found = new Map(rows.map((row) => [row, new Map()]));
  for (const place of places) {
    const buttons = rows.map((row) => [row, row.cells[place].querySelector("button.score")]);
    for (const [row, button] of buttons) {
      const values = metric && button ? valuesOf(button, board.dataset.criterion, metric) : new Map();
      found.get(row).set(place, values);
      if (button) putScore(row.cells[place], button, metric ? summarised([...values.values()]) : null, metric);
    }
    if (metric && rows.every((row) => found.get(row).get(place).size === 0)) unrecorded.add(cells[place]);
    else unrecorded.delete(cells[place]);
    counting.set(place, metric ? countingSeeds(cells[place], buttons, (row) => found.get(row).get(place)) : []);
  }
  averaged.set(board, [...counting.values()].filter((seeds) => seeds.length).length);
  for (const row of rows) {
    const whole = row.cells[mean.cellIndex];
    putScore(whole, whole, metric ? meanOver(cells, counting, found.get(row)) : null, metric);
  }
}

/** Of the seeds of a column that count, those of which more than half of the runs have recorded the metric. */
function countingSeeds(cell, buttons, valuesOfRow) {
  const ran = buttons.flatMap(([row, button]) => runsOf(button).map((run) => [row, data.runs.seed[run]]));
  return (cell.dataset.seeds ?? "").split(" ").filter(Boolean).map(Number).filter((seed) => {
    const own = ran.filter(([, other]) => other === seed);
    return 2 * own.filter(([row]) => valuesOfRow(row).has(seed)).length > own.length;
  });
}

/** The mean over datasets of the mean over their columns, of the runs that count; null if one lacks the metric. */
function meanOver(cells, counting, found) {
  const datasets = new Map();
  for (const [place, seeds] of counting) {
    if (seeds.length === 0) continue;
    const values = seeds.map((seed) => found.get(place).get(seed));
    if (values.includes(undefined)) return null;
    const { dataset } = cells[place].dataset;
    datasets.set(dataset, [...(datasets.get(dataset) ?? []), summarised(values).mean]);
  }
  const means = [...datasets.values()].map((values) => summarised(values).mean);
  return means.length ? { mean: summarised(means).mean, std: null, n: "" } : null;
}

/** Writes a summary in a place of a score, or what stood there first. */
function putScore(cell, holder, summary, metric) {
  if (!writtenScores.has(cell)) writtenScores.set(cell, [[...holder.childNodes], cell.dataset.values]);
  const [nodes, values] = writtenScores.get(cell);
  if (!metric) {
    holder.replaceChildren(...nodes);
    cell.dataset.values = values;
    return;
  }
  const digits = digitsOf(metric);
  const parts = [summary ? shown(summary.mean, digits) : NOTHING];
  if (summary?.n) {
    parts.push(" ", element("span", { className: "spread", text: `± ${shown(summary.std, digits)} (${summary.n})` }));
  }
  holder.replaceChildren(...parts, ...nodes.filter((node) => node.className === "lack").flatMap((node) => [" ", node.cloneNode(true)]));
  cell.dataset.values = JSON.stringify(summary ? [summary.mean, summary.std, summary.n || null].map(rounded) : [null, null, null]);
}

function rounded(value) {
  return typeof value === "number" ? Number(value.toFixed(6)) : value;
}

// ---- strips -------------------------------------------------------------------------------------------------------

/** Dots, a bar at their mean and a line of its uncertainty, with an arrow at each end of the strip that it goes beyond. */
function strip({ values, mean, ends, zero, label }, [low, high]) {
  const at = (value) => `${((100 * (value - low)) / (high - low)).toFixed(2)}%`;
  const made = element("svg", { className: "strip", role: "img", "aria-label": label });
  const rule = (className, from, to, top, bottom) =>
    made.append(element("line", { className, x1: at(from), x2: at(to), y1: top, y2: bottom }));
  if (zero) rule("zero", 0, 0, 0, 22);
  if (ends) rule("ends", Math.max(ends[0], low), Math.min(ends[1], high), 11, 11);
  const arrow = (x, tip) =>
    made.append(element("svg", { x, class: "cut", overflow: "visible" }, element("path", { d: `M${-tip} 6L0 11L${-tip} 16Z` })));
  if (ends && ends[0] < low) arrow("0%", -6);
  if (ends && ends[1] > high) arrow("100%", 6);
  for (const value of values) made.append(element("circle", { cx: at(value), cy: 11, r: 2.5 }));
  if (mean !== null) rule("mean", mean, mean, 4, 18);
  return made;
}

/** What all strips of a view share: from the least to the largest of some numbers, with a little room. */
function span(numbers) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const room = 0.04 * (high - low) || 0.5;
  return [low - room, high + room];
}

/** The ends of a scale, as a heading of its strips. */
function axis(text, [low, high], digits) {
  const ends = [low, high].map((end) => element("span", { text: shown(end, digits) }));
  return element("th", { scope: "col" }, element("span", { text }), element("span", { className: "axis" }, ...ends));
}

/** The rows and columns of the board that are seen. */
function seenOf(board) {
  const table = board.querySelector("table");
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const columns = headings(table).filter((cell) => cell.dataset.dataset !== undefined && !cell.hidden);
  return { rows, columns };
}

function scoreAt(row, column) {
  return row.cells[column.cellIndex].querySelector("button.score");
}

// ---- the seeds of a dataset ---------------------------------------------------------------------------------------

/** One strip a row and bag size, of the dataset that is chosen. */
function showDots(board, metric) {
  const { rows, columns } = seenOf(board);
  const chosen = offer(document.getElementById("dots-dataset"), new Set(columns.map(({ dataset }) => dataset.dataset)));
  const own = columns.filter(({ dataset }) => dataset.dataset === chosen);
  const drawn = rows.slice(0, MOST_ROWS).map((row) => [
    row,
    own.map((column) => [...valuesOf(scoreAt(row, column), board.dataset.criterion, metric).values()]),
  ]);
  const kept = drawn.filter(([, columns]) => columns.some((values) => values.length));
  const numbers = kept.flatMap(([, columns]) => columns.flat());
  const place = document.querySelector("#dots .scroll");
  if (numbers.length === 0) return place.replaceChildren(element("p", { className: "empty", text: "No run is shown." }));
  const [scale, digits] = [span(numbers), digitsOf(metric)];
  const { title, unit } = data.metrics[metric];
  const heads = own.map(({ dataset }) => axis(`bags of ${dataset.size}`, scale, unit ? 1 : 3));
  const lines = kept.map(([row, columns]) =>
    element("tr", {}, element("th", { scope: "row", text: row.dataset.label }), ...columns.map((values) => {
      const found = summarised(values);
      if (!found) return element("td", { text: NOTHING });
      const label = `${title}: mean ${shown(found.mean, digits)}, standard deviation ${shown(found.std, digits)}; seeds ${values.map((value) => shown(value, digits)).join(", ")}`;
      const ends = found.std === null ? null : [found.mean - found.std, found.mean + found.std];
      return element("td", { className: "drawn" }, strip({ values, mean: found.mean, ends, label }, scale));
    })),
  );
  const more = rows.length > MOST_ROWS ? ` The first ${MOST_ROWS} of ${rows.length} rows.` : "";
  const caption = element("caption", { text: `${chosen}: ${title} of test rows${unit ? ` in ${unit}` : ""}.${more}` });
  const head = element("thead", {}, element("tr", {}, element("th", { scope: "col", text: "method" }), ...heads));
  place.replaceChildren(element("table", { className: "strips" }, caption, head, element("tbody", {}, ...lines)));
}

/** Fills a list with what there is; what was chosen stays, where it is still there. @returns {string} */
function offer(select, names, usual) {
  const before = select.value || select.dataset.wanted;
  if ([...select.options].map(({ value }) => value).join("\n") !== [...names].join("\n")) {
    select.replaceChildren(...[...names].map((name) => element("option", { value: name, text: name })));
  }
  select.value = names.has(before) ? before : names.has(usual) ? usual : [...names][0];
  return select.value;
}

// ---- two rows side by side ----------------------------------------------------------------------------------------

/** A line for each column in which both rows have runs of the same seeds, and one for the mean over datasets. */
function showPair(board, metric) {
  const { columns } = seenOf(board);
  const rows = new Map(writtenRows(board.querySelector("table")).map((row) => [row.dataset.label, row]));
  const [best, ...others] = [...rows.values()].filter((row) => row.matches(".ranked, .floor"));
  const network = others.find(({ dataset }) => dataset.family === "neural networks");
  const usual = [best, network ?? others[0]].map((row) => row?.dataset.label);
  const [first, second] = ["first", "second"].map((name, place) =>
    rows.get(offer(document.getElementById(`pair-${name}`), new Set(rows.keys()), usual[place])),
  );
  const lines = columns.flatMap((column) => difference(board, first, second, column, metric));
  const said = document.getElementById("pair-said");
  const place = document.querySelector("#pair .scroll");
  const { title, unit } = data.metrics[metric];
  const [digits, points] = [digitsOf(metric), unit ? "points" : ""];
  if (lines.length === 0) {
    said.textContent = "These two share no run of those that are shown.";
    return place.replaceChildren();
  }
  const byDataset = new Map();
  for (const { dataset, mean } of lines) byDataset.set(dataset, [...(byDataset.get(dataset) ?? []), mean]);
  const means = [...byDataset.values()].map((values) => summarised(values).mean);
  const whole = { ...summarised(means), values: means, dataset: "mean over datasets", size: "", n: means.length };
  whole.ends = interval(whole);
  const number = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
  const text = ({ mean, ends }) => `${number(mean)}${ends ? ` [${ends.map(number).join(", ")}]` : ""}`;
  const better = data.metrics[metric].maximise ? "more is better" : "less is better";
  const known = whole.ends ? `, 95 % interval ${whole.ends.map(number).join(" to ")}` : "";
  said.textContent = `${first.dataset.label} minus ${second.dataset.label}: ${number(whole.mean)} ${points} of ${title} (${better})${known}, over ${means.length} ${means.length === 1 ? "dataset" : "datasets"}.`;
  const every = [...lines, whole];
  const ends = every.flatMap((line) => [...line.values, 0]);
  const reach = span(ends);
  const scale = [-1, 1].map((sign) => sign * Math.max(...reach.map(Math.abs)));
  const made = every.map((line) => {
    const label = `Difference ${text(line)}; ${line.values.map(number).join(", ")}`;
    const drawn = strip({ values: line.values, mean: line.mean, ends: line.ends, zero: true, label }, scale);
    const cell = ([name, value]) => element("td", { className: "number", "data-label": name, text: String(value) });
    return element(
      "tr",
      { className: line === whole ? "whole" : "" },
      element("th", { scope: "row", text: line.dataset }),
      ...[["bags", line.size], ["difference", text(line)]].map(cell),
      element("td", { className: "drawn" }, drawn),
      ...[[first.dataset.label, shown(line.first, digits)], [second.dataset.label, shown(line.second, digits)], ["pairs", line.n]].map(cell),
    );
  });
  const heading = (name) => element("th", { scope: "col", text: name, className: name === "dataset" ? "" : "number" });
  const sides = data.metrics[metric].maximise ? "← second is better · first is better →" : "← first is better · second is better →";
  const head = element(
    "tr",
    {},
    ...["dataset", "bags", "difference"].map(heading),
    axis(sides, scale, unit ? 1 : 3),
    ...[first.dataset.label, second.dataset.label, "pairs"].map(heading),
  );
  place.replaceChildren(element("table", { className: "strips" }, element("thead", {}, head), element("tbody", {}, ...made)));
}

/** What two rows differ by in a column, seed by seed; nothing where they share no seed. */
function difference(board, first, second, column, metric) {
  const [a, b] = [first, second].map((row) => valuesOf(scoreAt(row, column), board.dataset.criterion, metric));
  const seeds = [...a.keys()].filter((seed) => b.has(seed)).sort((one, other) => one - other);
  if (seeds.length === 0) return [];
  const values = seeds.map((seed) => a.get(seed) - b.get(seed));
  const found = summarised(values);
  const mean = (of) => summarised(seeds.map((seed) => of.get(seed))).mean;
  const { dataset, size } = column.dataset;
  return [{ ...found, values, ends: interval(found), dataset, size, first: mean(a), second: mean(b) }];
}
