// Helpers for all other scripts: sections, elements, numbers, colours, canvases.
const SECTIONS = new Map();

// Register how a section is drawn: render(host element, data, page), which may be asynchronous.
function section(name, render) {
  SECTIONS.set(name, render);
}

const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size === 0 ? "0" : size >= 100 ? value.toFixed(0) : size >= 1e-4 ? Number(value.toPrecision(digits)).toFixed(Math.max(0, Math.min(8, digits - 1 - Math.floor(Math.log10(size))))).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") : value.toExponential(1);
  return text.replace("-", "−");
}

function fixed(value, places) {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : value.toFixed(places).replace("-", "−");
}

// The CSS variable of a colour: the number of an arm, or a word such as "blend".
function colorName(color) {
  return typeof color === "number" ? (color < 0 ? "--faint" : `--arm-${color % 5}`) : `--${color}`;
}

const palette = new Map();
function color(name) {
  const key = colorName(name);
  if (!palette.has(key)) palette.set(key, getComputedStyle(document.documentElement).getPropertyValue(key).trim());
  return palette.get(key);
}

function tint(node, name) {
  node.style.color = `var(${colorName(name)})`;
  return node;
}

function fill(node, name) {
  node.style.background = `var(${colorName(name)})`;
  return node;
}

// Return the word for an objective, and the sign of its values: "-cost" is maximised, but shown as cost.
function inWords(objective) {
  return objective.startsWith("-") ? [objective.slice(1), -1] : [objective, 1];
}

const ICONS = {
  play: "M5 3.2v11.6L15 9z",
  pause: "M4 3h3.5v12H4zM10.500 3H14v12h-3.500z",
  back: "M13 3.500v11L6 9zM4 3.500h1.600v11H4z",
  forward: "M5 3.500v11L12 9zM12.400 3.500H14v11h-1.600z",
  sun: "M9 5.500A3.500 3.500 0 1 1 9 12.500 3.500 3.500 0 0 1 9 5.500zM8.300 1h1.400v2.600H8.300zM8.300 14.400h1.400V17H8.300zM1 8.300h2.600v1.400H1zM14.400 8.300H17v1.400h-2.600z",
  moon: "M15.500 11.300A7 7 0 0 1 6.700 2.500 7 7 0 1 0 15.500 11.300z",
};

function icon(name) {
  return drawn("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, drawn("path", { d: ICONS[name] }));
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Fit a canvas to its size on the screen; return it in device pixels, null if the canvas is not visible.
function fitCanvas(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const wide = Math.round(canvas.clientWidth * ratio);
  const high = Math.round(canvas.clientHeight * ratio);
  if (!wide || !high) return null;
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  return { wide, high, ratio };
}

// Round a distance between ticks up to 1, 2 or 5 times a power of ten.
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-12)));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= rough) return factor * power;
  return 10 * power;
}
