"""Run the command line as `blendctl` or `python -m blendctl`."""

from blendctl.interrupts import run_interruptibly


def main() -> None:
    """Run the command line; Ctrl-C is handled from here on, so everything else is imported later."""
    run_interruptibly(_run)


def _run() -> None:
    from blendctl.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
