"""``dsgen lsp``: the language server that editors start."""

import argparse
import sys

from dsgen.errors import MissingToolError

_LIBRARIES = ("pygls", "lsprotocol", "cattrs", "attrs", "attr")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "--tcp",
        type=_address,
        metavar="HOST:PORT",
        help="wait there for one editor (default: speak over standard input and output)",
    )
    parser.add_argument("--stdio", action="store_true", help="the default; some editors always say it")


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT; write 127.0.0.1:2087")
    return host.strip("[]"), int(port)


def run(args: argparse.Namespace) -> int:
    """Serves one editor; the exit code is the protocol's."""
    try:
        from dsgen.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise MissingToolError.at(
            f"the language server needs {error.name}, which is not installed for {sys.executable}",
            help="pip install 'dsgen[lsp]'",
        ) from None
    if args.tcp:
        print("listening on {}:{}".format(*args.tcp), file=sys.stderr, flush=True)
    return serve(args.tcp)
