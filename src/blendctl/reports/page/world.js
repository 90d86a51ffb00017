// The world from above, on a canvas: floor, objects, the path by who drove, the robot. Lengths are in metres.
const MARGIN = 0.3;
const LAYERS = ["hazard", "goal", "button", "vase", "push_box", "gremlin", "pillar"];
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
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const wide = Math.round(canvas.clientWidth * ratio);
    const high = Math.round(canvas.clientHeight * ratio);
    if (!wide || !high) return;
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    this.colors = FLOORS[this.theme];
    const robot = this.between(episode, time);
    const { middle, half } = this.look(episode, robot);
    this.scale = (0.5 * Math.min(wide, high)) / half;
    context.setTransform(this.scale, 0, 0, -this.scale, 0.5 * wide - middle[0] * this.scale, 0.5 * high + middle[1] * this.scale);
    context.lineJoin = context.lineCap = "round";
    this.floor(middle, (0.5 * Math.max(wide, high)) / this.scale);
    const bodies = this.bodies(episode, time).sort((a, b) => LAYERS.indexOf(a.kind.sort) - LAYERS.indexOf(b.kind.sort));
    for (const body of bodies) if (LAYERS.indexOf(body.kind.sort) < 2) this.body(body);
    this.path(episode, time, robot);
    for (const body of bodies) if (LAYERS.indexOf(body.kind.sort) >= 2) this.body(body);
    this.robot(robot, color(episode.arm(Math.ceil(time - 1e-9))), this.costs(episode, time));
  }

  costs(episode, time) {
    const step = Math.floor(time + 1e-9);
    return step > 0 && episode.cost[step] > episode.cost[step - 1];
  }

  // The whole square, and the whole way of the robot; one that goes very far is followed.
  look(episode, robot) {
    const usual = this.scenery.extents + MARGIN;
    const half = Math.min(Math.max(usual, episode.reach + MARGIN), 2 * usual);
    const room = half - MARGIN;
    const shift = (value) => Math.sign(value) * Math.max(0, Math.abs(value) - room);
    return { middle: [shift(robot.x), shift(robot.y)], half };
  }

  between(episode, time) {
    const { poses } = episode;
    const i = Math.min(Math.floor(time + 1e-9), episode.poseCount - 1);
    const j = Math.min(i + 1, episode.poseCount - 1);
    const share = Math.max(0, time - i);
    return {
      x: poses.x[i] + share * (poses.x[j] - poses.x[i]),
      y: poses.y[i] + share * (poses.y[j] - poses.y[i]),
      heading: poses.heading[i] + share * turnBetween(poses.heading[i], poses.heading[j]),
    };
  }

  // Where every object is now: what stands still from the layout, the rest from its columns.
  bodies(episode, time) {
    const { poses } = episode;
    const i = Math.min(Math.floor(time + 1e-9), episode.poseCount - 1);
    const j = Math.min(i + 1, episode.poseCount - 1);
    const share = Math.max(0, time - i);
    const found = [];
    this.scenery.kinds.forEach((kind, number) => {
      if (kind.sort === "goal") {
        found.push({ kind, x: poses.goal_x[i], y: poses.goal_y[i], turn: 0, lit: false });
        return;
      }
      const still = episode.layout.filter((row) => row[0] === number);
      still.forEach((row, index) => {
        const lit = kind.sort === "button" && poses.button[i] === index;
        found.push({ kind, x: row[1], y: row[2], turn: row[3], lit });
      });
      if (still.length) return;
      for (let index = 0; index < kind.count; index++) {
        const label = `${kind.name}_${index}`;
        const x = poses[`${label}_x`];
        const y = poses[`${label}_y`];
        const turn = poses[`${label}_turn`];
        if (!x) continue;
        found.push({
          kind,
          x: x[i] + share * (x[j] - x[i]),
          y: y[i] + share * (y[j] - y[i]),
          turn: turn[i] + share * turnBetween(turn[i], turn[j]),
          lit: false,
        });
      }
    });
    return found;
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

  // What is to come is faint, what has been is strong, in the colour of whoever drove; costs are red beads.
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
    const { context, colors } = this;
    const [r, g, b] = kind.color;
    const shade = (alpha) => `rgb(${r} ${g} ${b} / ${alpha})`;
    const dark = `rgb(${r * 0.62} ${g * 0.62} ${b * 0.62})`;
    const { size } = kind;
    const paint = (style) => {
      context.fillStyle = style;
      context.fill();
    };
    const ring = (radius, width, style) => {
      this.disc(x, y, radius);
      context.lineWidth = width;
      context.strokeStyle = style;
      context.stroke();
    };
    if (kind.sort === "hazard") {
      this.disc(x, y, size);
      paint(shade(0.2));
      ring(size - 0.008, 0.016, shade(0.75));
      this.disc(x, y, 0.55 * size);
      paint(shade(0.2));
      return;
    }
    if (kind.sort === "goal") {
      this.disc(x, y, size);
      paint(shade(0.16));
      ring(size - 0.0125, 0.025, shade(1));
      ring(0.58 * size, 0.018, shade(0.7));
      this.disc(x, y, 0.2 * size);
      paint(shade(1));
      return;
    }
    if (kind.sort === "pillar" || kind.sort === "button") {
      this.disc(x + 0.03, y - 0.04, size);
      paint(colors.shadow);
      this.disc(x, y, size);
      paint(dark);
      this.disc(x, y, (kind.sort === "pillar" ? 0.9 : 0.82) * size);
      paint(shade(1));
      if (lit) ring(1.35 * size, 0.03, getComputedStyle(document.documentElement).getPropertyValue("--ink"));
      return;
    }
    context.save();
    context.translate(x + 0.025, y - 0.035);
    context.rotate(turn);
    this.rounded(0, 0, 1.05 * size, 1.05 * size, 0.03);
    paint(colors.shadow);
    context.restore();
    context.save();
    context.translate(x, y);
    context.rotate(turn);
    if (kind.sort === "push_box") {
      for (const [grow, style] of [[0.012, dark], [0, shade(1)]]) {
        for (const [i, j] of [[1, 1], [-1, 1], [1, -1], [-1, -1]]) {
          this.rounded(i * size, j * size, 0.5 * size + grow, 0.5 * size + grow, 0.02);
          paint(style);
        }
        this.rounded(0, 0, size + grow, size + grow, 0.01);
        paint(style);
      }
      this.rounded(0, 0, 0.62 * size, 0.62 * size, 0.02);
      context.lineWidth = 0.015;
      context.strokeStyle = dark;
      context.stroke();
    } else {
      this.rounded(0, 0, size, size, 0.025);
      paint(dark);
      this.rounded(0, 0, 0.86 * size, 0.86 * size, 0.02);
      paint(shade(1));
      if (kind.sort === "gremlin") {
        for (const side of [-0.38, 0.38]) {
          this.disc(side * size, 0.2 * size, 0.26 * size);
          paint("#ffffff");
          this.disc(side * size, 0.26 * size, 0.12 * size);
          paint("#22282f");
        }
      } else {
        this.disc(0, 0, 0.5 * size);
        paint("rgb(255 255 255 / 50%)");
        this.disc(0, 0, 0.3 * size);
        paint(dark);
      }
    }
    context.restore();
  }

  robot({ x, y, heading }, shade, hurts) {
    const { context, colors } = this;
    if (hurts) {
      this.disc(x, y, 0.26);
      context.fillStyle = color("cost");
      context.globalAlpha = 0.28;
      context.fill();
      context.globalAlpha = 1;
    }
    this.disc(x + 0.02, y - 0.03, 0.13);
    context.fillStyle = colors.shadow;
    context.fill();
    context.save();
    context.translate(x, y);
    context.rotate(heading);
    if (this.scenery.robot === "Point") this.point(shade, colors);
    else this.car(shade, colors);
    context.restore();
  }

  point(shade, colors) {
    const { context } = this;
    for (const [grow, style] of [[0.022, colors.rim], [0, shade]]) {
      context.fillStyle = style;
      this.disc(0, 0, 0.1 + grow);
      context.fill();
      this.rounded(0.1, 0, 0.05 + grow, 0.05 + grow, 0.012 + grow);
      context.fill();
    }
    this.arrow(0.13, -0.01, 0.045);
  }

  car(shade, colors) {
    const { context } = this;
    for (const [grow, style, tyre] of [[0.02, colors.rim, colors.rim], [0, shade, "#3a414b"]]) {
      const box = (along, across, halfAlong, halfAcross, fillStyle) => {
        context.fillStyle = fillStyle;
        this.rounded(along, across, halfAlong + grow, halfAcross + grow, 0.012);
        context.fill();
      };
      box(-0.15, 0, 0.01, 0.1, style);
      box(-0.125, 0, 0.025, 0.01, style);
      box(0.165, 0, 0.01, 0.05, style);
      box(0.13, 0, 0.03, 0.05, style);
      box(-0.1, 0.13, 0.05, 0.025, tyre);
      box(-0.1, -0.13, 0.05, 0.025, tyre);
      box(0, 0, 0.1, 0.1, style);
    }
    this.arrow(0.1, -0.02, 0.05);
  }

  arrow(tip, base, half) {
    const { context } = this;
    context.fillStyle = "#ffffff";
    context.beginPath();
    context.moveTo(tip, 0);
    context.lineTo(base, half);
    context.lineTo(base, -half);
    context.fill();
  }
}

function turnBetween(from, to) {
  return Math.atan2(Math.sin(to - from), Math.cos(to - from));
}
