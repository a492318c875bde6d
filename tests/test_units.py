"""Quantities are read exactly and written briefly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsgen.units import GB, GIB, format_bytes, format_count, parse_bytes, parse_count, parse_integer, parse_number


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80GiB", 80 * 2**30),
        ("80GB", 80 * 10**9),
        ("1TiB", 2**40),
        ("2TB", 2 * 10**12),
        ("512MiB", 512 * 2**20),
        ("4KiB", 4096),
        ("1.5 TiB", 3 * 2**39),
        ("80 gib", 80 * 2**30),
        ("80GIB", 80 * 2**30),
        ("80gb", 80 * 10**9),
        ("1_024MiB", 2**30),
        ("1,024 MiB", 2**30),
        ("5e3MB", 5 * GB),
        ("12345", 12345),
        ("12345B", 12345),
        ("0", 0),
        # 79.15 x 2^30 = 84986665369.6: a part of a byte is dropped.
        ("79.15GiB", 84_986_665_369),
        # 0.1 has no exact binary form; decimal arithmetic gives the exact product.
        ("0.1TB", 10**11),
    ],
)
def test_bytes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("80G", "unknown unit 'G'; GiB is"),
        ("80Gb", "unknown unit 'Gb'"),
        ("80Gib", "unknown unit 'Gib'"),
        ("80%", "not a number"),
        ("GiB", "not a number"),
        ("", "not a number"),
        ("12.5", "not a whole number"),
        ("-1GiB", "less than nothing"),
        ("1e30GB", "too large"),
        ("1e400GB", "not a number of a size that occurs"),
        ("1e999999999999999999999B", "not a number of a size that occurs"),
        ("9" * 5000, "not a number"),
        ("1,5GB", "not a number"),
        ("1__0GB", "not a number"),
        ("0x10", "not a number with a unit"),
        ("٨GiB", "not a number"),
        ("80GiB 80GiB", "not a number"),
    ],
)
def test_bytes_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("7B", 7 * 10**9),
        ("7b", 7 * 10**9),
        ("350M", 350 * 10**6),
        ("1.5T", 1_500_000_000_000),
        ("70e9", 70 * 10**9),
        ("8,030,261,248", 8_030_261_248),
        ("8_030_261_248", 8_030_261_248),
        ("6.738415616B", 6_738_415_616),
        ("4K", 4000),
        ("1", 1),
    ],
)
def test_counts(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["7X", "7.5", "7 B B", "1,00", "seven", "1e30", "1.23456789012B"])
def test_counts_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not|unknown|too large"):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "number"), [("2e-5", 2e-5), ("5e8", 5e8), (".5", 0.5), ("1.", 1.0), ("-3", -3.0), ("+1_000", 1000.0)]
)
def test_numbers(text: str, number: float) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["nan", "inf", ".inf", "1e400", "1e-400", "0x10", "1:30", "1e", "--1", "1 2", "2e-5s"])
def test_numbers_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a number|too"):
        parse_number(text)


def test_a_float_is_read_as_python_reads_it() -> None:
    """Not by way of a product that rounds twice."""
    for text in ("0.1", "2e-5", "1e-8", "0.999", "1.7976931348623157e308", "5e-324"):
        assert parse_number(text) == float(text)
    with pytest.raises(ValueError, match="too large"):
        parse_number("1.8e308")
    with pytest.raises(ValueError, match="too small"):
        parse_number("1e-330")


def test_whole_numbers() -> None:
    assert [parse_integer(text) for text in ("8", "010", "1e4", "8.0", "-8")] == [8, 10, 10_000, 8, -8]
    with pytest.raises(ValueError, match="not a whole number"):
        parse_integer("8.5")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_bytes, parse_count, parse_integer, parse_number):
        try:
            parse(text)
        except ValueError as error:
            assert type(error) is ValueError  # noqa: PT017


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (72 * GIB, "72.0 GiB"),
        (int(79.17 * GIB), "79.2 GiB"),
        (int(5.018 * GIB), "5.02 GiB"),
        # Rounding up to the next digit must not add a digit.
        (int(9.996 * GIB), "10.0 GiB"),
        (int(99.96 * GIB), "100 GiB"),
        (1152 * GIB, "1152 GiB"),
        (GIB // 2, "0.500 GiB"),
        (GIB // 20, "51.2 MiB"),
        (2**20, "1.00 MiB"),
        (2**13, "8.00 KiB"),
        (12, "12 B"),
        (0, "0 B"),
        (-3 * GIB, "-3.00 GiB"),
    ],
)
def test_bytes_are_shown_with_three_digits(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (8_030_261_248, "8.03B"),
        (350 * 10**6, "350M"),
        (405_853_388_800, "406B"),
        (1_500_000_000_000, "1.50T"),
        (999_600, "1.00M"),
        (128_256, "128K"),
        (999, "999"),
        (0, "0"),
    ],
)
def test_counts_are_shown_with_three_digits(count: int, text: str) -> None:
    assert format_count(count) == text


@given(st.integers(0, 2**60))
def test_bytes_come_back_within_their_digits(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == pytest.approx(size, rel=0.005, abs=1)
