"""The sizes of the model that smoke trains, as far as a config depends on them."""

TINY_HIDDEN = 64
"""Hidden size of ``Config.tiny()`` in the generated decoder (dsgen/formats/decoder.py)."""
