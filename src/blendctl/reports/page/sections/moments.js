// The costliest moments; a click on one replays it.
section("moments", (host, moments, page) => {
  const list = element("ol");
  for (const moment of moments) {
    const steps = moment.until > moment.step ? `steps ${moment.step} to ${moment.until}` : `step ${moment.step}`;
    const driver = moment.arm < 0 ? "safe action" : page.names[moment.arm];
    const driven = moment.share < 1 ? `${driver} drove ${Math.round(100 * moment.share)}% of it` : `${driver} drove`;
    const place = `Episode ${moment.episode + 1}, ${steps}`;
    const label = `Cost ${number(moment.cost)} in ${place.toLowerCase()}; ${driven}. Jump there.`;
    const small = tint(element("small", {}, driven), moment.arm);
    const button = element("button", { type: "button", "aria-label": label }, element("b", {}, number(moment.cost)), element("span", {}, place), small);
    button.addEventListener("click", () => page.replay.jump(moment.episode, moment.step));
    list.append(element("li", {}, button));
  }
  host.append(list);
});
