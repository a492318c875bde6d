"""The model that a case trains: the decoder that build generates for the family, at its tiny size."""

from dsgen.errors import DsgenError, RefusedError
from dsgen.facts.models import find_model
from dsgen.formats.decoder import decoder_source
from dsgen.shapes.from_row import architecture
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Attention, Method

# A config names no model; most of those that people train have this family's layers.
_DEFAULT_MODEL = "llama-2-7b"
DEFAULT_FAMILY = "llama"


def default_decoder() -> str:
    """Source of the decoder for a config that comes without a model."""
    model = find_model(_DEFAULT_MODEL)
    if model is None:
        raise DsgenError.at(f"models.csv has no {_DEFAULT_MODEL}")
    return decoder_source(architecture(model), Method())


def decoder_of(architecture: Architecture, method: Method, attention: Attention) -> tuple[str, str | None]:
    """Source of the family's decoder; the default one and a note where dsgen can't render the family."""
    try:
        return decoder_source(architecture, method, attention=attention), None
    except RefusedError as error:
        return default_decoder(), f"run with a {DEFAULT_FAMILY} decoder instead: {error.problems[0].message}"
