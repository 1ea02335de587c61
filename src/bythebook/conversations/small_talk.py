"""Small talk: greetings, thanks and questions about the assistant itself, in the languages of the widget."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(IntEnum):
    """What is said. Of several things at once, the highest is replied to."""

    ASSENT = 0
    GREETING = 1
    THANKS = 2
    FAREWELL = 3
    IDENTITY = 4


# One language for each block: a phrase that several languages share belongs to the first.
_PHRASES = {
    "en": {
        Kind.ASSENT: "ok; okay; alright; all right; fine; good; great; nice; cool; perfect; awesome; excellent; "
        "yes; yeah; yep; no; nope; sure; right; got it; i see; understood; makes sense; sounds good; that is all; "
        "thats all; never mind; nevermind; sorry; hm; hmm; oh",
        Kind.GREETING: "hello; hi; hey; hiya; howdy; hello there; hi there; hey there; greetings; good morning; "
        "good afternoon; good evening; good day; whats up; how are you; how are you doing; how do you do; "
        "nice to meet you; hello everyone; hi all; hi everyone; hi bot; hello bot",
        Kind.THANKS: "thanks; thank you; thx; ty; cheers; thanks a lot; many thanks; thanks so much; "
        "thank you so much; "
        "thank you very much; thanks very much; thanks again; thank you again; thanks for your help; "
        "thank you for your help; thanks for the help; that helped; that was helpful; that helps; very helpful; "
        "much appreciated",
        Kind.FAREWELL: "bye; goodbye; good bye; bye bye; see you; see you later; see ya; cya; good night; farewell; "
        "have a nice day; have a good day; take care",
        Kind.IDENTITY: "who are you; what are you; what is your name; whats your name; what can you do; "
        "what do you do; what can i ask; what can i ask you; what can i ask here; what should i ask; how can you help; "
        "how can you help me; can you help me; can you help; what can you help me with; what can you help with; "
        "how do you work; who made you; are you a bot; are you a robot; are you human; are you an ai; are you real; "
        "what do you know; introduce yourself; tell me about yourself; what can you tell me; "
        "i need help; help me; i have a question; can i ask a question; can i ask you something",
    },
    "de": {
        Kind.ASSENT: "alles klar; gut; super; prima; toll; klar; ja; nein; verstanden; in ordnung; schon gut",
        Kind.GREETING: "hallo; guten tag; guten morgen; guten abend; servus; moin; gruss gott; grussgott; grusse; "
        "wie geht es dir; wie gehts; wie geht es ihnen; hallo zusammen",
        Kind.THANKS: "danke; danke schon; dankeschon; vielen dank; danke sehr; herzlichen dank; besten dank; "
        "danke dir; danke fur die hilfe; danke fur deine hilfe",
        Kind.FAREWELL: "tschuss; auf wiedersehen; bis bald; bis spater; ciao; gute nacht; schonen tag noch",
        Kind.IDENTITY: "wer bist du; wer sind sie; was bist du; was kannst du; was konnen sie; was machst du; "
        "wie heisst du; wie kannst du helfen; wie kannst du mir helfen; kannst du mir helfen; konnen sie mir helfen; "
        "was kann ich fragen; was kann ich dich fragen; bist du ein bot",
    },
    "fr": {
        Kind.ASSENT: "daccord; oui; non; tres bien; parfait; bien; compris; ca marche; genial",
        Kind.GREETING: "bonjour; salut; bonsoir; coucou; comment allez vous; comment ca va; ca va; comment vas tu",
        Kind.THANKS: "merci; merci beaucoup; merci bien; grand merci; mille mercis; merci a vous; merci a toi; "
        "je vous remercie; merci pour votre aide; merci pour ton aide",
        Kind.FAREWELL: "au revoir; adieu; a bientot; a plus; a plus tard; bonne journee; bonne soiree; bonne nuit",
        Kind.IDENTITY: "qui es tu; qui etes vous; tu es qui; vous etes qui; que peux tu faire; que pouvez vous faire; "
        "quest ce que tu peux faire; quest ce que vous pouvez faire; que fais tu; que faites vous; "
        "comment tu tappelles; comment tappelles tu; comment vous appelez vous; peux tu maider; pouvez vous maider; "
        "que puis je demander",
    },
    "es": {
        Kind.ASSENT: "vale; de acuerdo; si; muy bien; perfecto; bien; entendido; genial; claro; bueno",
        Kind.GREETING: "hola; buenos dias; buenas tardes; buenas noches; buenas; saludos; que tal; como estas; "
        "como esta; hola que tal",
        Kind.THANKS: "gracias; muchas gracias; mil gracias; muchisimas gracias; gracias por todo; te lo agradezco; "
        "gracias por tu ayuda; gracias por la ayuda",
        Kind.FAREWELL: "adios; hasta luego; hasta pronto; hasta manana; nos vemos; chao",
        Kind.IDENTITY: "quien eres; quien es usted; que eres; que puedes hacer; que puede hacer; que haces; "
        "como te llamas; como puedes ayudarme; me puedes ayudar; puedes ayudarme; puede ayudarme; "
        "que puedo preguntar; que te puedo preguntar",
    },
    "ar": {
        Kind.ASSENT: "حسنا; تمام; نعم; لا; جيد; ممتاز; رائع; طيب; فهمت; اوكي",
        Kind.GREETING: "مرحبا; اهلا; اهلا وسهلا; اهلا بك; السلام عليكم; سلام; صباح الخير; مساء الخير; كيف حالك; هلا",
        Kind.THANKS: "شكرا; شكرا جزيلا; شكرا لك; شكرا كثيرا; الف شكر; جزاك الله خيرا; شكرا على المساعدة",
        Kind.FAREWELL: "وداعا; مع السلامة; الى اللقاء; تصبح على خير; في امان الله",
        Kind.IDENTITY: "من انت; من انتم; ما انت; ماذا تفعل; ماذا يمكنك ان تفعل; ماذا تستطيع ان تفعل; ما اسمك; "
        "كيف يمكنك مساعدتي; هل يمكنك مساعدتي; هل تستطيع مساعدتي; ماذا يمكنني ان اسال",
    },
}
_REPLIES = {
    "en": (
        "All right.",
        "Hello!",
        "You're welcome!",
        "Goodbye!",
        "I answer questions about this book. Every answer comes from its pages, with its source.",
        "You could ask, for example:",
    ),
    "de": (
        "Alles klar.",
        "Hallo!",
        "Gern geschehen!",
        "Auf Wiedersehen!",
        "Ich beantworte Fragen zu diesem Buch. Jede Antwort stammt von seinen Seiten, mit Quelle.",
        "Du kannst zum Beispiel fragen:",
    ),
    "fr": (
        "D’accord.",
        "Bonjour !",
        "Avec plaisir !",
        "Au revoir !",
        "Je réponds aux questions sur ce livre. Chaque réponse vient de ses pages, avec sa source.",
        "Vous pouvez par exemple demander :",
    ),
    "es": (
        "De acuerdo.",
        "¡Hola!",
        "¡De nada!",
        "¡Hasta luego!",
        "Respondo preguntas sobre este libro. Cada respuesta sale de sus páginas, con su fuente.",
        "Por ejemplo, puedes preguntar:",
    ),
    "ar": (
        "حسناً.",
        "مرحباً!",
        "على الرحب والسعة!",
        "إلى اللقاء!",
        "أجيب عن الأسئلة حول هذا الكتاب. كل إجابة من صفحاته، مع مصدرها.",
        "يمكنك مثلاً أن تسأل:",
    ),
}
"""The line for each kind, and the line before the questions."""
_LONGEST = 12
"""Small talk has at most this many words."""
_WORD = re.compile(r"[^\W\d_]+")
_NOT_TALK = re.compile(r"[\d_`/\\{}\[\]<>=#$@|*+]|\w\(")
"""Signs of code or names."""
_APOSTROPHES = str.maketrans("", "", "'’‘ʼ")
_FILLERS = frozenset("there so very please again for now and dear y et und o my friend".split())
"""Words that may stand between phrases."""


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """What was said, and its language."""

    kind: Kind
    language: str

    def reply(self, questions: Sequence[str]) -> str:
        """A friendly line in the same language, with questions that the book answers."""
        *lines, lead = _REPLIES[self.language]
        line = lines[self.kind]
        return "\n".join([line, "", lead, "", *(f"- {question}" for question in questions)]) if questions else line


def find_small_talk(text: str) -> SmallTalk | None:
    """The small talk that the whole text consists of. None if it asks anything else: "hi, how do I install it?"."""
    if _NOT_TALK.search(text):
        return None
    words = _WORD.findall(_normalize(text))
    found: list[SmallTalk] = []
    place = 0
    if len(words) > _LONGEST:
        return None
    while place < len(words):
        size, said = _longest_phrase(words[place:])
        if said is None:
            if words[place] not in _FILLERS:
                return None
            size = 1
        else:
            found.append(said)
        place += size
    return max(found, key=lambda said: said.kind, default=None)


def _longest_phrase(words: Sequence[str]) -> tuple[int, SmallTalk | None]:
    known = _phrases()
    sizes = (size for size in range(len(words), 0, -1) if " ".join(words[:size]) in known)
    size = next(sizes, 0)
    return size, known.get(" ".join(words[:size]))


@cache
def _phrases() -> dict[str, SmallTalk]:
    phrases: dict[str, SmallTalk] = {}
    for language, kinds in _PHRASES.items():
        for kind, listed in kinds.items():
            for phrase in listed.split(";"):
                phrases.setdefault(" ".join(_normalize(phrase).split()), SmallTalk(kind, language))
    return phrases


def _normalize(text: str) -> str:
    """Lowercase, without accents and apostrophes. Arabic loses its vowel marks and the signs of its alef."""
    parts = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES).casefold())
    return "".join(char for char in parts if not unicodedata.combining(char))
