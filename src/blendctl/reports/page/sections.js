// What stands around the replay: verdict, table, moments, warnings, provenance.
function showLead(data) {
  setText(byId("title"), data.title);
  setText(byId("verdict"), data.verdict);
  byId("claims").replaceChildren(...(data.claims || []).map((text) => element("li", {}, text)));
  byId("banner").replaceChildren(...data.banner.map((text) => element("p", {}, text)));
}

function showTable(data) {
  if (!data.table.length) {
    byId("table").hidden = true;
    return;
  }
  const ranges = {};
  for (const what of ["return", "cost"]) {
    const ends = data.table.flatMap((row) => row[what]).filter((value) => value !== null);
    ranges[what] = [Math.min(...ends), Math.max(...ends)];
    if (what === "cost") ranges[what][0] = Math.max(ranges[what][0], 0);
  }
  const known = (name) => data.table.some((row) => row[name] !== null && row[name] !== undefined);
  const extras = [
    ["share", "who drove", (row) => (row.share.every((s) => s === null || s === undefined) ? "" : row.share.map((share) => `${Math.round(100 * share)}`).join(" / ") + "%")],
    ["switches", "switches", (row) => (row.switches === null ? "" : row.switches.toLocaleString("en"))],
    ["correct", "correct", (row) => (row.correct === null ? "" : `${fixed(100 * row.correct, 1)}%`)],
    ["loss", "average loss", (row) => (row.loss === null ? "" : number(row.loss))],
    ["bound", "its bound", (row) => (row.bound === null || row.bound === undefined ? "" : number(row.bound))],
  ].filter(([name]) => (name === "share" ? data.table.some((row) => row.share.some((s) => s !== null && s !== undefined)) : known(name)));
  const head = element("tr", {}, element("th", { scope: "col" }, ""), element("th", { scope: "col" }, "return"), element("th", { scope: "col" }, "cost"));
  for (const [, title] of extras) head.append(element("th", { scope: "col", class: "wide" }, title));
  const body = element("tbody");
  for (const row of data.table) {
    const name = element("span", { class: "name", title: row.name }, tint(element("i", { class: "dot" }), row.color), row.name);
    const cell = element("td", {}, name, row.role && row.role !== "blend" ? element("small", {}, row.role) : null);
    const line = element("tr", { class: row.role === "blend" ? "blend" : null }, cell, spanCell(row, "return", ranges), spanCell(row, "cost", ranges));
    for (const [, , text] of extras) line.append(element("td", { class: "wide" }, text(row)));
    body.append(line);
  }
  const table = element("table", {}, element("thead", {}, head), body);
  const told = data.table_note || "Means per episode with their 95% intervals. Loss: true maximal loss per stage, in scaled units; its bound: what it cannot exceed, on average.";
  byId("table").replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table, can be scrolled" }, table), element("p", { class: "note" }, told));
}

function spanCell(row, what, ranges) {
  const [mean, low, high] = row[what];
  const places = what === "cost" ? 1 : 2;
  const cell = element("td", {}, fixed(mean, places));
  if (low === null || low === undefined) return cell;
  const floor = what === "cost" ? Math.max(low, 0) : low;
  cell.append(element("small", {}, `${fixed(floor, places)} to ${fixed(high, places)}`));
  const [least, most] = ranges[what];
  const x = (value) => 4 + (112 * (value - least)) / (most - least || 1);
  const svg = drawn("svg", { class: "span", viewBox: "0 0 120 10", "aria-hidden": "true" });
  const line = drawn("line", { x1: x(floor), x2: x(high), y1: 5, y2: 5, "stroke-width": 3, "stroke-linecap": "round", "stroke-opacity": 0.35 });
  const dot = drawn("circle", { cx: x(mean), cy: 5, r: 4 });
  line.style.stroke = dot.style.fill = `var(${colorName(row.color)})`;
  svg.append(line, dot);
  cell.append(svg);
  return cell;
}

function showMoments(data, onJump) {
  const list = byId("moments").querySelector("ol");
  byId("moments").hidden = !data.moments.length;
  list.replaceChildren(
    ...data.moments.map((moment) => {
      const span = moment.until > moment.step ? `steps ${moment.step} to ${moment.until}` : `step ${moment.step}`;
      const who = moment.arm < 0 ? "safe action" : data.names[moment.arm];
      const driven = moment.share < 1 ? `${who} drove ${Math.round(100 * moment.share)}% of it` : `${who} drove`;
      const button = element("button", { type: "button" }, element("b", {}, number(moment.cost)), element("span", {}, `Episode ${moment.episode + 1}, ${span}`), tint(element("small", {}, driven), moment.arm));
      button.setAttribute("aria-label", `Cost ${number(moment.cost)} in episode ${moment.episode + 1}, ${span}; ${driven}. Jump there.`);
      button.addEventListener("click", () => onJump(moment));
      return element("li", {}, button);
    }),
  );
}

function showCharts(data) {
  byId("charts").hidden = !data.charts.length;
  byId("charts").querySelector(".grid").replaceChildren(...data.charts.map(makeChart));
}

function showFigure(data) {
  if (!data.figure) return;
  byId("figure").hidden = false;
  byId("figure").append(element("img", { src: data.figure, alt: data.figure_words || "Figure of the run" }));
}

function showCautions(data) {
  byId("cautions").hidden = !data.cautions.length;
  byId("cautions").querySelector("ul").replaceChildren(...data.cautions.map((text) => element("li", {}, text)));
}

function facts(rows) {
  return rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, name === "command" ? element("code", {}, value) : value)]);
}

function showProvenance(data) {
  const { provenance } = data;
  byId("provenance").hidden = !provenance;
  if (!provenance) return;
  byId("provenance").querySelector("dl").replaceChildren(...facts(provenance.facts));
  byId("provenance").querySelector(".cards").replaceChildren(
    ...provenance.cards.map((card) => {
      const arm = data.names.indexOf(card.name);
      const head = element("h3", {}, tint(element("i", { class: "dot" }), arm), card.name);
      return element("div", { class: "card" }, head, element("dl", {}, ...facts(card.facts)));
    }),
  );
}

function showLegend(data, host) {
  const items = data.names.map((name, arm) => element("li", {}, fill(element("i", { class: "swatch line" }), arm), name));
  items.push(element("li", {}, fill(element("i", { class: "dot" }), "cost"), "cost"));
  for (const kind of (data.scenery || { kinds: [] }).kinds) {
    const swatch = element("i", { class: "swatch" });
    swatch.style.background = `rgb(${kind.color.map(Number).join(" ")})`;
    items.push(element("li", {}, swatch, kind.name.replaceAll("_", " ")));
  }
  host.replaceChildren(...items);
}

function showSections() {
  const links = [["replay", "Replay"], ["moments", "Moments"], ["figure", "Figure"], ["charts", "Charts"], ["cautions", "Warnings"], ["provenance", "How it was made"]];
  byId("sections").replaceChildren(...links.filter(([id]) => !byId(id).hidden).map(([id, title]) => element("a", { href: `#${id}` }, title)));
}
