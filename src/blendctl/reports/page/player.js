// The player: the current episode and step, and whether it plays; it notifies listeners of changes.
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];

class Player {
  constructor(episodes, stepSeconds) {
    this.episodes = episodes;
    this.period = stepSeconds || null; // control period in seconds, null if it is not known
    this.stepSeconds = stepSeconds || 0.05; // of playback
    this.index = 0;
    this.time = 0; // in steps, with a fraction while it plays
    this.speed = 1;
    this.playing = false;
    this.listeners = [];
  }

  get episode() {
    return this.episodes[this.index];
  }

  get step() {
    return Math.floor(this.time + 1e-9);
  }

  get end() {
    return this.episode ? this.episode.shown : 0;
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  select(index, step = 0) {
    this.index = Math.min(Math.max(index, 0), this.episodes.length - 1);
    this.time = Math.min(Math.max(step, 0), this.end);
    this.changed();
  }

  seek(step) {
    this.time = Math.min(Math.max(Math.round(Number(step)) || 0, 0), this.end);
    this.changed();
  }

  play() {
    if (this.playing || !this.episode) return;
    if (this.time >= this.end) this.time = 0;
    this.playing = true;
    let last = null;
    const tick = (now) => {
      if (!this.playing) return;
      const passed = last === null ? 0 : Math.min(now - last, 250) / 1000;
      last = now;
      this.time = Math.min(this.time + (passed * this.speed) / this.stepSeconds, this.end);
      if (this.time >= this.end) this.playing = false;
      this.changed();
      if (this.playing) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    this.changed();
  }

  pause() {
    this.playing = false;
    this.time = this.step;
    this.changed();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  state() {
    const { episode, step } = this;
    if (!episode) return { episode: null, step: 0, arm: -1, return: 0, cost: 0, playing: false };
    return {
      episode: episode.number,
      step,
      arm: episode.arm(step),
      return: episode.return[step],
      cost: episode.cost[step],
      reason: episode.reasons[episode.stageOf[step]] || "",
      playing: this.playing,
    };
  }
}
