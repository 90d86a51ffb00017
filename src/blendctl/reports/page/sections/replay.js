// The replay: the world from above or its pictures, the active controller and the reason, the timeline; on the live page it follows the run.
const REPLAY = `
  <div class="section-head">
    <label class="pick">Episode <select id="episode"></select></label>
  </div>
  <p id="replay-note" hidden></p>
  <div class="stage">
    <div class="view">
      <canvas id="world" role="img" aria-label="The world from above"></canvas>
      <canvas id="picture" role="img" aria-label="Picture of the environment" hidden></canvas>
      <p id="picture-step" class="hint" hidden></p>
      <p id="no-map" hidden></p>
      <ul id="legend" class="legend" aria-label="Legend"></ul>
    </div>
    <div class="transport" role="group" aria-label="Playback">
      <button type="button" id="play" class="primary" aria-label="Play"></button>
      <button type="button" id="back" class="quiet" aria-label="One step back"></button>
      <button type="button" id="forward" class="quiet" aria-label="One step forward"></button>
      <input type="range" id="scrub" min="0" value="0" step="1" aria-label="Step">
      <output id="clock" for="scrub"></output>
      <label class="pick">Speed <select id="speed"></select></label>
      <button type="button" id="follow" class="quiet" hidden>Follow</button>
    </div>
    <div class="timeline">
      <canvas id="timeline" role="img" aria-label="Who drove when; red marks are costs. Click to jump there."></canvas>
    </div>
    <div class="panel" id="panel"></div>
  </div>
  <p class="hint">space: play or pause · ← →: one step, with shift 25 · home, end · [ ]: previous or next episode · click the timeline to jump</p>`;

section("replay", async (host, data, page) => {
  host.insertAdjacentHTML("beforeend", REPLAY);
  host.querySelector(".section-head").prepend(host.querySelector("h2"));
  byId("replay-note").hidden = !data.note;
  setText(byId("replay-note"), data.note);
  const episodes = await readEpisodes(data);
  const player = new Player(episodes, data.step_seconds || (data.scenery || {}).step_seconds);
  setText(byId("no-map"), `${data.no_picture} Decisions, return and cost are shown beside.`.trim());
  const replay = makeReplay(data, player, page);
  replay.show(data.scenery);
  replay.list();
  page.replay = replay;
  if (page.kind === "live") followLive(data, replay);
  player.changed();
});

function makeReplay(data, player, page) {
  const { episodes } = player;
  const panel = new Panel(byId("panel"), page.names, page.objectives);
  const seekByHand = (step) => {
    player.following = false;
    if (player.playing) player.pause();
    player.seek(step);
  };
  const timeline = new Timeline(byId("timeline"), page.names, data.entries, seekByHand);
  const [scrub, clock, pick, speed, play] = ["scrub", "clock", "episode", "speed", "play"].map(byId);
  const pictures = new PictureView(byId("picture"), byId("picture-step"), () => schedule());
  let view = null;
  let scheduled = false;
  let playing = null;

  const render = () => {
    scheduled = false;
    const { episode } = player;
    if (!episode) return;
    const drawable = view !== null && episode.drawable;
    byId("world").hidden = !drawable;
    const pictured = !drawable && episode.pictures !== null;
    byId("picture").hidden = byId("picture-step").hidden = !pictured;
    byId("no-map").hidden = drawable || pictured || page.kind === "live";
    if (pictured) pictures.draw(episode, player.step);
    if (drawable) {
      view.theme = document.documentElement.dataset.theme;
      view.draw(episode, player.time);
    }
    panel.show(episode, player.step);
    timeline.draw(episode, player.time, player.planned || player.end);
    scrub.max = player.end;
    scrub.value = player.step;
    scrub.setAttribute("aria-valuetext", `step ${player.step} of ${player.end}`);
    const seconds = player.period ? ` · ${fixed(player.step * player.period, 1)} s` : "";
    setText(clock, `${player.step} / ${player.end}${seconds}`);
    if (pick.value !== String(player.index)) pick.value = String(player.index);
    if (playing !== player.playing) {
      playing = player.playing;
      play.replaceChildren(icon(playing ? "pause" : "play"));
      play.setAttribute("aria-label", playing ? "Pause" : "Play");
    }
  };
  const schedule = () => {
    if (!scheduled) requestAnimationFrame(render);
    scheduled = true;
  };
  player.onChange(schedule);
  page.onTheme(schedule);
  new ResizeObserver(schedule).observe(byId("replay"));

  play.addEventListener("click", () => player.toggle());
  for (const [id, step] of [["back", -1], ["forward", 1]]) {
    byId(id).replaceChildren(icon(id));
    byId(id).addEventListener("click", () => seekByHand(player.step + step));
  }
  scrub.addEventListener("input", () => seekByHand(Number(scrub.value)));
  pick.addEventListener("change", () => {
    player.following = false;
    player.select(Number(pick.value));
  });
  speed.append(...SPEEDS.map((factor) => element("option", { value: factor }, `${factor}×`)));
  speed.value = "1";
  speed.addEventListener("change", () => (player.speed = Number(speed.value)));
  document.addEventListener("keydown", (event) => onKey(event, player, seekByHand));

  return {
    player,
    schedule,
    list: () => listEpisodes(pick, episodes),
    show: (scenery) => {
      if (scenery) view = new WorldView(byId("world"), scenery);
      showLegend(page.names, scenery);
    },
    jump: (number, step) => {
      if (player.playing) player.pause();
      player.select(episodes.findIndex((episode) => episode.number === number), step);
      byId("replay").scrollIntoView();
      scrub.focus({ preventScroll: true });
    },
  };
}

function listEpisodes(list, episodes) {
  episodes.forEach((episode, index) => {
    const seed = episode.seed === null || episode.seed === undefined ? "" : ` · seed ${episode.seed}`;
    const sums = ` · return ${fixed(episode.return[episode.steps], 1)} · cost ${number(episode.cost[episode.steps])}`;
    const cut = episode.complete || episode.running ? "" : " · incomplete";
    const text = `${episode.label || episode.number + 1}${seed}${sums}${cut}`;
    // In place: replacing the options during a run would close an open list.
    if (index < list.options.length) setText(list.options[index], text);
    else list.append(element("option", { value: index }, text));
  });
}

function showLegend(names, scenery) {
  const items = names.map((name, arm) => element("li", {}, fill(element("i", { class: "swatch line" }), arm), name));
  items.push(element("li", {}, fill(element("i", { class: "dot" }), "cost"), "cost"));
  for (const kind of scenery ? scenery.kinds : []) {
    const swatch = element("i", { class: "swatch" });
    swatch.style.background = `rgb(${kind.color.map(Number).join(" ")})`;
    items.push(element("li", {}, swatch, kind.name.replaceAll("_", " ")));
  }
  byId("legend").replaceChildren(...items);
}

function onKey(event, player, seekByHand) {
  if (event.ctrlKey || event.metaKey || event.altKey || !player.episode) return;
  const inside = event.target.closest ? event.target.closest("button, select, a, input, textarea") : null;
  if (inside && inside.id !== "scrub" && (event.key === " " || inside.tagName !== "BUTTON")) return;
  const far = event.shiftKey ? 25 : 1;
  const actions = {
    " ": () => player.toggle(),
    ArrowLeft: () => seekByHand(player.step - far),
    ArrowRight: () => seekByHand(player.step + far),
    Home: () => seekByHand(0),
    End: () => seekByHand(player.end),
    "[": () => player.select(player.index - 1),
    "]": () => player.select(player.index + 1),
  };
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
}
