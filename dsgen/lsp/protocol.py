"""What was found and what is offered, as the Language Server Protocol has it."""

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types

from dsgen.lint.beside import read_beside
from dsgen.lint.finding import Finding, Related
from dsgen.lint.rule import known_rules
from dsgen.lsp.actions import QUICK_FIX, Action
from dsgen.lsp.analysis import Analysis
from dsgen.lsp.hover import Shown
from dsgen.lsp.offers import Offer
from dsgen.lsp.text import Text

SOURCE = "dsgen"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Hint,
}
_KINDS = {
    "section": types.CompletionItemKind.Module,
    "key": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
}
Edit = tuple[int, int, str]


def range_of(text: Text, start: int, end: int) -> types.Range:
    """A stretch by offsets, in the units of the client."""
    (line, column), (end_line, end_column) = text.positions.position(start), text.positions.position(end)
    return types.Range(types.Position(line, column), types.Position(end_line, end_column))


def diagnostics(analysis: Analysis, uri: str) -> list[types.Diagnostic]:
    """Everything that is to be shown in a document."""
    found = [diagnostic(finding, analysis.text, uri) for finding in analysis.findings]
    if analysis.problem:
        # Without the project's settings nothing can be judged, and nobody reads a log to find that out.
        found.append(
            types.Diagnostic(
                range=range_of(analysis.text, 0, 0),
                message=f"not looked at: {analysis.problem}",
                severity=types.DiagnosticSeverity.Warning,
                source=SOURCE,
            )
        )
    return found


def diagnostic(finding: Finding, text: Text, uri: str) -> types.Diagnostic:
    """One finding."""
    page = _page_of(finding.code)
    return types.Diagnostic(
        range=range_of(text, *text.positions.stretch(finding.range)),
        message=f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(page) if page else None,
        source=SOURCE,
        related_information=[_related(related, text, uri) for related in finding.related] or None,
    )


def _related(related: Related, text: Text, uri: str) -> types.DiagnosticRelatedInformation:
    """Another place that belongs to the mistake, perhaps in a file beside."""
    if related.file is not None:
        path = Path(related.file).absolute()
        uri, text = path.as_uri(), Text(str(path), read_beside(path).decode(errors="replace"), None, text.encoding)
    location = types.Location(uri, range_of(text, *text.positions.stretch(related.range)))
    return types.DiagnosticRelatedInformation(location, related.message)


def _page_of(code: str) -> str | None:
    """Where the rule's page lies on this machine: at the top of the rule itself."""
    rule = known_rules().get(code)
    return Path(rule.check.__code__.co_filename).as_uri() if rule else None


def hover(shown: Shown, text: Text) -> types.Hover:
    """What is known of a place."""
    content = types.MarkupContent(types.MarkupKind.Markdown, shown.markdown)
    return types.Hover(content, range_of(text, shown.start, shown.end))


def completion(offers: Iterable[Offer], text: Text, *, snippets: bool) -> types.CompletionList:
    """Everything that may be written at the cursor."""
    items = [_item(offer, text, index, snippets=snippets) for index, offer in enumerate(offers)]
    return types.CompletionList(is_incomplete=False, items=items)


def _item(offer: Offer, text: Text, index: int, *, snippets: bool) -> types.CompletionItem:
    is_snippet = snippets and offer.snippet is not None
    written = offer.snippet if is_snippet and offer.snippet else offer.text
    is_long = "\n" in written
    return types.CompletionItem(
        label=offer.label,
        kind=_KINDS[offer.what],
        detail=offer.detail or None,
        documentation=types.MarkupContent(types.MarkupKind.Markdown, offer.markdown) if offer.markdown else None,
        sort_text=f"{index:04}",
        filter_text=offer.typed,
        text_edit=types.TextEdit(range_of(text, offer.start, offer.end), written),
        insert_text_format=types.InsertTextFormat.Snippet if is_snippet else types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AdjustIndentation if is_long else None,
        additional_text_edits=edits(offer.beside, text) or None,
    )


def edits(made: Iterable[Edit], text: Text) -> list[types.TextEdit]:
    """Edits by offsets, in the units of the client."""
    return [types.TextEdit(range_of(text, start, end), new) for start, end, new in made]


def code_action(action: Action, text: Text, uri: str, *, versioned: bool) -> types.CodeAction:
    """One thing that can be done; with a version the client refuses it for a text that has changed since."""
    made = edits(action.edits, text)
    if versioned:
        document = types.OptionalVersionedTextDocumentIdentifier(uri, text.version)
        edit = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, made)])
    else:
        edit = types.WorkspaceEdit(changes={uri: made})
    return types.CodeAction(
        title=action.title,
        kind=action.kind,
        diagnostics=[diagnostic(finding, text, uri) for finding in action.findings] or None,
        is_preferred=(action.is_safe and action.kind == QUICK_FIX) or None,
        edit=edit,
    )
