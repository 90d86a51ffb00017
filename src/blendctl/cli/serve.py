"""`blendctl serve`: serve a controller to other processes without its code."""

from __future__ import annotations

import os
import secrets
import signal
from contextlib import ExitStack

import click

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.output import echo
from blendctl.cli.world_argument import world_option


@click.command(epilog="Example: BLENDCTL_TOKEN=... blendctl serve PointGoal1/ppo --address tcp://127.0.0.1:7001")
@click.argument("controller", shell_complete=completers.controllers)
@world_option(help="World of a classical controller, or FILE.py:TASK.")
@click.option(
    "--address", default="tcp://127.0.0.1:0", help="tcp://HOST:PORT (port 0 selects a free one) or unix:/PATH."
)
@shared.trust_code_option
@click.option(
    "--metrics", type=click.IntRange(0, 65535), help="Port on this machine for Prometheus metrics; 0 selects one."
)
@click.option("--no-token", is_flag=True, help="Accept every client on this machine; loopback only.")
def serve(controller: str, world: str | None, address: str, metrics: int | None, no_token: bool) -> None:
    """Serve CONTROLLER over a socket until interrupted; a directory that `blend --out` wrote is served frozen.

    The token is read from the environment variable BLENDCTL_TOKEN; without it, a random token is printed. There is no
    encryption: outside a trusted network use a tunnel.
    """
    from blendctl.blender.prometheus import prometheus_text
    from blendctl.blender.served_blend import ServedBlend, is_blend_dir
    from blendctl.cli.metrics_server import metrics_server
    from blendctl.controllers.resolve import TOKEN_VARIABLE, open_controller
    from blendctl.controllers.server import ControllerServer

    token = "" if no_token else os.environ.get(TOKEN_VARIABLE, "") or secrets.token_urlsafe(24)
    served = ServedBlend(controller) if is_blend_dir(controller) else open_controller(controller, world=world)
    with ControllerServer(served, address, token=token) as server, ExitStack() as stack:
        if metrics is not None:

            def status() -> str:
                blend = served.blender.status() if isinstance(served, ServedBlend) else {}
                return prometheus_text(server.status() | blend)

            echo(f"metrics at {stack.enter_context(metrics_server(status, metrics))}")
        echo(f"serving {controller} at {server.address}")
        if token and not os.environ.get(TOKEN_VARIABLE):
            echo(f"token: {token}  (clients: {TOKEN_VARIABLE}={token})")
        signal.signal(signal.SIGTERM, lambda *_: server.close())
        server.serve_forever()
