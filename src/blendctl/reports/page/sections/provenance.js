// How the run was made: facts about it, and the cards of its controllers.
section("provenance", (host, { facts, cards }, page) => {
  host.append(factList(facts));
  const boxes = cards.map((card) => {
    const dot = tint(element("i", { class: "dot" }), page.names.indexOf(card.name));
    return element("div", { class: "card" }, element("h3", {}, dot, card.name), factList(card.facts));
  });
  host.append(element("div", { class: "cards" }, ...boxes));
});

function factList(facts) {
  const items = facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, name === "command" ? element("code", {}, value) : value)]);
  return element("dl", {}, ...items);
}
