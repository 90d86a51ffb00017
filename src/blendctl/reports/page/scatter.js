// A scatter: single points with intervals in both directions, and lines; all points are named beside them.
const TALL = 300;

function makeScatter(spec) {
  const points = spec.series.filter((line) => line.x.length === 1);
  const xs = spread(spec.series.flatMap((line) => line.x));
  const ys = spread(spec.series.flatMap((line) => line.y));
  const x = (value) => EDGE.left + ((clamped(value, xs) - xs[0]) / (xs[1] - xs[0])) * (WIDE - EDGE.left - EDGE.right);
  const y = (value) => TALL - EDGE.bottom - ((clamped(value, ys) - ys[0]) / (ys[1] - ys[0])) * (TALL - EDGE.top - EDGE.bottom);
  const words = points.map((point) => `${point.name} has ${spec.x} ${number(point.x[0])} and ${spec.y} ${number(point.y[0])}`);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-label": `${spec.y} against ${spec.x}: ${words.join(", ")}.` });
  for (const value of ticks(ys)) {
    svg.append(drawn("line", { class: "axis", x1: EDGE.left, x2: WIDE - EDGE.right, y1: y(value), y2: y(value) }));
    svg.append(drawn("text", { x: EDGE.left - 7, y: y(value) + 4, "text-anchor": "end" }, number(value)));
  }
  for (const value of ticks(xs)) svg.append(drawn("text", { x: x(value), y: TALL - 8, "text-anchor": "middle" }, number(value)));
  svg.append(drawn("text", { x: WIDE - EDGE.right, y: TALL - EDGE.bottom - 6, "text-anchor": "end" }, `${spec.x} →`));
  svg.append(drawn("text", { x: EDGE.left + 4, y: EDGE.top + 10 }, `${spec.y} ↑`));
  for (const line of spec.series) {
    const paint = `var(${colorName(line.color)})`;
    const style = (node, part) => ((node.style[part] = paint), svg.append(node));
    if (line.x.length > 1) {
      const places = line.x.map((at, i) => `${x(at)},${y(line.y[i])}`).join(" ");
      style(drawn("polyline", { points: places, fill: "none", "stroke-width": 1.4, "stroke-dasharray": line.dashed ? "5 4" : "none" }), "stroke");
      continue;
    }
    const [px, py] = [x(line.x[0]), y(line.y[0])];
    const bar = (from, to) => style(drawn("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], "stroke-width": 2, "stroke-opacity": 0.4 }), "stroke");
    if (line.left && line.left[0] !== null) bar([x(line.left[0]), py], [x(line.right[0]), py]);
    if (line.low && line.low[0] !== null) bar([px, y(line.low[0])], [px, y(line.high[0])]);
    if (line.low) style(drawn("circle", { cx: px, cy: py, r: line.color === "blend" ? 5 : 4 }), "fill");
    else style(drawn("circle", { cx: px, cy: py, r: 5, fill: "none", "stroke-width": 1.4 }), "stroke");
  }
  const rows = points.map((point) => element("span", {}, keySign({ ...point, dot: true, hollow: !point.low }), `${point.name}: ${spec.x} ${number(point.x[0])}, ${spec.y} ${number(point.y[0])}`));
  const lines = spec.series.filter((line) => line.x.length > 1).map((line) => element("span", {}, keySign(line), line.name));
  const figure = element("figure", { class: "chart scatter" }, svg, element("div", { class: "keys" }, ...rows, ...lines));
  if (spec.note) figure.append(element("p", {}, spec.note));
  return figure;
}

function spread(values) {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = 0.15 * (high - low) || 1;
  return [low - room, high + room];
}

function clamped(value, [low, high]) {
  return Math.min(Math.max(value, low), high);
}

function ticks([low, high]) {
  const every = niceStep((high - low) / 5);
  const list = [];
  for (let value = Math.ceil(low / every) * every; value <= high; value += every) list.push(Math.abs(value) < 1e-9 * every ? 0 : value);
  return list;
}
