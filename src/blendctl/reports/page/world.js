// The world from above, on a canvas: floor, objects, the path by controller, the robot. Lengths are in metres.
const MARGIN = 0.3;
const INK = [34, 40, 49];
const WHITE = [255, 255, 255];
const STANDING = 2; // layers below this one lie on the floor, under the path
const FLOORS = {
  light: { floor: "#efede8", square: "#faf9f6", lines: "#dedbd4", ink: "#22282f", rim: "#ffffff", shadow: "rgb(34 40 49 / 22%)" },
  dark: { floor: "#1a1e22", square: "#22272d", lines: "#333a42", ink: "#0c0e10", rim: "#f2f0ea", shadow: "rgb(0 0 0 / 45%)" },
};

class WorldView {
  constructor(canvas, scenery) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.scenery = scenery;
    this.theme = "light";
  }

  // Draw the moment `time` (in steps, with a fraction) of an episode.
  draw(episode, time) {
    const { canvas, context } = this;
    const size = fitCanvas(canvas);
    if (!size) return;
    const { wide, high } = size;
    this.colors = FLOORS[this.theme];
    const { x, y, heading } = episode.poses;
    const robot = this.between(episode, time, [x, y, heading]);
    const { middle, half } = this.look(episode, robot);
    this.scale = (0.5 * Math.min(wide, high)) / half;
    context.setTransform(this.scale, 0, 0, -this.scale, 0.5 * wide - middle[0] * this.scale, 0.5 * high + middle[1] * this.scale);
    context.lineJoin = context.lineCap = "round";
    this.floor(middle, (0.5 * Math.max(wide, high)) / this.scale);
    const bodies = this.bodies(episode, time).sort((a, b) => a.kind.layer - b.kind.layer);
    for (const body of bodies) if (body.kind.layer < STANDING) this.body(body);
    this.path(episode, time, robot);
    for (const body of bodies) if (body.kind.layer >= STANDING) this.body(body);
    this.robot(robot, color(episode.arm(Math.ceil(time - 1e-9))), this.costs(episode, time));
  }

  costs(episode, time) {
    const step = Math.floor(time + 1e-9);
    return step > 0 && episode.cost[step] > episode.cost[step - 1];
  }

  // Show the whole square and the whole path; follow a robot that is very far away.
  look(episode, robot) {
    const usual = this.scenery.extents + MARGIN;
    const half = Math.min(Math.max(usual, episode.reach + MARGIN), 2 * usual);
    const room = half - MARGIN;
    const shift = (value) => Math.sign(value) * Math.max(0, Math.abs(value) - room);
    return { middle: [shift(robot.x), shift(robot.y)], half };
  }

  // The pose of three columns, interpolated between two steps.
  between(episode, time, [x, y, turn]) {
    const i = Math.min(Math.floor(time + 1e-9), episode.poseCount - 1);
    const j = Math.min(i + 1, episode.poseCount - 1);
    const share = Math.max(0, time - i);
    return {
      x: x[i] + share * (x[j] - x[i]),
      y: y[i] + share * (y[j] - y[i]),
      turn: turn[i] + share * turnBetween(turn[i], turn[j]),
    };
  }

  // The present pose of every object: of fixed objects from the layout, of others from their columns.
  bodies(episode, time) {
    const { poses } = episode;
    const i = Math.min(Math.floor(time + 1e-9), episode.poseCount - 1);
    const placed = [];
    this.scenery.kinds.forEach((kind, number) => {
      if (kind.goal) {
        placed.push({ kind, x: poses.goal_x[i], y: poses.goal_y[i], turn: 0, lit: false });
        return;
      }
      const still = episode.layout.filter((row) => row[0] === number);
      still.forEach((row, index) => {
        const lit = kind.lit && poses.button[i] === index;
        placed.push({ kind, x: row[1], y: row[2], turn: row[3], lit });
      });
      if (still.length) return;
      for (let index = 0; index < kind.count; index++) {
        const columns = ["x", "y", "turn"].map((part) => poses[`${kind.name}_${index}_${part}`]);
        if (columns[0]) placed.push({ kind, ...this.between(episode, time, columns), lit: false });
      }
    });
    return placed;
  }

  floor(middle, reach) {
    const { context, colors } = this;
    const { extents } = this.scenery;
    context.fillStyle = colors.floor;
    context.fillRect(middle[0] - reach, middle[1] - reach, 2 * reach, 2 * reach);
    context.fillStyle = colors.square;
    this.rounded(0, 0, extents, extents, 0.06);
    context.fill();
    context.strokeStyle = colors.lines;
    context.lineWidth = 1 / this.scale;
    context.beginPath();
    for (let n = Math.ceil(-extents / 0.5); n <= extents / 0.5; n++) {
      if (Math.abs(n * 0.5) >= extents) continue;
      context.moveTo(n * 0.5, -extents);
      context.lineTo(n * 0.5, extents);
      context.moveTo(-extents, n * 0.5);
      context.lineTo(extents, n * 0.5);
    }
    context.globalAlpha = 0.55;
    context.stroke();
    context.globalAlpha = 1;
    this.rounded(0, 0, extents, extents, 0.06);
    context.lineWidth = 1.5 / this.scale;
    context.stroke();
  }

  // The future path is faint, the past one strong, in the colour of the controller that drove; costs are red dots.
  path(episode, time, robot) {
    const { context } = this;
    const { x, y } = episode.poses;
    const now = Math.floor(time + 1e-9);
    const last = episode.shown;
    const draw = (from, to, alpha, width) => {
      context.globalAlpha = alpha;
      context.lineWidth = width / this.scale;
      let step = from;
      while (step < to) {
        const arm = episode.arm(step + 1);
        context.beginPath();
        context.moveTo(x[step], y[step]);
        while (step < to && episode.arm(step + 1) === arm) {
          step++;
          context.lineTo(x[step], y[step]);
        }
        if (step === now && to === now) context.lineTo(robot.x, robot.y);
        context.strokeStyle = color(arm);
        context.stroke();
      }
    };
    const unit = Math.max(1, this.scale / 130);
    draw(now, last, 0.13, 2 * unit);
    draw(0, now, 0.85, 2.6 * unit);
    context.globalAlpha = 0.9;
    context.fillStyle = color("cost");
    for (const step of episode.costly) {
      if (step > now) break;
      this.disc(x[step], y[step], (2.4 * unit) / this.scale);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  disc(x, y, radius) {
    this.context.beginPath();
    this.context.arc(x, y, Math.max(radius, 0), 0, 2 * Math.PI);
  }

  rounded(x, y, halfX, halfY, corner) {
    this.context.beginPath();
    this.context.roundRect(x - halfX, y - halfY, 2 * halfX, 2 * halfY, corner);
  }

  body({ kind, x, y, turn, lit }) {
    const glyph = lit ? kind.glyph : kind.glyph.filter((shape) => !shape.lit_only);
    this.glyph(glyph, { x, y, turn, unit: kind.size, own: kind.color });
  }

  robot({ x, y, turn }, shade, costly) {
    const { context } = this;
    if (costly) {
      this.disc(x, y, 0.26);
      context.fillStyle = color("cost");
      context.globalAlpha = 0.28;
      context.fill();
      context.globalAlpha = 1;
    }
    this.glyph(this.scenery.robot.glyph, { x, y, turn, unit: 1, own: rgb(shade) });
  }

  // Draw the shapes of a robot or an object; see Shape in envs/glyphs.py.
  glyph(shapes, { x, y, turn, unit, own }) {
    const { context, colors } = this;
    const paints = { own, ink: INK, white: WHITE, rim: rgb(colors.rim) };
    for (const shape of shapes) {
      const { points, half, paint, blend = 0, toward = "ink", alpha = 1, grow = 0, corner = 0, outline = 0 } = shape;
      const [shiftX, shiftY] = shape.shift || [0, 0];
      const radius = unit * half[0] + grow;
      context.save();
      context.translate(x + shiftX, y + shiftY);
      context.rotate(turn);
      const [first, second, third] = points.map(([u, v]) => [unit * u, unit * v]);
      if (shape.form === "disc") {
        this.disc(...first, radius);
      } else if (shape.form === "box") {
        this.rounded(...first, radius, unit * half[1] + grow, corner);
      } else {
        context.beginPath();
        context.moveTo(...first);
        context.lineTo(...second);
        if (third) {
          context.lineTo(...third);
          context.closePath();
        }
      }
      // The mark of the lit button has the colour of the text, which stands out in the dark theme too.
      const base = shape.lit_only ? rgb(color("ink")) : paints[paint];
      const style = base ? css(base.map((value, i) => value + blend * (paints[toward][i] - value))) : colors.shadow;
      // A canvas has no soft edges: use a fainter hard edge.
      context.globalAlpha = base ? alpha * (shape.soft ? 0.65 : 1) : 1;
      if (outline) {
        context.lineWidth = outline;
        context.strokeStyle = style;
        context.stroke();
      } else {
        context.fillStyle = style;
        context.fill();
      }
      context.restore();
    }
  }
}

function css([red, green, blue]) {
  return `rgb(${Math.round(red)} ${Math.round(green)} ${Math.round(blue)})`;
}

// The red, green and blue of "#rrggbb".
function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.trim().slice(at, at + 2), 16));
}

function turnBetween(from, to) {
  return Math.atan2(Math.sin(to - from), Math.cos(to - from));
}
