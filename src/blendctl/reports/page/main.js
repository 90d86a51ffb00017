// Build the page: the headline, then each section by its own script.
function showHeadline({ title, verdict, claims = [], banner = [] }) {
  if (title !== undefined) setText(byId("title"), title);
  setText(byId("verdict"), verdict);
  byId("claims").replaceChildren(...claims.map((text) => element("li", {}, text)));
  showBanner(banner);
}

function showBanner(lines) {
  byId("banner").replaceChildren(...lines.map((text) => element("p", {}, text)));
}

// Follow the system's colour scheme until the reader chooses one; return a function that adds a listener.
function handleTheme() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let chosen = null;
  const apply = () => {
    const dark = chosen === null ? system.matches : chosen === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    palette.clear();
    byId("theme").replaceChildren(icon(dark ? "sun" : "moon"));
    for (const listener of listeners) listener();
  };
  system.addEventListener("change", apply);
  byId("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  apply();
  return (listener) => listeners.push(listener);
}

function addHost({ name, title }) {
  const host = element("section", { id: name });
  if (title) {
    host.setAttribute("aria-labelledby", `${name}-title`);
    host.append(element("h2", { id: `${name}-title` }, title));
    byId("links").append(element("a", { href: `#${name}` }, title));
  }
  document.querySelector("main").append(host);
  return host;
}

async function start() {
  const data = JSON.parse(byId("data").textContent);
  const page = { kind: data.kind, names: data.names, objectives: data.objectives, onTheme: handleTheme(), replay: null };
  if (page.kind === "live") setText(byId("kind"), "live");
  showHeadline(data.headline);
  await Promise.all(data.sections.map((part) => SECTIONS.get(part.name)(addHost(part), part.data, page)));
  const player = page.replay ? page.replay.player : new Player([], 0.02);
  window.blendctl = {
    episodes: player.episodes,
    play: () => player.play(),
    pause: () => player.pause(),
    seek: (step) => player.seek(step),
    select: (index) => player.select(index),
    state: () => player.state(),
  };
}

start().catch((error) => {
  showBanner([`This page could not be shown: ${error.message}`]);
  throw error;
});
