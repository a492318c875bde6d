"""Texts to read: made of tokens, so that about half of them are documents, and mutated from real ones."""

from hypothesis import strategies as st

PLAIN = """{
  // batch
  "train_batch_size": 8,  # eight
  optimizer: {type: AdamW, "params": {"lr": 1e-4, betas: [0.9, 0.999,],}}
  'fp16': {"enabled": true, /* why not */ "loss_scale": 0}
  note: '''
    two
      lines
    '''
}
"""
JSON = '{"a": [1, 2.5, -3e2, "x\\u00e9", null, true, {"b": {}}], "c": {"d": []}}\n'

JSON_TOKENS = [
    *"{}[],:",
    *('"a"', '"b"', '""', '"\\u00e9\\n"', '"\\ud834\\udd1e"', '"\\ud800"', '"\\u12"', '"\\x"', '"a\tb"', '"', "\\"),
    *("0", "-1", "1.0", "5e8", "1E400", "-0.0", "01", "1.", "2.5e-3", "1e10", "12345678901", "-", "9" * 4301),
    *("true", "false", "null", "NaN", "Infinity", "-Infinity", "nul", "True"),
    *(" ", "\n", "\r\n", "\t", "\ufeff", "\x00", "\x0b", "\xa0", "é", "😀"),
]
HJSON_TOKENS = [
    *JSON_TOKENS,
    *("#", "//", "/*", "*/", "/", "*", "# c\n", "// c\n", "/* c */", "'", "'''", "'a'", "'''\n  x\n  y\n'''", "a: 1\n"),
    *("key", "two words", "key :", "key\n:", "a: b, c\n", "\r", "٣", '"\\u+123"', '"\\u 12"', '"\\\'"', "'\\u1_2'"),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def token_texts(tokens: list[str]) -> st.SearchStrategy[str]:
    """Any sequence of tokens; sometimes inside braces, where documents live."""
    loose = st.lists(st.sampled_from(tokens), max_size=12).map("".join)
    pairs = st.lists(st.tuples(*[st.sampled_from(tokens)] * 5).map(lambda t: "".join((t[0], ":", *t[1:]))), max_size=4)
    return loose | pairs.map(lambda lines: "{" + ",".join(lines) + "}") | pairs.map("\n".join)


@st.composite
def mutations(draw: st.DrawFn, texts: list[str], tokens: list[str]) -> str:
    """A real text with up to three pieces removed, doubled or replaced by a token."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 3)))
        piece = draw(st.sampled_from(["", text[start:end] * 2, *tokens]))
        text = text[:start] + piece + text[end:]
    return text
