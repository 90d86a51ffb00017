// Return against cost: the blend, each controller alone, the mixing line.
section("standing", (host, chart) => host.append(makeScatter(chart)));
