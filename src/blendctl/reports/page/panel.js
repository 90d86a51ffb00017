// Beside the replay: the active controller and the reason, return and cost so far, estimates and losses of every controller.
class Panel {
  constructor(host, names, objectives) {
    this.host = host;
    this.names = names;
    this.objectives = objectives;
    this.who = element("b");
    this.label = element("span", {}, "drives");
    this.reason = element("p", { id: "reason" });
    this.event = element("p", { class: "event" });
    this.card = element("div", { class: "who" }, this.label, this.who, this.reason, this.event);
    this.sums = {};
    const sums = element("div", { class: "sums" });
    for (const name of ["return", "cost", "step"]) {
      this.sums[name] = element("b", { id: `sum-${name}` });
      sums.append(element("div", { class: name }, element("span", {}, name), this.sums[name]));
    }
    host.append(this.card, sums);
    this.blocks = objectives.map((objective, goal) => {
      const [word, sign] = inWords(objective);
      const note = sign > 0 ? "estimate · upper bound" : "estimate · lower bound";
      return { goal, sign, rows: this.block(word, note) };
    });
    this.losses = this.block("loss", `as ${inWords(objectives[0])[0]} · the smallest is chosen`);
  }

  block(title, note) {
    const block = element("div", { class: "index" }, element("h3", {}, title, element("span", {}, note)));
    // One layout for all bars: with two widths, equal values would have unequal lengths.
    const bar = this.names.some((name) => name.length > 13) ? "bar long" : "bar";
    const rows = this.names.map((name, arm) => {
      const zero = element("i", { class: "zero" });
      const span = fill(element("i", { class: "span" }), arm);
      const mean = fill(element("i", { class: "mean" }), arm);
      const value = element("span", { class: "value" });
      const track = element("span", { class: "track", "aria-hidden": "true" }, zero, span, mean);
      const row = element("div", { class: bar }, element("span", { class: "label", title: name }, name), track, value);
      block.append(row);
      return { row, zero, span, mean, value };
    });
    this.host.append(block);
    return rows;
  }

  // Bars keep their scale through an episode, so that moments can be compared.
  measure(episode) {
    if (this.measured === episode && this.stages === episode.reasons.length) return;
    this.measured = episode;
    this.stages = episode.reasons.length;
    for (const block of this.blocks) {
      const all = this.names.flatMap((_, arm) => [`estimate_${arm}_${block.goal}`, `ucb_${arm}_${block.goal}`]);
      block.range = this.range(episode, all, block.sign);
    }
    this.lossRange = this.range(episode, this.names.map((_, arm) => `loss_${arm}`), 1);
  }

  range(episode, names, sign) {
    const values = names.flatMap((name) => Array.from(episode.stages[name] || [])).filter(Number.isFinite);
    values.sort((a, b) => a - b);
    const at = (share) => values[Math.min(Math.floor(share * values.length), values.length - 1)] ?? 0;
    const [low, high] = sign > 0 ? [at(0.05), at(0.9)] : [-at(0.9), -at(0.05)];
    return [Math.min(low, 0), Math.max(high, 1e-9)];
  }

  show(episode, step) {
    this.measure(episode);
    const arm = episode.arm(step);
    const stage = episode.stageOf[step];
    const name = arm >= 0 ? this.names[arm] : episode.reasons.length ? "safe action" : "no decision yet";
    setText(this.who, name);
    setText(this.label, step === 0 ? "starts" : "drives");
    tint(this.card, arm);
    const reason = episode.reasons[stage] || "";
    setText(this.reason, reason.startsWith(`${name}: `) ? reason.slice(name.length + 2) : reason);
    setText(this.event, episode.events[stage] || "");
    setText(this.sums.return, fixed(episode.return[step], 2));
    setText(this.sums.cost, number(episode.cost[step]));
    this.sums.cost.parentElement.classList.toggle("none", !(episode.cost[step] > 0));
    setText(this.sums.step, String(step));
    for (const { goal, sign, rows, range } of this.blocks) {
      rows.forEach((parts, i) => {
        const mean = sign * episode.stage(`estimate_${i}_${goal}`, Math.max(step, 1));
        const best = sign * episode.stage(`ucb_${i}_${goal}`, Math.max(step, 1));
        this.bar(parts, range, mean, best, i === arm);
        this.value(parts.value, number(mean), number(best, 2));
      });
    }
    this.losses.forEach((parts, i) => {
      const loss = episode.stage(`loss_${i}`, Math.max(step, 1));
      this.bar(parts, this.lossRange, loss, 0, i === arm);
      this.value(parts.value, number(loss), null);
    });
  }

  value(node, first, second) {
    const text = second === null ? first : `${first}|${second}`;
    if (node.dataset.text === text) return;
    node.dataset.text = text;
    node.replaceChildren(first, ...(second === null ? [] : [element("i", {}, ` · ${second}`)]));
  }

  bar({ row, zero, span, mean }, [low, high], value, best, chosen) {
    const place = (x) => 100 * Math.min(Math.max((x - low) / (high - low), 0), 1);
    const known = Number.isFinite(value);
    row.classList.toggle("chosen", chosen);
    zero.style.left = `${place(0)}%`;
    span.style.display = mean.style.display = known ? "" : "none";
    if (!known) return;
    const [a, b] = [place(Math.min(value, best)), place(Math.max(value, best))];
    span.style.left = `${a}%`;
    span.style.width = `${Math.max(b - a, 0.5)}%`;
    mean.style.left = `${place(value)}%`;
  }
}
