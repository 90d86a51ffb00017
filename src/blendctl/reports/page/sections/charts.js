// All charts, side by side.
section("charts", (host, charts) => host.append(element("div", { class: "grid" }, ...charts.map(makeChart))));
