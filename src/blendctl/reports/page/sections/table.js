// The table of results: return and cost with their intervals, and all other known figures.
section("table", (host, { rows, note, judged = "" }) => {
  host.setAttribute("aria-label", "Table of results");
  const ranges = { returns: rangeOf(rows, "returns"), costs: rangeOf(rows, "costs") };
  const known = (value) => value !== null && value !== undefined;
  const costs = rows.some((row) => known(row.costs[0]));
  const extras = [
    ["score", "corner score", ([value, low, high]) => signed(value) + (known(low) ? ` (${signed(low)} to ${signed(high)})` : "")],
    ["over_budget", "over budget", ([share, low, high]) => `${Math.round(100 * share)}% (${Math.round(100 * low)} to ${Math.round(100 * high)})`],
    ["share", "who drove", (share) => (share.some(known) ? `${share.map((part) => Math.round(100 * part)).join(" / ")}%` : "")],
    ["switches", "switches", (count) => count.toLocaleString("en")],
    ["correct", "correct", (ratio) => `${fixed(100 * ratio, 1)}%`],
    ["loss", "average loss", number],
    ["bound", "loss bound", number],
  ].filter(([name]) => rows.some((row) => (name === "share" ? row.share.some(known) : known(row[name]))));
  const head = ["", "return", ...(costs ? ["cost"] : [])].map((title) => element("th", { scope: "col" }, title));
  for (const [, title] of extras) head.push(element("th", { scope: "col", class: "wide" }, title));
  const single = extras.filter(([name]) => ["correct", "loss", "bound"].includes(name)).length;
  const above = judged && single ? element("tr", { class: "above" }, element("th", { colspan: head.length - single }), element("th", { colspan: single, scope: "colgroup", class: "wide" }, judged)) : null;
  const lines = rows.map((row) => {
    const name = element("span", { class: "name", title: row.name }, tint(element("i", { class: "dot" }), row.color), row.name);
    const line = element("tr", { class: row.highlighted ? "highlighted" : null });
    line.append(element("td", {}, name, row.label ? element("small", {}, row.label) : null));
    line.append(intervalCell(row, "returns", ranges.returns, 2));
    if (costs) line.append(intervalCell(row, "costs", ranges.costs, 1));
    for (const [key, , text] of extras) line.append(element("td", { class: "wide" }, known(row[key]) ? text(row[key]) : ""));
    return line;
  });
  const table = element("table", {}, element("thead", {}, above, element("tr", {}, ...head)), element("tbody", {}, ...lines));
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table, can be scrolled" }, table);
  host.append(scroll, element("p", { class: "note" }, note));
});

function rangeOf(rows, key) {
  const ends = rows.flatMap((row) => row[key]).filter((value) => value !== null);
  const least = Math.min(...ends);
  return [positive(rows, key) ? Math.max(least, 0) : least, Math.max(...ends)];
}

// Whether a cost is at least 0, as it usually is: its interval then ends there too.
function positive(rows, key) {
  return key === "costs" && rows.every((row) => row.costs[0] === null || row.costs[0] >= 0);
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${fixed(value, 2)}`;
}

// The mean, its interval in numbers, and both drawn on a scale that all rows share.
function intervalCell(row, key, [least, most], places) {
  const [mean, low, high] = row[key];
  const cell = element("td", {}, fixed(mean, places));
  if (low === null) return cell;
  const floor = key === "costs" && mean >= 0 ? Math.max(low, 0) : low;
  const x = (value) => 4 + (112 * (value - least)) / (most - least || 1);
  const line = drawn("line", { x1: x(floor), x2: x(high), y1: 5, y2: 5, "stroke-width": 3, "stroke-linecap": "round", "stroke-opacity": 0.35 });
  const dot = drawn("circle", { cx: x(mean), cy: 5, r: 4 });
  line.style.stroke = dot.style.fill = `var(${colorName(row.color)})`;
  const svg = drawn("svg", { class: "span", viewBox: "0 0 120 10", "aria-hidden": "true" }, line, dot);
  cell.append(element("small", {}, `${fixed(floor, places)} to ${fixed(high, places)}`), svg);
  return cell;
}
