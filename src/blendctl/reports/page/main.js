// Put the page together, and let keyboard, mouse and fingers reach it.
function makeReplay(data, episodes) {
  const player = new Player(episodes, (data.scenery || {}).step_seconds);
  const replay = { player, view: null, theme: "light", ask: null };
  replay.see = (scenery) => {
    replay.view = new WorldView(byId("world"), scenery);
  };
  if (data.scenery) replay.see(data.scenery);
  const panel = new Panel(byId("panel"), data.names, data.objectives);
  const seekByHand = (step) => {
    player.following = false;
    if (player.playing) player.pause();
    player.seek(step);
  };
  const timeline = new Timeline(byId("timeline"), data.names, seekByHand);
  const [scrub, clock, pick, speed, play] = ["scrub", "clock", "episode", "speed", "play"].map(byId);
  let asked = false;
  let playing = null;

  const render = () => {
    asked = false;
    const { episode } = player;
    if (!episode) return;
    const { view } = replay;
    const drawable = view !== null && episode.drawable;
    byId("world").hidden = !drawable;
    byId("no-map").hidden = drawable || data.kind === "live";
    if (drawable) {
      view.theme = replay.theme;
      view.draw(episode, player.time);
    }
    panel.show(episode, player.step);
    timeline.draw(episode, player.time, player.planned || player.end);
    scrub.max = player.end;
    scrub.value = player.step;
    scrub.setAttribute("aria-valuetext", `step ${player.step} of ${player.end}`);
    setText(clock, `${player.step} / ${player.end} · ${fixed(player.step * player.stepSeconds, 1)} s`);
    if (pick.value !== String(player.index)) pick.value = String(player.index);
    if (playing !== player.playing) {
      playing = player.playing;
      play.replaceChildren(icon(playing ? "pause" : "play"));
      play.setAttribute("aria-label", playing ? "Pause" : "Play");
    }
  };
  const ask = () => {
    if (!asked) requestAnimationFrame(render);
    asked = true;
  };
  player.onChange(ask);
  new ResizeObserver(ask).observe(byId("replay"));

  play.addEventListener("click", () => player.toggle());
  byId("back").replaceChildren(icon("back"));
  byId("forward").replaceChildren(icon("forward"));
  byId("back").addEventListener("click", () => seekByHand(player.step - 1));
  byId("forward").addEventListener("click", () => seekByHand(player.step + 1));
  scrub.addEventListener("input", () => seekByHand(Number(scrub.value)));
  pick.addEventListener("change", () => {
    player.following = false;
    player.select(Number(pick.value));
  });
  speed.append(...SPEEDS.map((factor) => element("option", { value: factor }, `${factor}×`)));
  speed.value = "1";
  speed.addEventListener("change", () => (player.speed = Number(speed.value)));
  document.addEventListener("keydown", (event) => onKey(event, player, seekByHand));
  replay.ask = ask;
  return replay;
}

function listEpisodes(episodes) {
  const list = byId("episode");
  episodes.forEach((episode, index) => {
    const seed = episode.seed === null || episode.seed === undefined ? "" : ` · seed ${episode.seed}`;
    const sums = ` · return ${fixed(episode.return[episode.steps], 1)} · cost ${number(episode.cost[episode.steps])}`;
    const cut = episode.complete || episode.running ? "" : " · cut short";
    const words = `${episode.label || episode.number + 1}${seed}${sums}${cut}`;
    // In place: a list that is made anew while a drive goes on would close under the reader's hand.
    if (index < list.options.length) setText(list.options[index], words);
    else list.append(element("option", { value: index }, words));
  });
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

// Light and dark: as the system has it, until the reader chooses.
function handleTheme(onChange) {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const apply = () => {
    const dark = chosen === null ? system.matches : chosen === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    palette.clear();
    byId("theme").replaceChildren(icon(dark ? "sun" : "moon"));
    onChange(dark ? "dark" : "light");
  };
  system.addEventListener("change", apply);
  byId("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  apply();
}

async function start() {
  const data = JSON.parse(byId("data").textContent);
  let replay = null;
  let theme = "light";
  handleTheme((now) => {
    theme = now;
    if (!replay) return;
    replay.theme = now;
    replay.ask();
  });
  showLead(data);
  showTable(data);
  showCharts(data);
  showFigure(data);
  showCautions(data);
  showProvenance(data);
  const episodes = await readEpisodes(data);
  const live = data.kind === "live";
  if (live) setText(byId("kind"), "live");
  if (episodes.length || live) {
    byId("replay").hidden = false;
    byId("replay-note").hidden = !data.replay_note;
    setText(byId("replay-note"), data.replay_note || "");
    replay = makeReplay(data, episodes);
    replay.theme = theme;
    listEpisodes(episodes);
    showLegend(data, byId("legend"));
    showMoments(data, (moment) => {
      const { player } = replay;
      const index = episodes.findIndex((episode) => episode.number === moment.episode);
      if (player.playing) player.pause();
      player.select(index, moment.step);
      byId("replay").scrollIntoView();
      byId("scrub").focus({ preventScroll: true });
    });
    if (live) followLive(data, episodes, replay);
    replay.player.changed();
  }
  showSections();
  const { player } = replay || { player: new Player([], 0.02) };
  window.blendctl = {
    episodes,
    play: () => player.play(),
    pause: () => player.pause(),
    seek: (step) => player.seek(step),
    select: (index) => player.select(index),
    state: () => player.state(),
  };
}

start().catch((error) => {
  byId("banner").replaceChildren(element("p", {}, `This page could not be shown: ${error.message}`));
  throw error;
});
