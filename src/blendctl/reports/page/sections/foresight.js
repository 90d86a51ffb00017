// Predicted and observed values at each decision: over the run, then over one episode that the reader picks.
section("foresight", (host, { note, charts, episodes }) => {
  host.append(element("p", { class: "note" }, note), element("div", { class: "grid" }, ...charts.map(makeChart)));
  if (!episodes.length) return;
  const pick = element("select", { id: "foresight-episode" }, ...episodes.map(({ number }, i) => element("option", { value: i }, String(number + 1))));
  const shown = element("div", { class: "grid", id: "foresight-charts" });
  const show = () => shown.replaceChildren(...episodes[Number(pick.value)].charts.map(makeChart));
  pick.addEventListener("change", show);
  host.append(element("label", { class: "pick" }, "Episode ", pick), shown);
  show();
});
