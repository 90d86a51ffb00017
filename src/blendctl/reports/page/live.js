// The live page: events of the server add steps to the episodes during the run.
const STAGE_TYPES = { start: Int32Array, arm: Int8Array, correct: Int8Array };

function followLive(data, replay) {
  const { player } = replay;
  const { episodes } = player;
  const byKey = new Map();
  const button = byId("follow");
  let scenery = data.scenery;
  player.following = true;
  button.addEventListener("click", () => {
    player.following = true;
    if (player.playing) player.pause();
    player.select(episodes.length - 1, Infinity);
  });

  const addRows = (message) => {
    const key = `${message.drive}|${message.episode}`;
    if (!byKey.has(key)) {
      for (const episode of episodes) episode.running = false;
      const label = `${message.drive}, ${message.episode + 1}`;
      const episode = new Episode({ number: message.episode, layout: message.layout, label });
      episode.running = true;
      byKey.set(key, episode);
      episodes.push(episode);
    }
    const episode = byKey.get(key);
    const stages = {};
    for (const [name, values] of Object.entries(message.stages)) {
      stages[name] = new (STAGE_TYPES[name] || Float32Array)(values.map((value) => (value === null ? NaN : value)));
    }
    const poses = {};
    for (const [name, values] of Object.entries(message.poses)) poses[name] = new Float32Array(values);
    if (message.layout.length) episode.layout = message.layout;
    episode.addPoses(poses);
    episode.extend(message.rewards, message.costs, stages, message.reasons, message.events);
    if (message.ended) Object.assign(episode, { complete: true, running: false });
  };

  const source = new EventSource("events");
  const on = (name, handle) => source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  on("rows", (message) => {
    addRows(message);
    replay.list();
    player.planned = scenery ? scenery.max_steps : 0;
    button.hidden = player.following;
    if (player.following) player.select(episodes.length - 1, Infinity);
    else replay.schedule();
  });
  on("headline", (message) => {
    showHeadline(message);
    if (message.scenery && !scenery) {
      scenery = message.scenery;
      player.period = player.stepSeconds = scenery.step_seconds;
      replay.show(scenery);
    }
  });
  on("end", (message) => {
    source.close();
    player.planned = 0;
    player.following = false;
    button.hidden = true;
    showHeadline(message);
    replay.schedule();
  });
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) showBanner(["The connection to the run is lost; trying to reconnect."]);
  });
  source.addEventListener("open", () => showBanner([]));
}
