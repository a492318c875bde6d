"""From the bytes of a file to text, with a clear word about what cannot be text."""

import codecs
import sys

from dsgen.documents.document import DocumentError
from dsgen.errors import InputError, Place

# Config files are a few kilobytes. The bound keeps a mistaken argument (a checkpoint, a dataset) from being parsed.
# A quarter of a MiB of nothing but numbers is read in less than a second.
MAX_BYTES = 256 << 10

_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def standard_input(most_bytes: int) -> bytes:
    """What comes by standard input, at most so much of it.

    Raises:
        InputError: whoever started us closed it.
    """
    if sys.stdin is None:
        raise InputError.at("there is no standard input", Place("<stdin>"), "name a file, or pipe one in")
    return sys.stdin.buffer.read(most_bytes)


def decode(data: bytes) -> str:
    """The text of a UTF-8 file, line ends as they are.

    Raises:
        DocumentError: too large, or not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(f"the file is larger than {MAX_BYTES >> 10} KiB: no config is, so it was not read", 0)
    for mark, name in _WIDE_MARKS.items():
        if data.startswith(mark):
            raise DocumentError(f"the file is {name}", 0, help="save it as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start} of the file (0x{data[error.start]:02x}) is not UTF-8"
        raise DocumentError(message, 0, help="save it as UTF-8") from None
