// The live view: events of the server fill the episodes while the drive goes on.
const PER_STAGE = { start: Int32Array, arm: Int8Array, correct: Int8Array };

function followLive(data, episodes, replay) {
  const { player, ask } = replay;
  const byKey = new Map();
  player.following = true;
  const button = byId("follow");
  button.addEventListener("click", () => {
    player.following = true;
    if (player.playing) player.pause();
    player.select(episodes.length - 1, Infinity);
  });

  const take = (message) => {
    const key = `${message.drive}|${message.episode}`;
    if (!byKey.has(key)) {
      for (const episode of episodes) episode.running = false;
      const label = `${message.drive}, ${message.episode + 1}`;
      const episode = new Episode({ number: message.episode, seed: message.seed, layout: message.layout, label, complete: false });
      episode.running = true;
      byKey.set(key, episode);
      episodes.push(episode);
    }
    const episode = byKey.get(key);
    const stages = {};
    for (const [name, values] of Object.entries(message.stages)) {
      stages[name] = new (PER_STAGE[name] || Float32Array)(values.map((value) => (value === null ? NaN : value)));
    }
    const poses = {};
    for (const [name, values] of Object.entries(message.poses)) poses[name] = new Float32Array(values);
    if (message.layout.length) episode.layout = message.layout;
    episode.addPoses(poses);
    episode.extend(message.rewards, message.costs, stages, message.reasons, message.events);
    if (message.ended) {
      episode.complete = true;
      episode.running = false;
    }
  };

  const source = new EventSource("events");
  source.addEventListener("rows", (event) => {
    take(JSON.parse(event.data));
    listEpisodes(episodes);
    player.planned = data.scenery ? data.scenery.max_steps : 0;
    button.hidden = player.following;
    if (player.following && episodes.length) player.select(episodes.length - 1, Infinity);
    else ask();
  });
  source.addEventListener("lead", (event) => {
    const told = JSON.parse(event.data);
    showLead({ title: data.title, verdict: told.verdict, banner: [] });
    if (told.scenery && !data.scenery) {
      data.scenery = told.scenery;
      player.stepSeconds = told.scenery.step_seconds;
      replay.see(told.scenery);
      showLegend(data, byId("legend"));
    }
  });
  source.addEventListener("end", (event) => {
    source.close();
    player.planned = 0;
    player.following = false;
    button.hidden = true;
    const told = JSON.parse(event.data);
    showLead({ title: data.title, verdict: told.verdict, banner: told.banner });
    ask();
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) return;
    byId("banner").replaceChildren(element("p", {}, "The connection to the drive is lost; trying again."));
  });
  source.addEventListener("open", () => byId("banner").replaceChildren());
}
