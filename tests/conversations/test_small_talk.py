"""Small talk: what is recognised, and the line that replies to it."""

from __future__ import annotations

import pytest

from bythebook.conversations.small_talk import Kind, SmallTalk, find_small_talk

SAID: dict[str, dict[Kind, tuple[str, ...]]] = {
    "en": {
        Kind.ASSENT: ("ok", "Okay!", "great, got it", "yes please"),
        Kind.GREETING: ("hello", "Hi there", "hey!", "Good morning", "Hi, how are you?"),
        Kind.THANKS: ("thanks", "thank you!", "Thanks a lot :)", "ok, thank you so much", "Great, that helped"),
        Kind.FAREWELL: ("bye", "Goodbye!", "thanks, bye", "see you later"),
        Kind.IDENTITY: ("who are you?", "What can you do?", "hello, can you help me?", "Hi! What’s your name?"),
    },
    "de": {
        Kind.ASSENT: ("alles klar", "Verstanden."),
        Kind.GREETING: ("Hallo", "Guten Tag!", "Grüß Gott"),
        Kind.THANKS: ("Danke schön", "vielen Dank!"),
        Kind.FAREWELL: ("Tschüss", "Auf Wiedersehen", "Danke, tschüß"),
        Kind.IDENTITY: ("Wer bist du?", "Was kannst du?"),
    },
    "fr": {
        Kind.ASSENT: ("d’accord", "très bien"),
        Kind.GREETING: ("Bonjour", "salut !"),
        Kind.THANKS: ("merci", "Merci beaucoup !"),
        Kind.FAREWELL: ("au revoir", "À bientôt"),
        Kind.IDENTITY: ("Qui es-tu ?", "Qu’est-ce que tu peux faire ?"),
    },
    "es": {
        Kind.ASSENT: ("vale", "de acuerdo"),
        Kind.GREETING: ("¡Hola!", "Buenos días", "hola, ¿qué tal?"),
        Kind.THANKS: ("gracias", "¡Muchas gracias!"),
        Kind.FAREWELL: ("adiós", "hasta luego"),
        Kind.IDENTITY: ("¿Quién eres?", "¿Qué puedes hacer?"),
    },
    "ar": {
        Kind.ASSENT: ("حسناً",),
        Kind.GREETING: ("مرحبا", "أهلاً وسهلاً", "السلام عليكم"),
        Kind.THANKS: ("شكراً", "شكرا جزيلا!"),
        Kind.FAREWELL: ("وداعاً", "مع السلامة"),
        Kind.IDENTITY: ("من أنت؟", "ماذا يمكنك أن تفعل؟"),
    },
}


@pytest.mark.parametrize(
    ("text", "language", "kind"),
    [(text, language, kind) for language, kinds in SAID.items() for kind, texts in kinds.items() for text in texts],
)
def test_small_talk_is_recognised_in_the_languages_of_the_widget(text: str, language: str, kind: Kind) -> None:
    assert find_small_talk(text) == SmallTalk(kind, language)


@pytest.mark.parametrize(
    "text",
    [
        "hi, how do I install it?",
        "thanks! And for Python?",
        "Hello, what is a mantle?",
        "ok, how do I trim the wick",
        "hello()",
        "hello world",
        "test",
        "What is it?",
        "What is this?",
        "why?",
        "help",
        "404",
        "`thanks`",
        "Hallo, wie geht das mit dem Docht?",
        "Who are you writing for?",
        "What can you do with a lamp?",
        "bye bye birds",
        "?!",
        "",
        "مرحبا، كيف أثبت البرنامج؟",
    ],
)
def test_a_question_with_a_greeting_is_a_question(text: str) -> None:
    assert find_small_talk(text) is None


@pytest.mark.parametrize("language", SAID)
@pytest.mark.parametrize("kind", Kind)
def test_every_reply_has_a_line_of_its_own_and_the_questions(language: str, kind: Kind) -> None:
    said = SmallTalk(kind, language)
    line, _, lead, _, *listed = said.reply(("Why?", "How?")).split("\n")
    assert listed == ["- Why?", "- How?"]
    assert lead
    assert said.reply(()) == line
    assert len({SmallTalk(kind, other).reply(()) for other in SAID}) == len(SAID)
