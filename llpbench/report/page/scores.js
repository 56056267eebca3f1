"use strict";
// What the leaderboard shows, computed from single runs by the rules of ranking.py. Nothing here knows of the page.

/**
 * @typedef {{mean: number, std: number | null, n: number}} Summary  std is null for a single seed
 * @typedef {{dataset: string, size: number, seeds: number[]}} Column
 * @typedef {object} Row
 * @property {string} method
 * @property {string | null} encoder
 * @property {string} pretraining
 * @property {string} configuration
 * @property {boolean} default
 * @property {string} role  "ceiling", "floor", or "" for rows that compete
 * @property {string} label
 * @property {(number | null)[][]} scores  for each column, one run for each of its seeds; null: no run
 * @property {(number | null)[][]} values  the runs' AUC in percent; null: none
 *
 * @typedef {object} Filters
 * @property {Map<string, Set<string>>} chosen  by facet; an empty set lets everything through
 * @property {string} search
 * @property {string} configuration  "all", "default" or "changed"
 * @property {boolean} common  whether only runs count that all compared rows have completed
 *
 * @typedef {object} Line  a row as it is shown
 * @property {Row} row
 * @property {number | null} rank
 * @property {Summary | null} mean  over the shown columns
 * @property {number} lacking  runs that count and that the row has no score of
 * @property {(Summary | null)[]} scores  one for each shown column
 */

const data = JSON.parse(document.getElementById("data").textContent);

const NOTHING = "–";

/** Scores that differ by less are equal: sums of the same numbers in another order. */
const EQUAL = 1e-9;

for (const board of data.boards) {
  for (const row of board.rows) {
    row.scores = row.scores.map((runs, column) => runs || board.columns[column].seeds.map(() => null));
    row.values = row.scores.map((runs) => runs.map((run) => headline(run, board.criterion)));
  }
}

/** The test metrics of a run at the epoch that a criterion chose, in the order of `data.metrics`; none if it failed. */
function tests(run, criterion) {
  return data.tests[data.runs.results[criterion].test[run]] ?? [];
}

/** The AUC of a run, which is the first of its metrics; null if it has none. */
function headline(run, criterion) {
  return run === null ? null : tests(run, criterion)[0] ?? null;
}

/** The value of a run or cell in a column whose values repeat. */
function fact(column, index) {
  return column.values[column.at[index]];
}

/** @returns {Summary | null} mean and sample standard deviation of the numbers among `values` */
function summarise(values) {
  const known = values.filter((value) => value !== null);
  const n = known.length;
  if (n === 0) return null;
  if (known.every((value) => value === known[0])) return { mean: known[0], std: n > 1 ? 0 : null, n };
  const mean = known.reduce((sum, value) => sum + value, 0) / n;
  const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, std: Math.sqrt(squares / (n - 1)), n };
}

/** What lacks of a score: runs that failed, that are missing, and that have no AUC although they succeeded. */
function lacks(row, column) {
  const found = { failed: 0, missing: 0, undefined: 0 };
  row.scores[column].forEach((run, seed) => {
    if (run === null) found.missing += 1;
    else if (fact(data.runs.status, run) !== "ok") found.failed += 1;
    else if (row.values[column][seed] === null) found.undefined += 1;
  });
  return found;
}

/** Whether the filters let a row through. */
function passes(row, filters) {
  const admits = (facet, value) => filters.chosen.get(facet).size === 0 || filters.chosen.get(facet).has(value);
  return (
    row.label.toLowerCase().includes(filters.search.toLowerCase()) &&
    admits("encoder", row.encoder ?? "") &&
    admits("pretraining", row.pretraining) &&
    (filters.configuration === "all" || row.default === (filters.configuration === "default"))
  );
}

/** Whether the filters let a column through. */
function columnPasses(column, filters) {
  const [datasets, sizes] = [filters.chosen.get("dataset"), filters.chosen.get("size")];
  return (!datasets.size || datasets.has(column.dataset)) && (!sizes.size || sizes.has(String(column.size)));
}

/**
 * The seeds of a column that count, as places in `column.seeds`: those that more than half of the compared rows have
 * attempted and one has completed, or, of common cells only, those that all of them have completed.
 */
function countingSeeds(compared, column, seeds, common) {
  const places = [...seeds.keys()];
  return places.filter((seed) => {
    const done = compared.filter((row) => row.values[column][seed] !== null).length;
    if (common || done === 0) return done > 0 && done === compared.length;
    return 2 * compared.filter((row) => row.scores[column][seed] !== null).length > compared.length;
  });
}

/**
 * The mean over columns of a row's scores in the runs that count, if it has them all; its spread is that of the means
 * of single seeds, over the seeds that count in every column.
 * @param {number[][]} counting  seeds that count (as they are named), for each column in which any does
 * @param {Map<number, number>[]} values  the row's AUC by seed, for each of these columns
 * @returns {Summary | null}
 */
function overall(counting, values) {
  const complete = counting.every((seeds, place) => seeds.every((seed) => values[place].has(seed)));
  if (!complete || counting.length === 0) return null;
  const average = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const mean = average(counting.map((seeds, place) => summarise(seeds.map((seed) => values[place].get(seed))).mean));
  const shared = counting[0].filter((seed) => counting.every((seeds) => seeds.includes(seed)));
  const spread = summarise(shared.map((seed) => average(values.map((column) => column.get(seed)))));
  return { mean, std: spread && spread.std, n: shared.length };
}

/**
 * All that the leaderboard shows of a board: columns (as places in `board.columns`), lines in the order of ranks, the
 * bold scores, and which runs count.
 * @param {Filters} filters
 */
function view(board, filters) {
  const columns = [...board.columns.keys()].filter((column) => columnPasses(board.columns[column], filters));
  const rows = board.rows.filter((row) => passes(row, filters));
  const compared = rows.filter((row) => row.role === "");
  const counting = columns.map((column) =>
    countingSeeds(compared, column, board.columns[column].seeds, filters.common),
  );
  const lines = rows.map((row) => line(board, row, columns, counting, filters.common));
  const runs = counting.reduce((sum, seeds) => sum + seeds.length, 0);
  const ranked = lines.filter((each) => each.row.role === "" && runs > 0 && each.lacking === 0);
  for (const each of ranked) {
    each.rank = 1 + ranked.filter((other) => other.mean.mean > each.mean.mean + EQUAL).length;
  }
  return {
    board,
    columns,
    lines: ordered(lines),
    leaders: leaders(lines, columns, counting),
    counting,
    runs,
    compared: compared.length,
  };
}

/** @returns {Line} a row before it is ranked */
function line(board, row, columns, counting, common) {
  const scores = columns.map((column, place) => {
    const values = row.values[column];
    return summarise(common ? counting[place].map((seed) => values[seed]) : values);
  });
  const lacking = columns.reduce(
    (sum, column, place) => sum + counting[place].filter((seed) => row.values[column][seed] === null).length,
    0,
  );
  const used = [...columns.keys()].filter((place) => counting[place].length > 0);
  const mean = overall(
    used.map((place) => counting[place].map((seed) => board.columns[columns[place]].seeds[seed])),
    used.map((place) => {
      const column = columns[place];
      const known = board.columns[column].seeds.map((seed, index) => [seed, row.values[column][index]]);
      return new Map(known.filter(([, value]) => value !== null));
    }),
  );
  return { row, rank: null, mean, lacking, scores };
}

/** @param {Line[]} lines  @returns {Line[]} ceilings, ranked rows best first, rows without a rank, floors */
function ordered(lines) {
  const shownMean = (each) => summarise(each.scores.map((score) => score && score.mean))?.mean ?? -Infinity;
  const byLabel = (a, b) => (a.row.label < b.row.label ? -1 : a.row.label > b.row.label ? 1 : 0);
  // shown means can both be -Infinity, whose difference is not a number
  const best = (a, b) => (shownMean(a) === shownMean(b) ? byLabel(a, b) : shownMean(b) - shownMean(a));
  const compared = lines.filter((each) => each.row.role === "");
  return [
    ...lines.filter((each) => each.row.role === "ceiling").sort(best),
    ...compared.filter((each) => each.rank !== null).sort((a, b) => a.rank - b.rank || byLabel(a, b)),
    ...compared.filter((each) => each.rank === null).sort((a, b) => a.lacking - b.lacking || byLabel(a, b)),
    ...lines.filter((each) => each.row.role === "floor").sort(best),
  ];
}

/** The bold lines of each shown column: the best, ceilings aside, and all within one standard deviation of it. */
function leaders(lines, columns, counting) {
  return columns.map((column, place) => {
    const complete = (each) => counting[place].every((seed) => each.row.values[column][seed] !== null);
    const able = lines.filter((each) => each.row.role !== "ceiling" && each.scores[place] && complete(each));
    if (counting[place].length === 0 || able.length === 0) return new Set();
    const best = able.reduce((a, b) => (b.scores[place].mean > a.scores[place].mean ? b : a)).scores[place];
    if (best.std === null) return new Set();
    return new Set(able.filter((each) => each.scores[place].mean >= best.mean - best.std));
  });
}

/** `85.93` and `± 0.52 (3)`: never a mean without its spread and number of seeds. */
function scoreTexts(summary) {
  return [summary.mean.toFixed(2), `± ${summary.std === null ? NOTHING : summary.std.toFixed(2)} (${summary.n})`];
}
