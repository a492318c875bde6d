"""YAML as PyYAML's safe loader reads it (YAML 1.1), with the place of every key and value.

What YAML 1.1 makes of a text is kept: ``5e8`` is text, not a number (it has no point), ``on`` is true, and of keys that
stand twice the last one counts.
"""

from typing import Any

import yaml

from dsgen.documents.document import MAX_DEPTH, DocumentError, Member, Node, array, mapping

# Anchors can make a short text stand for an endless one; no config comes near this many values.
_MOST_NODES = 100_000
_MERGE = "tag:yaml.org,2002:merge"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str) -> Node:
    """The root of the document; an empty one is ``null``.

    Raises:
        DocumentError: the text is not YAML, or holds more than plain values.
    """
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            return Node(None, 0, 0) if root is None else _Reader(loader).node(root, 0)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min(mark.index, len(text)) if mark else 0
        raise DocumentError(error.problem or str(error), at) from None
    except yaml.reader.ReaderError as error:
        at = error.position if isinstance(error.position, int) else 0
        raise DocumentError("YAML takes no such character", min(at, len(text))) from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise DocumentError(f"cannot be read: {error}", 0) from None


class _Reader:
    """From PyYAML's nodes to ours; counts them."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._count = 0

    def node(self, node: Any, depth: int) -> Node:
        start, end = node.start_mark.index, node.end_mark.index
        self._count += 1
        if self._count > _MOST_NODES:
            raise DocumentError(f"with its anchors written out it has more than {_MOST_NODES} values", start)
        if depth > MAX_DEPTH:
            raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", start)
        if isinstance(node, yaml.SequenceNode):
            return array([self.node(item, depth + 1) for item in node.value], start, end)
        if isinstance(node, yaml.MappingNode):
            return mapping(self._members(node, depth), start, end)
        return Node(self._scalar(node), start, end)

    def _members(self, node: Any, depth: int) -> list[Member]:
        """With what is merged in first: the mapping's own keys count over it."""
        if depth > MAX_DEPTH:
            raise DocumentError("a mapping that merges itself in", node.start_mark.index, node.start_mark.index + 1)
        merged, own = [], []
        for key, value in node.value:
            if key.tag == _MERGE:
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                # Of several the first counts.
                for source in reversed(sources):
                    if isinstance(source, yaml.MappingNode):
                        merged += self._members(source, depth + 1)
                continue
            start, end = key.start_mark.index, key.end_mark.index
            name = self._scalar(key) if isinstance(key, yaml.ScalarNode) else None
            if name is None and key.tag != "tag:yaml.org,2002:null":
                raise DocumentError("a key that is no plain value", start, end)
            own.append(
                Member(name if isinstance(name, str) else key.value, start, end, self.node(value, depth + 1), None)
            )
        names = {member.key for member in own}
        kept = {member.key: member for member in merged if member.key not in names}
        return [*kept.values(), *own]

    def _scalar(self, node: Any) -> Any:
        value = self._loader.construct_object(node)
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)
