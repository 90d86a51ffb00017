// A picture of the run.
section("figure", (host, figure) => host.append(element("img", { src: figure.source, alt: figure.description })));
