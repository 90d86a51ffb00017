// Warnings about the results.
section("warnings", (host, warnings) => host.append(element("ul", {}, ...warnings.map((text) => element("li", {}, text)))));
