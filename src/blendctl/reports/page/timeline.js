// The timeline: a lane per controller, marks for costs, plots of entries of the observation, and a cursor; a click jumps there.
const LANE = 15;
const GAP = 5;
const COSTS = 16;
const PLOT = 44;
const AXIS = 20;
const LABELS = 112; // least width of the labels
const LINE = 14; // height of a line of a label

class Timeline {
  constructor(canvas, names, entries, onSeek) {
    this.canvas = canvas;
    this.names = names;
    this.entries = entries || [];
    this.onSeek = onSeek;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.seek(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) this.seek(event);
    });
  }

  seek(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - this.left) / (box.width - this.left);
    this.onSeek(Math.round(Math.min(Math.max(share, 0), 1) * this.end));
  }

  // Place the lanes: a label that is too long has several lines, and its lane is higher.
  layout() {
    const wide = this.canvas.clientWidth;
    if (this.wide === wide) return;
    this.wide = wide;
    const context = document.createElement("canvas").getContext("2d");
    context.font = this.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const longest = Math.max(...[...this.names, ...this.entries].map((text) => context.measureText(text).width));
    this.left = wide < 560 ? 0 : Math.ceil(Math.min(Math.max(longest + 14, LABELS), 0.3 * wide));
    let top = 0;
    const place = (text, height) => {
      const lines = this.left ? wrapped(context, text, this.left - 14) : [];
      const lane = { text, lines, top, high: Math.max(height, lines.length * LINE) };
      top += lane.high + GAP;
      return lane;
    };
    this.lanes = this.names.map((name) => place(name, LANE));
    this.costs = place("cost", COSTS);
    this.plots = this.entries.map((name) => place(name, this.left ? PLOT : PLOT + LINE));
    for (const plot of this.plots) plot.high = Math.max(plot.high, this.left ? (plot.lines.length + 2) * LINE : 0);
    this.bottom = top - GAP;
    this.canvas.style.height = `${this.bottom + AXIS + 4}px`;
  }

  label(context, { lines, top, high }, from = 0) {
    context.fillStyle = color("soft");
    const first = from || top + high / 2 - (lines.length * LINE) / 2;
    lines.forEach((text, i) => context.fillText(text, 0, first + (i + 0.5) * LINE + 1));
  }

  // Draw the part that does not depend on the cursor once, and keep it.
  drawLanes(episode, wide, high, ratio) {
    const key = [episode.number, episode.label, episode.steps, wide, high, color("ink"), this.end].join("|");
    if (this.key === key) return;
    this.key = key;
    this.kept = document.createElement("canvas");
    this.kept.width = wide;
    this.kept.height = high;
    const context = this.kept.getContext("2d");
    context.scale(ratio, ratio);
    const { left } = this;
    const unit = (wide / ratio - left) / Math.max(this.end, 1);
    context.font = this.font;
    context.textBaseline = "middle";
    this.lanes.forEach((lane, arm) => {
      context.fillStyle = color("wash");
      context.fillRect(left, lane.top, this.end * unit, lane.high);
      this.label(context, lane);
      context.fillStyle = color(arm);
      for (let step = 1; step <= episode.steps; ) {
        const start = step;
        const drives = episode.arm(step) === arm;
        while (step <= episode.steps && (episode.arm(step) === arm) === drives) step++;
        if (drives) context.fillRect(left + (start - 1) * unit, lane.top, Math.max((step - start) * unit, 0.6), lane.high);
      }
    });
    const { top } = this.costs;
    this.label(context, this.costs);
    context.fillStyle = color("line");
    context.fillRect(left, top + COSTS - 1, this.end * unit, 1);
    context.fillStyle = color("cost");
    for (const step of episode.costly) context.fillRect(left + (step - 1) * unit, top, Math.max(unit, 1), COSTS - 1);
    this.plots.forEach((plot, i) => this.plot(context, plot, episode.entries[i], unit));
    context.fillStyle = color("faint");
    context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const every = niceStep(this.end / (wide / ratio < 560 ? 4 : 8));
    for (let step = 0; step <= this.end; step += every) {
      context.textAlign = step === 0 ? "left" : step + every > this.end && this.end - step < every / 4 ? "right" : "center";
      context.fillText(String(step), left + step * unit, this.bottom + AXIS / 2 + 4);
    }
  }

  // An entry of the observation as a line between its least and its greatest value of the episode.
  plot(context, plot, values, unit) {
    const { left } = this;
    const top = plot.top + plot.high - PLOT;
    this.label(context, plot, left ? plot.top + 1 : 0);
    context.fillStyle = color("wash");
    context.fillRect(left, top, this.end * unit, PLOT);
    plot.values = values;
    if (!values) return;
    const known = Array.from(values).filter(Number.isFinite);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    plot.range = [low, high];
    const y = (value) => top + PLOT - 4 - ((value - low) / (high - low || 1)) * (PLOT - 8);
    if (low < 0 && high > 0) {
      context.fillStyle = color("line");
      context.fillRect(left, y(0), this.end * unit, 1);
    }
    context.beginPath();
    values.forEach((value, step) => {
      if (Number.isFinite(value)) context[step && Number.isFinite(values[step - 1]) ? "lineTo" : "moveTo"](left + step * unit, y(value));
    });
    context.strokeStyle = color("soft");
    context.lineWidth = 1.3;
    context.lineJoin = "round";
    context.stroke();
  }

  // The value of an entry at the cursor, under its label.
  value(context, plot, step) {
    if (!plot.values) return;
    const [low, high] = plot.range;
    const value = number(plot.values[Math.min(step, plot.values.length - 1)]);
    const text = this.left ? value : `${plot.text} ${value} `;
    const line = plot.top + (plot.lines.length + 0.5) * LINE + 2;
    context.font = this.font;
    context.textBaseline = "middle";
    context.fillStyle = color("ink");
    context.fillText(text, 0, line);
    context.fillStyle = color("faint");
    const range = `${number(low)} to ${number(high)}`;
    if (this.left) context.fillText(range, 0, line + LINE);
    else context.fillText(range, context.measureText(text).width, line);
  }

  draw(episode, time, end) {
    const { canvas } = this;
    this.end = Math.max(end, 1);
    this.layout();
    const size = fitCanvas(canvas);
    if (!size) return;
    const { wide, high, ratio } = size;
    this.drawLanes(episode, wide, high, ratio);
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, wide, high);
    context.drawImage(this.kept, 0, 0);
    context.scale(ratio, ratio);
    for (const plot of this.plots) this.value(context, plot, Math.floor(time + 1e-9));
    const x = this.left + (time / this.end) * (wide / ratio - this.left);
    context.fillStyle = color("ink");
    context.fillRect(Math.min(Math.max(x - 1, this.left), wide / ratio - 2), 0, 2, this.bottom);
    context.beginPath();
    context.arc(Math.min(Math.max(x, 4), wide / ratio - 4), this.bottom + 2, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

// Break a text into lines that fit, after a space or a sign such as - or / if there is one, else anywhere.
function wrapped(context, text, room) {
  const fits = (part) => context.measureText(part.trimEnd()).width <= room;
  const lines = [];
  let line = "";
  for (const word of text.match(/[^\s\-_/.:]*[\s\-_/.:]?/g).filter(Boolean)) {
    if (line && !fits(line + word)) {
      lines.push(line);
      line = "";
    }
    for (const letter of word) {
      if (line && !fits(line + letter)) {
        lines.push(line);
        line = "";
      }
      line += letter;
    }
  }
  return [...lines, line].map((part) => part.trim()).filter(Boolean);
}
