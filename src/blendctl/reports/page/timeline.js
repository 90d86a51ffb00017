// The timeline: a lane per controller, marks for costs, and a cursor; a click jumps there.
const LANE = 15;
const GAP = 5;
const COSTS = 16;
const AXIS = 20;

class Timeline {
  constructor(canvas, names, onSeek) {
    this.canvas = canvas;
    this.names = names;
    this.onSeek = onSeek;
    canvas.style.height = `${names.length * (LANE + GAP) + COSTS + AXIS + 4}px`;
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

  get left() {
    return this.canvas.clientWidth < 560 ? 0 : 112;
  }

  // Draw what does not depend on the cursor once, and keep it.
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
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = "middle";
    this.names.forEach((name, arm) => {
      const top = arm * (LANE + GAP);
      context.fillStyle = color("wash");
      context.fillRect(left, top, this.end * unit, LANE);
      if (left) {
        context.fillStyle = color("soft");
        context.fillText(shortened(context, name, left - 14), 0, top + LANE / 2 + 1);
      }
      context.fillStyle = color(arm);
      for (let step = 1; step <= episode.steps; ) {
        const start = step;
        const drives = episode.arm(step) === arm;
        while (step <= episode.steps && (episode.arm(step) === arm) === drives) step++;
        if (drives) context.fillRect(left + (start - 1) * unit, top, Math.max((step - start) * unit, 0.6), LANE);
      }
    });
    const top = this.names.length * (LANE + GAP);
    if (left) {
      context.fillStyle = color("soft");
      context.fillText("cost", 0, top + COSTS / 2);
    }
    context.fillStyle = color("line");
    context.fillRect(left, top + COSTS - 1, this.end * unit, 1);
    context.fillStyle = color("cost");
    for (const step of episode.costly) context.fillRect(left + (step - 1) * unit, top, Math.max(unit, 1), COSTS - 1);
    context.fillStyle = color("faint");
    context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const every = niceStep(this.end / (wide / ratio < 560 ? 4 : 8));
    for (let step = 0; step <= this.end; step += every) {
      context.textAlign = step === 0 ? "left" : step + every > this.end && this.end - step < every / 4 ? "right" : "center";
      context.fillText(String(step), left + step * unit, top + COSTS + AXIS / 2 + 2);
    }
  }

  draw(episode, time, end) {
    const { canvas } = this;
    this.end = Math.max(end, 1);
    const size = fitCanvas(canvas);
    if (!size) return;
    const { wide, high, ratio } = size;
    this.drawLanes(episode, wide, high, ratio);
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, wide, high);
    context.drawImage(this.kept, 0, 0);
    context.scale(ratio, ratio);
    const x = this.left + (time / this.end) * (wide / ratio - this.left);
    const bottom = this.names.length * (LANE + GAP) + COSTS;
    context.fillStyle = color("ink");
    context.fillRect(Math.min(Math.max(x - 1, this.left), wide / ratio - 2), 0, 2, bottom);
    context.beginPath();
    context.arc(Math.min(Math.max(x, 4), wide / ratio - 4), bottom + 2, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

function shortened(context, text, room) {
  let kept = text;
  while (kept.length > 1 && context.measureText(kept + (kept === text ? "" : "…")).width > room) kept = kept.slice(0, -1);
  return kept === text ? text : `${kept}…`;
}
