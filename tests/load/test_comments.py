"""Comments that start with a certain word, and the node to which each comment applies."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.load import comments as module
from apflint.load.comments import find_comments, list_comments
from apflint.load.source_text import Source
from apflint.load.yaml import parse_tree

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
    """`find_comments` parses only the documents that contain the word.

    The result is the same as if it parsed all documents.
    """
    source = Source("a.yaml", text)
    everywhere = module._find_layout(source, list(range(len(text))))
    found = list(find_comments(source, "word:"))
    assert all(module._find_scope(source, comment.start, everywhere) == comment.scope for comment in found)
    starts = [comment.start for comment in found]
    every = [at for at in range(len(text)) if text.startswith("# word:", at)]
    assert starts == [at for at in every if module._find_range_end(at, everywhere.scalars) is None]


def test_comment_before_empty_document_is_about_the_next_one() -> None:
    text = "# word: x\n---\n# nothing\n---\n\n---\na: 1\n---\nb: 1\n"
    (found,) = find_comments(Source("a.yaml", text), "word:")
    assert text[slice(*found.scope)] == "a: 1"


def test_only_documents_with_comments_are_parsed() -> None:
    text = "---\n".join(f"a: {number}\n" for number in range(100)) + "# word: x\n"
    read = module._find_layout(Source("a.yaml", text), [text.index("#")])
    assert len(read.documents) == 1


def test_comments_between_nodes() -> None:
    """A `#` in a string does not start a comment. The first line of a block scalar may have a comment."""
    text = "a: 'x # no' # one\nb: | # two\n  # no\n  y\n# three   \nc: [1, # four\n 2]\nd: 3 # after\n"
    root = parse_tree(text, 0, len(text))
    assert root is not None
    end = text.index("d:")
    assert list(list_comments(text, [root], 0, end)) == ["# one", "# two", "# three", "# four"]
    assert list(list_comments(text, [root], 0, len(text)))[-1] == "# after"
    assert list(list_comments(text, [root], text.index("# three"), end)) == ["# three", "# four"]


def test_comment_after_a_string_with_the_same_words() -> None:
    text = "a: 'x # word: no' # word: yes\nb: 'x # word: no\n  y # word: no' # word: after\n"
    assert [comment.text for comment in find_comments(Source("a.yaml", text), "word:")] == ["yes", "after"]


def test_comment_on_the_last_line_without_a_line_end() -> None:
    source = Source("a.yaml", "a: 1\nb: 2 # word: x")
    (comment,) = find_comments(source, "word:")
    assert (comment.text, comment.scope) == ("x", (5, len(source.text) + 1))
    (first,) = find_comments(Source("a.yaml", "a: 1 # word: x\nb: 2\n"), "word:")
    assert first.scope == (0, 15)
