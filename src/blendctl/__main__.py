"""Run the command line as `blendctl` or `python -m blendctl`."""

import os

from blendctl.interrupts import run_interruptibly


def main() -> None:
    """Run the command line; Ctrl-C is handled from here on, so everything else is imported later."""
    # Our networks are small: a second thread of numpy's BLAS gains nothing and takes a core by waiting actively. numpy
    # reads this when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run_interruptibly(_run)


def _run() -> None:
    from blendctl.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
