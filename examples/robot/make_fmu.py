"""Make an FMI 3.0 co-simulation FMU of an exported blend, for simulators that import FMUs.

    python examples/robot/cart.py OUT && python examples/robot/make_fmu.py OUT blend.fmu

Inputs are the observation, the feedback of the last control step (objectives as maximised), and `ended`: whether that
step ended an episode. Outputs are the action, the arm and counters. The step size is the control period. At a
communication point, step the FMU first and the plant after it, with the action.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from blendctl.errors import InputError

WRAPPER = Path(__file__).parent / "fmu.c"
SYSTEMS = {"linux": ("linux", "so"), "darwin": ("darwin", "dylib")}
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-pedantic")


def variables(contract: dict) -> list[str]:
    """Return the elements of the variables, in the order of the value references of fmu.c."""
    found: list[tuple[str, dict[str, str]]] = [("Float64", {"name": "time", "causality": "independent"})]
    for kind, causality in (("observation", "input"), ("feedback", "input"), ("action", "output")):
        if kind == "feedback":
            rows = [{"name": one["name"]} for one in contract["objectives"]]
        else:
            rows = contract[kind]["entries"] or [{}] * contract[kind]["size"]
        for index, row in enumerate(rows):
            words = " ".join(str(row[key]) for key in ("name", "unit") if row.get(key))
            found.append(("Float64", {"name": f"{kind}_{index}", "description": words, "causality": causality}))
    found += [
        ("Boolean", {"name": "ended", "description": "the last step ended an episode", "causality": "input"}),
        ("Int32", {"name": "arm", "description": "controller that drives, -1 for none", "causality": "output"}),
        ("Int64", {"name": "switches", "description": "decisions for another controller", "causality": "output"}),
        (
            "Boolean",
            {"name": "drift_alarm", "description": "feedback contradicts its estimates", "causality": "output"},
        ),
    ]
    starts = {"Float64": "0", "Boolean": "false", "Int32": "-1", "Int64": "0"}
    elements = []
    for reference, (kind, attributes) in enumerate(found):
        attributes = {"name": attributes.pop("name"), "valueReference": str(reference), **attributes}
        if attributes["causality"] != "independent":
            attributes |= {"variability": "discrete", "start": starts[kind]}
        if attributes["causality"] == "output":
            attributes["initial"] = "exact"
        elements.append(
            f"<{kind} {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items() if value)}/>"
        )
    return elements


def description(contract: dict, digest: str, period: float) -> str:
    """Return modelDescription.xml."""
    elements = variables(contract)
    outputs = [f'<Output valueReference="{n}"/>' for n, text in enumerate(elements) if 'causality="output"' in text]
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="blend" instantiationToken="{digest}" generationTool="blendctl">
  <CoSimulation modelIdentifier="blend" canGetAndSetFMUState="true" fixedInternalStepSize="{period!r}"/>
  <DefaultExperiment startTime="0" stepSize="{period!r}"/>
  <ModelVariables>
    {_lines(elements)}
  </ModelVariables>
  <ModelStructure>
    {_lines(outputs)}
  </ModelStructure>
</fmiModelDescription>
"""


def build_description(period: float) -> str:
    """Return buildDescription.xml, with which other machines compile the sources."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="blend">
    <SourceFileSet language="C99">
      <SourceFile name="fmu.c"/>
      <SourceFile name="blend.c"/>
      <PreprocessorDefinition name="FMU_PERIOD" value="{period!r}"/>
    </SourceFileSet>
    <Library name="m"/>
  </BuildConfiguration>
</fmiBuildDescription>
"""


def make_fmu(export: Path, target: Path, *, period: float | None = None) -> Path:
    """Write the FMU of a directory with blend.c, blend.h and contract.json; return its path."""
    contract = json.loads((export / "contract.json").read_bytes())
    period = contract["control_period"] if period is None else period
    if period is None:
        raise InputError("the contract has no control period; pass --period SECONDS")
    digest = (export / "blend.c").read_text().partition('BLEND_CONTRACT_DIGEST "')[2][:64]
    system, suffix = SYSTEMS[sys.platform]
    tuple_of_platform = f"{MACHINES[platform.machine().lower()]}-{system}"
    sources = [WRAPPER, export / "blend.c", export / "blend.h"]
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        library = Path(folder) / f"blend.{suffix}"
        command = ["gcc", *FLAGS, f"-DFMU_PERIOD={period!r}", f"-I{export}", *sources[:2], "-o", library, "-lm"]
        subprocess.run(command, check=True)
        archive.writestr("modelDescription.xml", description(contract, digest, period))
        archive.writestr("sources/buildDescription.xml", build_description(period))
        archive.write(export / "contract.json", "resources/contract.json")
        archive.write(library, f"binaries/{tuple_of_platform}/{library.name}")
        for source in sources:
            archive.write(source, f"sources/{source.name}")
    return target


def _lines(elements: list[str]) -> str:
    return "\n    ".join(elements)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=Path, help="directory that `blendctl export --format c` wrote")
    parser.add_argument("fmu", type=Path, help="file to write")
    parser.add_argument("--period", type=float, help="control period (s); default: that of the contract")
    options = parser.parse_args()
    print(f"wrote {make_fmu(options.export, options.fmu, period=options.period)}")


if __name__ == "__main__":
    main()
