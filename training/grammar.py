"""Enough English grammar to change sentences by rule: verb forms, subjects, objects, clauses, terms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bythebook.evals.swaps import capitalize, close, uncapitalize

VERBS = """
accept access activate add adjust affect aggregate allocate allow analyze append apply approve archive assign attach
authenticate authorize back block build bundle cache calculate call cancel cause change check clean clear clone close
collect combine compare compile compress compute configure connect consume contain control convert copy count cover
create cut debug decode decrypt decrease define delay delete deliver deploy describe destroy detect determine disable
discard display distribute download drop enable encode encrypt enforce evaluate examine exclude execute expand expose
export extend extract fetch filter fix flag follow force format forward generate get give group guard guide handle
hide hold host identify ignore import improve include increase index inherit initialize inject insert inspect install
integrate intercept invoke isolate join keep launch limit link list load lock log maintain make manage map mark mask
match measure merge migrate modify monitor mount move name need normalize notify offer open optimize order organize
override own pack parse pass patch perform permit place plan poll prepare preserve prevent print process produce
protect provide publish pull push query raise read receive reclaim record recover redirect reduce refer refresh
register reject release reload remove rename render repair replace replicate report represent request require reserve
reset resolve restart restore restrict resume retain retrieve return reuse revoke rewrite rotate route run save scale
scan schedule search secure select send serve set share show sign simplify skip sort specify split start stop store
stream submit support suspend switch sync synchronize tag test throttle track train transfer transform translate
trigger trust turn unlock update upgrade upload use validate verify view watch wrap write
""".split()
IRREGULAR = {
    "build": "built",
    "cut": "cut",
    "get": "got",
    "give": "given",
    "hide": "hidden",
    "hold": "held",
    "keep": "kept",
    "make": "made",
    "override": "overridden",
    "read": "read",
    "reset": "reset",
    "rewrite": "rewritten",
    "run": "run",
    "send": "sent",
    "set": "set",
    "show": "shown",
    "split": "split",
    "write": "written",
}
DOUBLED = {
    "cut",
    "drop",
    "flag",
    "get",
    "log",
    "map",
    "plan",
    "reset",
    "run",
    "scan",
    "set",
    "skip",
    "split",
    "stop",
    "submit",
    "tag",
    "wrap",
}
AUXILIARIES = """
is are was were can cannot could may might must will would should has have had does do isn't aren't can't won't
doesn't don't
""".split()
MODALS = ("can", "could", "may", "might", "must", "will", "should")
DETERMINERS = (
    "the",
    "a",
    "an",
    "your",
    "each",
    "every",
    "all",
    "this",
    "these",
    "those",
    "its",
    "their",
    "any",
    "some",
    "no",
    "one",
)
PREPOSITIONS = """
in on at for to from with by when if that which who where while because unless until before after as into through via
during between within without over under across against per among about so and or but using based
""".split()


def third_person(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2] not in "aeiou" else verb + "s"


def participle(verb: str) -> str:
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if verb in DOUBLED:
        return verb + verb[-1] + "ed"
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if verb.endswith("y") and verb[-2] not in "aeiou" else verb + "ed"


def gerund(verb: str) -> str:
    if verb in DOUBLED:
        return verb + verb[-1] + "ing"
    return verb[:-1] + "ing" if verb.endswith("e") and not verb.endswith("ee") else verb + "ing"


BASE_OF_THIRD = {third_person(verb): verb for verb in VERBS}
BASE_OF_PARTICIPLE = {participle(verb): verb for verb in VERBS}
BASE_OF_GERUND = {gerund(verb): verb for verb in VERBS}
BASES = set(VERBS)


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence cut into the subject, the modal verb (or nothing), the base of its verb, the object, and the rest."""

    subject: str
    modal: str
    verb: str
    object: str
    rest: str

    @property
    def is_plural(self) -> bool:
        return is_plural(self.subject)


_OBJECT = re.compile(rf"(?P<object>[^,;:()]{{2,70}}?)(?P<rest>(?: (?:{'|'.join(PREPOSITIONS)})\b.*|[,;:(].*)?)$")
_PASSIVE = re.compile(
    r"^(?P<object>[^,;:()]{2,60}?) (?:(?P<modal>" + "|".join(MODALS) + r") be|is|are) (?P<participle>[a-z]+)"
    r" by (?P<subject>(?:the |a |an |your )?[\w.`'*-]+(?: [\w.`'*-]+){0,3}?)(?P<rest>(?: (?:"
    + "|".join(PREPOSITIONS)
    + r")\b.*)?)$"
)


def parse_clause(sentence: str) -> Clause | None:
    """The parts of an active sentence with an object, or of a passive one that names who acts."""
    return parse_active(sentence) or parse_passive(sentence)


def parse_active(sentence: str) -> Clause | None:
    """The clause whose verb is the first word that can be one, after words that can be a subject."""
    words = sentence.rstrip(".").split(" ")
    for place in range(1, min(len(words) - 1, 9)):
        subject = " ".join(words[:place])
        modal = words[place] if words[place] in MODALS else ""
        after = place + (2 if modal else 1)
        base = _base_form(words[after - 1], modal=modal, subject=subject)
        found = _OBJECT.match(" ".join(words[after:]))
        if base and found and is_noun_phrase(subject) and is_noun_phrase(found["object"]):
            return Clause(subject, modal, base, found["object"], found["rest"].strip())
    return None


def _base_form(word: str, *, modal: str, subject: str) -> str:
    """The base of a verb in the form that the subject and the modal verb ask for; nothing for another word."""
    bare = modal or is_plural(subject)
    return (word if word in BASES else "") if bare else BASE_OF_THIRD.get(word, "")


def parse_passive(sentence: str) -> Clause | None:
    """The clause of "B is done by A"."""
    found = _PASSIVE.match(sentence.rstrip("."))
    base = BASE_OF_PARTICIPLE.get(found["participle"]) if found else None
    if not found or not base or not is_noun_phrase(found["subject"]) or not is_noun_phrase(found["object"]):
        return None
    return Clause(found["subject"], found["modal"] or "", base, found["object"], found["rest"].strip())


def active(clause: Clause) -> str:
    verb = clause.verb if clause.is_plural else third_person(clause.verb)
    verb = f"{clause.modal} {clause.verb}" if clause.modal else verb
    return close(f"{capitalize(clause.subject)} {verb} {uncapitalize(clause.object)} {clause.rest}")


def passive(clause: Clause) -> str:
    be = f"{clause.modal} be" if clause.modal else ("are" if is_plural(clause.object) else "is")
    agent = "" if clause.subject.lower() in ("you", "we", "they") else f"by {uncapitalize(clause.subject)}"
    return close(f"{capitalize(clause.object)} {be} {participle(clause.verb)} {agent} {clause.rest}")


_WORD = re.compile(r"[^\s]+")
_BAD_WORDS = set(AUXILIARIES) | {
    "to",
    "that",
    "which",
    "who",
    "it",
    "them",
    "not",
    "than",
    "there",
    "if",
    "when",
    "what",
    "how",
    "where",
    "up",
    "out",
    "off",
    "more",
    "less",
    "and",
    "or",
    "because",
    "while",
}


def is_noun_phrase(text: str) -> bool:
    """Whether the text looks like one: few words, no pronoun, no finite verb, no conjunction."""
    words = text.split()
    if not words or len(words) > 7 or words[-1].lower() in PREPOSITIONS or words[-1].lower() in DETERMINERS:
        return False
    lower = [word.lower() for word in words]
    return (
        not any(word in _BAD_WORDS for word in lower)
        and not (lower[0] in BASES and len(words) > 2)
        and lower[0] not in PREPOSITIONS
    )


def is_plural(phrase: str) -> bool:
    words = phrase.lower().strip(".`").split()
    if not words:
        return False
    if words[0] in ("you", "we", "they", "these", "those", "all", "many", "several", "most") or " and " in phrase:
        return True
    if words[0] in ("a", "an", "each", "every", "this", "it", "one"):
        return False
    head = words[0] if len(words) == 1 else re.split(r" (?:of|in|for|on|with) ", " ".join(words))[0].split()[-1]
    return head.endswith("s") and not head.endswith(
        ("ss", "us", "is", "'s", "dns", "aws", "windows", "kubernetes", "ios", "https", "sas", "os")
    )


SUBJECT = re.compile(
    r"^(?P<subject>[^,;:()]{2,70}?) (?P<verb>"
    + "|".join(
        [*AUXILIARIES, *BASE_OF_THIRD, "provide", "use", "allow", "require", "support", "contain", "include", "need"]
    )
    + r")\b"
)
"""A subject that is followed by its verb."""


def subject_of(sentence: str) -> str:
    """The subject at the beginning of the sentence, or nothing."""
    found = SUBJECT.match(sentence)
    return found["subject"] if found and is_noun_phrase(found["subject"]) else ""


CONJUNCTIONS = "if when whenever because since although unless until once before after while where as long as".split()
