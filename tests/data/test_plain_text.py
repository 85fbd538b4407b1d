"""HTML of posts to text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.plain_text import has_link, html_to_text, n_words, text_beside_links


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p>\n\n<p>two\n words</p>", "one\n\ntwo words"),
        ("<p>a &amp;&amp; b &lt;c&gt; &eacute;&#33; 😀</p>", "a && b <c> é! 😀"),
        ("<p>run <code>ls -l</code> now<br>then stop</p>", "run ls -l now\nthen stop"),
        ('<p>see <a href="https://x.example.org">the <b>page</b></a>.</p>', "see the page."),
        ("<ul>\n<li>one</li>\n<li><p>two</p></li>\n</ul>", "- one\n- two"),
        ("<ol><li>first</li><li>second</li></ol>", "1. first\n2. second"),
        ("<ul><li>a<ol><li>b</li></ol></li><li>c</li></ul>", "- a\n  1. b\n- c"),
        ("<ul><li>Stop. <p>then go</p></li></ul>", "- Stop.\nthen go"),
        ("<blockquote>\n<p>quoted</p>\n</blockquote><p>reply</p>", "quoted\n\nreply"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a | b"),
        ('<p><img src="x.png" alt="a screen"></p>', "a screen"),
        ("<p>a</p><script>alert(1)</script><style>p {}</style>", "a"),
        ("<p>unclosed <b>bold", "unclosed bold"),
        ("no markup", "no markup"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_a_reader_sees(html, text):
    assert html_to_text(html) == text


def test_code_is_kept_verbatim_on_its_own_lines():
    html = (
        "<p>Run:</p>\n\n<pre><code>if a &lt; b:\n\tpass\n\n\n    done   # two blanks above\n</code></pre>\n\n<p>End</p>"
    )
    assert html_to_text(html) == "Run:\n\nif a < b:\n\tpass\n\n\n    done   # two blanks above\n\nEnd"


def test_what_a_link_only_answer_says_beside_its_links():
    html = '<p>See <a href="x">our long page on mount options</a> or https://y.example.org/z</p>'
    assert text_beside_links(html) == "See or"
    assert has_link(html)
    assert has_link("look at www.example.org")
    assert not has_link("<p>no link</p>")


def test_deep_nesting_ends():
    assert n_words(html_to_text("<div>" * 3000 + "deep" + "</div>" * 3000)) == 1


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(html):
    html_to_text(html)
    text_beside_links(html)


@given(st.lists(st.text(alphabet="abc déF&<>\"'", min_size=1, max_size=20), max_size=5))
def test_escaped_words_come_back(paragraphs):
    import html

    text = html_to_text("".join(f"<p>{html.escape(p)}</p>" for p in paragraphs))
    assert text.split() == " ".join(paragraphs).split()
