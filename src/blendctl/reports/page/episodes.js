// Episodes: columns of numbers, unpacked from the page or received during a run.
const TYPES = { f: Float32Array, i: Int32Array, b: Int8Array };

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The first bytes of all numbers come first, then all second bytes, and so on.
function column(bytes, [kind, start, count]) {
  if (kind === "t") return JSON.parse(new TextDecoder().decode(bytes.subarray(start, start + count)));
  const size = TYPES[kind].BYTES_PER_ELEMENT;
  const sorted = new Uint8Array(count * size);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0; i < count; i++) sorted[i * size + plane] = bytes[start + plane * count + i];
  }
  return new TYPES[kind](sorted.buffer);
}

class Episode {
  constructor(about) {
    Object.assign(this, { number: 0, seed: null, layout: [], complete: false, label: "", pictures: null }, about);
    this.steps = 0;
    this.stages = {}; // by name: a number per stage
    this.poses = {}; // by name: a number per step, the first for the initial state
    this.reasons = [];
    this.events = [];
    this.cost = [0]; // sums, by step
    this.return = [0];
    this.costly = []; // steps that cost
    this.stageOf = [0]; // by step
    this.entries = []; // of the observation: numbers per step, the first for the initial state
    this.poseCount = 0;
    this.reach = 0; // largest distance of the robot from the middle
  }

  // Add steps: rewards and costs by step, stages by name, with the step at which each starts.
  extend(rewards, costs, stages, reasons, events) {
    for (const [name, values] of Object.entries(stages)) this.stages[name] = joined(this.stages[name], values);
    this.reasons.push(...reasons);
    this.events.push(...events);
    for (let i = 0; i < rewards.length; i++) {
      this.steps++;
      this.return.push(this.return[this.steps - 1] + rewards[i]);
      this.cost.push(this.cost[this.steps - 1] + costs[i]);
      if (costs[i] > 0) this.costly.push(this.steps);
    }
    const starts = this.stages.start || [];
    let stage = this.stageOf[this.stageOf.length - 1];
    for (let step = this.stageOf.length; step <= this.steps; step++) {
      while (stage + 1 < starts.length && starts[stage + 1] <= step) stage++;
      this.stageOf.push(stage);
    }
  }

  addPoses(poses) {
    for (const [name, values] of Object.entries(poses)) this.poses[name] = joined(this.poses[name], values);
    const { x, y } = this.poses;
    for (; this.poseCount < (x ? x.length : 0); this.poseCount++) {
      this.reach = Math.max(this.reach, Math.abs(x[this.poseCount]), Math.abs(y[this.poseCount]));
    }
  }

  get drawable() {
    return this.poseCount > 0;
  }

  // Number of steps with both poses and decisions.
  get shown() {
    return this.drawable ? Math.min(this.steps, this.poseCount - 1) : this.steps;
  }

  stage(name, step) {
    const values = this.stages[name];
    return values ? values[this.stageOf[step]] : undefined;
  }

  arm(step) {
    const arm = this.stage("arm", Math.max(step, 1));
    return arm === undefined ? -1 : arm;
  }
}

function joined(old, more) {
  if (!old) return more;
  const all = new old.constructor(old.length + more.length);
  all.set(old);
  all.set(more, old.length);
  return all;
}

async function readEpisodes(data) {
  if (!data.episodes.length) return [];
  const bytes = await unpack(data.blob);
  const columns = {};
  for (const [name, where] of Object.entries(data.columns)) columns[name] = column(bytes, where);
  const poseNames = Object.keys(columns).filter((name) => /^(x|y|heading|button|.+_(x|y|turn))$/.test(name));
  const stageNames = Object.keys(columns).filter((name) => /^(start|arm|correct|bound|loss_\d+|(estimate|ucb)_\d+_\d+)$/.test(name));
  return data.episodes.map((about) => {
    const { steps, stages, stage_at: stageAt, step_at: stepAt, pose_at: poseAt, entry_at: entryAt } = about;
    const part = (names, start, count) => Object.fromEntries(names.map((name) => [name, columns[name].subarray(start, start + count)]));
    const texts = (name) => Array.from(columns[`${name}#`].subarray(stageAt, stageAt + stages), (i) => columns[name][i]);
    const episode = new Episode({ number: about.number, seed: about.seed, layout: about.layout, complete: about.complete, pictures: about.pictures });
    const rewards = columns.reward.subarray(stepAt, stepAt + steps);
    const costs = columns.cost.subarray(stepAt, stepAt + steps);
    episode.extend(rewards, costs, part(stageNames, stageAt, stages), texts("reason"), texts("event"));
    if (poseAt !== null) episode.addPoses(part(poseNames, poseAt, steps + 1));
    if (entryAt !== null) episode.entries = data.entries.map((_, i) => columns[`entry_${i}`].subarray(entryAt, entryAt + steps + 1));
    return episode;
  });
}
