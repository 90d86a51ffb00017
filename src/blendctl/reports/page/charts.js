// Charts as SVG: lines, dots or stacked areas; pointer and arrow keys show values.
const WIDE = 420;
const HIGH = 190;
const EDGE = { left: 44, right: 10, top: 8, bottom: 26 };

function makeChart(spec) {
  const scale = scales(spec);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", tabindex: "0", "aria-label": describe(spec) });
  drawAxes(svg, spec, scale);
  drawSeries(svg, spec, scale);
  const figure = element("figure", { class: "chart" }, element("figcaption", {}, spec.title), keys(spec), svg);
  if (spec.note) figure.append(element("p", {}, spec.note));
  addCursor(figure, svg, spec, scale);
  return figure;
}

function scales(spec) {
  const xs = spec.series.flatMap((line) => line.x);
  let ys = spec.series.flatMap((line) => line.y).filter((value) => value !== null);
  for (const line of spec.series) ys = ys.concat((line.low || []).filter((v) => v !== null), (line.high || []).filter((v) => v !== null));
  const log = spec.log && ys.some((value) => value > 0);
  if (log) ys = ys.filter((value) => value > 0);
  let low = spec.low ?? Math.min(...ys);
  let high = spec.high ?? Math.max(...ys);
  if (log) {
    low = Math.log10(Math.max(low, high / 1e6, 1e-12));
    high = Math.log10(high);
  }
  if (!(high > low)) [low, high] = [low - (log ? 0.5 : 1), high + (log ? 0.5 : 1)];
  const room = spec.high === null ? 0.06 * (high - low) : 0;
  const under = spec.low === null ? 0.06 * (high - low) : 0;
  [low, high] = [low - under, high + room];
  let [first, last] = [Math.min(...xs), Math.max(...xs)];
  if (spec.kind === "dots") [first, last] = [first - 0.3, last + 0.3];
  if (first === last) [first, last] = [first - 0.5, last + 0.5];
  const x = (value) => EDGE.left + ((value - first) / (last - first)) * (WIDE - EDGE.left - EDGE.right);
  const plain = (value) => HIGH - EDGE.bottom - (Math.min(Math.max(value, low), high) - low) / (high - low) * (HIGH - EDGE.top - EDGE.bottom);
  const y = (value) => plain(log ? Math.log10(Math.max(value, 1e-12)) : value);
  return { x, y, low, high, first, last, log };
}

function drawAxes(svg, spec, { x, y, low, high, first, last, log }) {
  const ticks = [];
  if (log) {
    const every = Math.max(1, Math.ceil((high - low) / 4));
    for (let power = Math.ceil(low); power <= high; power += every) ticks.push(10 ** power);
    if (ticks.length < 2) ticks.push(10 ** low * 1.05, 10 ** high / 1.05);
  } else {
    const every = niceStep((high - low) / 5);
    for (let value = Math.ceil(low / every) * every; value <= high + 1e-9; value += every) ticks.push(value);
  }
  for (const value of ticks) {
    svg.append(drawn("line", { class: "axis", x1: EDGE.left, x2: WIDE - EDGE.right, y1: y(value), y2: y(value) }));
    svg.append(drawn("text", { x: EDGE.left - 7, y: y(value) + 4, "text-anchor": "end" }, number(value) + spec.unit));
  }
  const every = Math.max(niceStep((last - first) / 5), spec.kind === "dots" ? 1 : 0);
  for (let value = Math.ceil(first / every) * every; value <= last; value += every) {
    const anchor = x(value) > WIDE - 30 ? "end" : "middle";
    svg.append(drawn("text", { x: x(value), y: HIGH - 8, "text-anchor": anchor }, short(value)));
  }
}

function short(value) {
  return value >= 10000 ? `${number(value / 1000)}k` : String(Math.round(value * 1000) / 1000);
}

function drawSeries(svg, spec, { x, y, log }) {
  const shown = (value) => value !== null && (!log || value > 0);
  if (spec.kind === "stack") {
    const base = spec.series[0].x.map(() => 0);
    for (const line of spec.series) {
      const top = line.y.map((value, i) => base[i] + (value || 0));
      const there = line.x.map((at, i) => `${x(at)},${y(top[i])}`);
      const back = line.x.map((at, i) => `${x(at)},${y(base[i])}`).reverse();
      const area = drawn("polygon", { points: [...there, ...back].join(" "), "fill-opacity": "0.85" });
      area.style.fill = `var(${colorName(line.color)})`;
      svg.append(area);
      top.forEach((value, i) => (base[i] = value));
    }
    return;
  }
  for (const line of spec.series) {
    const paint = `var(${colorName(line.color)})`;
    if (line.low) {
      const rows = line.x.map((_, i) => i).filter((i) => shown(line.low[i]) && shown(line.high[i]));
      const there = rows.map((i) => `${x(line.x[i])},${y(line.high[i])}`);
      const back = rows.map((i) => `${x(line.x[i])},${y(line.low[i])}`).reverse();
      const band = drawn("polygon", { points: [...there, ...back].join(" "), "fill-opacity": "0.16" });
      band.style.fill = paint;
      svg.append(band);
    }
    let path = "";
    line.x.forEach((at, i) => {
      if (shown(line.y[i])) path += `${path === "" || !shown(line.y[i - 1] ?? null) ? "M" : "L"}${x(at).toFixed(2)} ${y(line.y[i]).toFixed(2)}`;
    });
    const strong = line.color === "blend";
    const stroke = drawn("path", { d: path, fill: "none", "stroke-width": strong ? 2.2 : 1.6, "stroke-linejoin": "round" });
    stroke.style.stroke = paint;
    if (line.dashed) stroke.setAttribute("stroke-dasharray", "5 4");
    svg.append(stroke);
    if (spec.kind === "dots" && line.x.length <= 40) {
      line.x.forEach((at, i) => {
        if (!shown(line.y[i])) return;
        const dot = drawn("circle", { cx: x(at), cy: y(line.y[i]), r: strong ? 3.4 : 2.6 });
        dot.style.fill = paint;
        svg.append(dot);
      });
    }
  }
}

function keys(spec) {
  const list = element("div", { class: "keys" });
  for (const line of spec.series) {
    list.append(element("span", {}, keySign(line), line.name));
  }
  return list;
}

function keySign(line) {
  if (line.dot) return tint(element("i", { class: line.hollow ? "dot hollow" : "dot" }), line.color);
  const sign = element("i", { class: line.dashed ? "swatch dashed" : "swatch line" });
  return line.dashed ? tint(sign, line.color) : fill(sign, line.color);
}

function describe(spec) {
  const ends = spec.series.map((line) => `${line.name} ends at ${number(line.y[line.y.length - 1])}${spec.unit}`);
  return `${spec.title} by ${spec.x}: ${ends.join(", ")}. Arrow keys show the values.`;
}

function addCursor(figure, svg, spec, scale) {
  const line = drawn("line", { class: "cursor", y1: EDGE.top, y2: HIGH - EDGE.bottom, visibility: "hidden" });
  svg.append(line);
  const tip = element("div", { class: "tip", role: "status", hidden: "" });
  figure.append(tip);
  const places = [...new Set(spec.series.flatMap((each) => each.x))].sort((a, b) => a - b);
  let at = -1;
  const show = (index) => {
    at = Math.min(Math.max(index, 0), places.length - 1);
    const where = places[at];
    const rows = spec.series.map((each) => {
      const i = nearest(each.x, where);
      const text = `${each.name} ${number(each.y[i], 4)}${spec.unit}`;
      return element("span", {}, keySign(each), text);
    });
    tip.replaceChildren(element("b", {}, `${spec.x} ${short(where)}`), ...rows);
    tip.hidden = false;
    const x = scale.x(where);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    line.setAttribute("visibility", "visible");
    const box = svg.getBoundingClientRect();
    const left = (x / WIDE) * box.width;
    const over = left + 14 + tip.offsetWidth > box.width;
    tip.style.left = `${over ? Math.max(0, left - 14 - tip.offsetWidth) : left + 14}px`;
    tip.style.top = `${svg.offsetTop === undefined ? 46 : box.top - figure.getBoundingClientRect().top + 10}px`;
  };
  const hide = () => {
    tip.hidden = true;
    line.setAttribute("visibility", "hidden");
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDE;
    show(nearest(places.map(scale.x), x));
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -places.length, End: places.length };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    show(at < 0 ? places.length - 1 : at + moves[event.key] * (event.shiftKey ? 10 : 1));
  });
}

function nearest(values, wanted) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (Math.abs(values[i] - wanted) < Math.abs(values[best] - wanted)) best = i;
  return best;
}
