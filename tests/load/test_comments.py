"""Comments that start with a word, and the node that each is about."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.load import comments as module
from apflint.load.comments import find_comments
from apflint.load.source import Source

PIECES = st.sampled_from(
    [
        *("---\n", "--- # word: z\n", "--- !!map\n", "...\n", "%YAML 1.1\n", "\n", "{\n", "# other\n"),
        *(
            "# word: x\n",
            "  # word: y\n",
            "a: 1\n",
            "b:\n  - 1 # word: x\n",
            "c: 'x # word: n'\n",
            "d: |\n  # word: q\n",
        ),
        *("- x\n", " e: &a [1,\n 2] # word: t\n"),
    ]
)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_documents_without_comments_need_not_be_parsed(text: str) -> None:
    """Parsing only documents with comments, and the next document if one is empty, gives the same as parsing all."""
    source = Source("a.yaml", text)
    everywhere = module._find_layout(source, list(range(len(text))))
    found = list(find_comments(source, "word:"))
    assert all(module._find_scope(source, one.start, everywhere) == one.scope for one in found)
    starts = [one.start for one in found]
    every = [at for at in range(len(text)) if text.startswith("# word:", at)]
    assert starts == [at for at in every if not module._is_inside(at, everywhere.scalars)]


def test_comment_before_empty_document_is_about_the_next_one() -> None:
    text = "# word: x\n---\n# nothing\n---\n\n---\na: 1\n---\nb: 1\n"
    (found,) = find_comments(Source("a.yaml", text), "word:")
    assert text[slice(*found.scope)] == "a: 1"


def test_only_documents_with_comments_are_parsed() -> None:
    text = "---\n".join(f"a: {number}\n" for number in range(100)) + "# word: x\n"
    read = module._find_layout(Source("a.yaml", text), [text.index("#")])
    assert len(read.documents) == 1
