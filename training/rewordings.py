"""Rewords a sentence by rule, so that it still says the same, or less."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.evals.swaps import capitalize, close, code_terms, split_condition, uncapitalize
from training.grammar import (
    BASE_OF_GERUND,
    BASES,
    active,
    gerund,
    is_noun_phrase,
    is_plural,
    parse_active,
    parse_clause,
    parse_passive,
    participle,
    passive,
    subject_of,
    third_person,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    Rewording = Callable[[str, random.Random], str | None]

SYNONYMS = """
must = have to | need to; you need to = you have to | you must; can't = cannot | are unable to
cannot = can't | is unable to; is required = is necessary | is needed; are required = are necessary | are needed
by default = unless configured otherwise | unless you change it | as the default
allows you to = lets you | enables you to | makes it possible to; lets you = allows you to | enables you to
enables you to = lets you | allows you to; is able to = can; in order to = to; so that = in order that
for example = for instance; because = since | as; automatically = on its own | without manual work
currently = at present | at the moment; at the same time = simultaneously; simultaneously = at the same time
multiple = several | more than one; several = multiple | a number of; a number of = several
many = a large number of; a lot of = many; purchase = buy; obtain = get; get = obtain; require = need
requires = needs; need = require; needs = requires; provides = offers | gives; provide = offer | give
offers = provides; contains = includes | holds; contain = include | hold; includes = contains | comprises
include = contain; supports = works with | has support for; support = work with
uses = makes use of | relies on | employs; use = make use of | employ; used = employed
using = by means of | with the help of; create = make | set up; created = made | set up; creates = makes | sets up
delete = remove | erase; deleted = removed; deletes = removes; remove = delete | take out
removed = taken out | deleted; removes = deletes | takes out; modify = change | alter; modified = changed
changed = modified | altered; select = choose | pick; selected = chosen; choose = select | pick; start = begin
starts = begins; started = begun; begin = start; stop = end | halt; stops = ends | halts; begins = starts
finished = completed; complete = finish; completes = finishes; fails = does not succeed; fail = do not succeed
error = failure; show = display; shows = displays; shown = displayed; displays = shows; displayed = shown
return = give back; returns = gives back | yields; returned = given back; execute = run; executes = runs
executed = run; runs = executes; invoke = call; invokes = calls; calls = invokes; verify = check; verifies = checks
check = verify; ensure = make sure; ensures = makes sure; make sure = ensure; prevent = stop; prevents = stops
avoid = prevent; specify = state | name; specifies = states | names; specified = given | named; define = specify
defined = specified; defines = specifies; configure = set up; configured = set up; enable = turn on | switch on
enabled = turned on | switched on; enables = turns on; disable = turn off | switch off
disabled = turned off | switched off; disables = turns off; store = keep | save; stores = keeps | saves
stored = kept | saved; retain = keep; retained = kept; send = transmit; sends = transmits; sent = transmitted
receive = get; receives = gets; received = gotten; allow = permit; allows = permits; allowed = permitted
replace = substitute; handle = deal with | process; handles = deals with | processes
manage = administer | look after; manages = administers | looks after; improve = enhance | better
improves = enhances; helps = assists; help = assist; additional = further | extra | more; separate = distinct
different = distinct; same = identical; existing = present | already existing; available = at hand
unavailable = not available; large = big; larger = bigger; small = little; smaller = lesser
quickly = fast | rapidly; fast = quick; usually = normally | as a rule | typically
typically = usually | in most cases; often = frequently; sometimes = at times | now and then; rarely = seldom
always = in every case | at all times; never = at no time; only = solely | exclusively; also = as well
however = but; therefore = so; via = through; through = via; within = inside; inside = within; before = prior to
after = following; during = in the course of; until = till; about = around | approximately
approximately = about | roughly; at least = no fewer than | a minimum of
more than = over; less than = under | below; over = more than; each = every; every = each; entire = whole
application = app; applications = apps; app = application; apps = applications; documentation = docs
directory = folder; folder = directory; folders = directories; repository = repo; parameter = argument
parameters = arguments; feature = function | capability; features = capabilities; information = details
method = way; users = people; user = person; based on = according to; depending on = according to
if = in case | provided that; when = whenever; whether = if; instead of = rather than | in place of
rather than = instead of; such as = like | for instance; occurs = happens; occur = happen; happens = occurs
generate = produce; generates = produces; generated = produced; updated = brought up to date
recommended = advisable; recommend = advise; is recommended = is advisable; should = ought to | had better
might = may | could; may = might | can; could = might; don't = do not; doesn't = does not; isn't = is not
aren't = are not; won't = will not; do not = don't; does not = doesn't; is not = isn't; are not = aren't
will not = won't; it's = it is; you're = you are; you'll = you will; fully = completely; completely = entirely
immediately = at once | right away; similar to = like; consists of = is made up of
is called = is known as | is named; is known as = is called; refers to = means; determine = find out
determines = decides; affect = influence; affects = influences; connect to = reach; located in = found in
is located in = is found in; applies to = holds for | is valid for; apply to = hold for; limit = cap
maximum = highest; minimum = lowest
"""
TABLE = {
    left.strip(): [one.strip() for one in right.split("|")]
    for line in SYNONYMS.strip().splitlines()
    for left, _, right in (entry.partition("=") for entry in line.split(";"))
}
_SYNONYM = re.compile(
    r"\b(" + "|".join(map(re.escape, sorted(TABLE, key=len, reverse=True))) + r")\b(?![\w/.-]*[_/=(])", re.IGNORECASE
)


def replace_synonyms(sentence: str, chance: random.Random) -> str | None:
    """One to four words replaced by others of the same meaning."""
    wanted = chance.choice((0.35, 0.6, 0.9))

    def other(found: re.Match[str]) -> str:
        word = found[0]
        if (word[:1].isupper() and found.start() > 0) or chance.random() > wanted:
            return word
        chosen = chance.choice(TABLE[word.lower()])
        return chosen.capitalize() if word[:1].isupper() else chosen

    return _changed(sentence, _SYNONYM.sub(other, sentence))


def move_condition(sentence: str, _: random.Random) -> str | None:
    """ "If A, B." becomes "B if A.", and the other way round."""
    parts = split_condition(sentence)
    if not parts:
        return None
    word, condition, main = parts
    if sentence.lower().startswith(word):
        return close(f"{main} {word} {uncapitalize(condition)}")
    return close(f"{word} {uncapitalize(condition)}, {uncapitalize(main)}")


def rephrase_condition(sentence: str, chance: random.Random) -> str | None:
    """ "If A, B." becomes "B, provided that A.", "In case A, B." and the like."""
    parts = split_condition(sentence)
    if not parts:
        return None
    word, condition, main = parts
    phrases = {
        "if": ("provided that", "in case", "on condition that", "as long as"),
        "when": ("at the time when", "whenever", "in the case that"),
        "unless": ("except if", "if it is not the case that"),
        "because": ("since", "as", "for the reason that"),
        "only if": ("only provided that", "only in the case that"),
        "until": ("up to the moment when", "till"),
        "once": ("as soon as", "after"),
        "after": ("once", "as soon as"),
        "although": ("even though", "though"),
    }
    if word not in phrases:
        return None
    chosen = chance.choice(phrases[word])
    if chance.random() < 0.5:
        return close(f"{main} {chosen} {uncapitalize(condition)}")
    return close(f"{chosen} {uncapitalize(condition)}, {uncapitalize(main)}")


def change_voice(sentence: str, _: random.Random) -> str | None:
    """Active becomes passive, passive active."""
    if clause := parse_active(sentence):
        return passive(clause)
    clause = parse_passive(sentence)
    return active(clause) if clause else None


def nominalize(sentence: str, chance: random.Random) -> str | None:
    """ "A manages B." becomes "It is A that manages B." or "What A manages is B.", and so on."""
    clause = parse_clause(sentence)
    if not clause or clause.modal or clause.subject.lower() in ("you", "we"):
        return None
    verb = clause.verb if clause.is_plural else third_person(clause.verb)
    thing, subject = uncapitalize(clause.object), uncapitalize(clause.subject)
    forms = (
        f"it is {subject} that {verb} {thing} {clause.rest}",
        f"what {subject} {verb} {clause.rest} is {thing}",
        f"the task of {gerund(clause.verb)} {thing} {clause.rest} falls to {subject}",
        f"{gerund(clause.verb)} {thing} {clause.rest} is what {subject} {'do' if clause.is_plural else 'does'}",
        f"{subject} {'are' if clause.is_plural else 'is'} what {third_person(clause.verb)} {thing} {clause.rest}",
    )
    return close(chance.choice(forms))


_CAN = re.compile(r"^You (can|may|must|should|need to|have to|cannot|can't) ([a-z]+) (.+)[.]$")


def rephrase_you(sentence: str, chance: random.Random) -> str | None:
    """ "You can export X." becomes "It is possible to export X.", "X can be exported." and so on."""
    found = _CAN.match(sentence)
    if not found or found[2] not in BASES:
        return None
    modal, verb, rest = found.groups()
    impersonal = {
        "can": ("it is possible to", "there is a way to", "users are able to"),
        "may": ("it is permitted to", "users are allowed to"),
        "must": ("it is necessary to", "it is mandatory to", "users are required to"),
        "should": ("it is advisable to", "the advice is to"),
        "need to": ("it is necessary to", "one has to"),
        "have to": ("it is necessary to", "one needs to"),
        "cannot": ("it is not possible to", "it is impossible to", "there is no way to"),
        "can't": ("it is not possible to", "it is impossible to", "users are unable to"),
    }
    if chance.random() < 0.3 and modal in ("must", "need to", "have to"):
        return close(f"{gerund(verb)} {rest} is {chance.choice(('required', 'necessary', 'mandatory'))}")
    if chance.random() < 0.3 and modal == "can":
        return close(f"{gerund(verb)} {rest} is {chance.choice(('possible', 'supported'))}")
    return close(f"{chance.choice(impersonal[modal])} {verb} {rest}")


_INSTRUCTION = re.compile(r"^(?:You can |You |Always |Please )?([A-Za-z][a-z]+ [^;:]{6,150})[.]$")


def rephrase_instruction(sentence: str, chance: random.Random) -> str | None:
    """ "Return the list of users." becomes "The list of users is returned.", "It returns the list of users." etc."""
    found = _INSTRUCTION.match(sentence)
    clause = parse_active(f"They {_lower_first(found[1])}.") if found else None
    if not clause or clause.modal:
        return None
    be = "are" if is_plural(clause.object) else "is"
    done = f"{participle(clause.verb)} {clause.rest}"
    forms = (
        f"{clause.object} {be} {done}",
        f"{clause.object} can be {done}",
        f"this is where {clause.object} {be} {done}",
        f"{gerund(clause.verb)} {clause.object} {clause.rest} is what is described here",
    )
    return close(chance.choice(forms[:2] if chance.random() < 0.8 else forms))


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


_PURPOSE_FIRST = re.compile(r"^To ([a-z]+ [^,;:]{4,90}), ([a-z]+ [^;:]{6,140})[.]$")
_PURPOSE_LAST = re.compile(
    r"^(Use|Select|Run|Call|Set|Choose|Open|Add|Create|Enable|Configure"
    r"|Install) ([^,;:]{3,90}) to ([a-z]+ [^;:]{4,110})[.]$"
)


def move_purpose(sentence: str, chance: random.Random) -> str | None:
    """ "To do A, use B." becomes "Use B to do A.", "B is used to do A." and so on, and the other way round."""
    found = _PURPOSE_FIRST.match(sentence)
    if found and found[2].split()[0] in BASES:
        purpose, deed = found.groups()
        duty = chance.choice(("have to", "should", "can"))
        first = (
            f"{deed} to {purpose}",
            f"in order to {purpose}, you {duty} {deed}",
            f"if you want to {purpose}, {deed}",
        )
        return close(chance.choice(first))
    found = _PURPOSE_LAST.match(sentence)
    if not found or found[3].split()[0] not in BASES:
        return None
    verb, thing, purpose = found[1].lower(), found[2], found[3]
    forms = [
        f"to {purpose}, {verb} {thing}",
        f"you can {purpose} by {gerund(verb)} {thing}",
        f"{gerund(verb)} {thing} is a way to {purpose}",
    ]
    if verb == "use":
        forms += [
            f"{thing} {'serve' if is_plural(thing) else 'serves'} to {purpose}",
            f"with {thing} you can {purpose}",
            f"{thing} can be used to {purpose}",
        ]
    return close(chance.choice(forms))


_ALLOWS = re.compile(
    r"^([^,;:()]{2,60}?) (?:allows?|enables?|lets?|helps?) (you|users|developers|administrators|customers"
    r"|admins)(?: to)? ([a-z]+ [^;:]{4,140})[.]$"
)


def rephrase_permission(sentence: str, chance: random.Random) -> str | None:
    """ "A allows you to do B." becomes "With A, you can do B." and so on."""
    found = _ALLOWS.match(sentence)
    if not found or not is_noun_phrase(found[1]) or found[3].split()[0] not in BASES:
        return None
    subject, who, deed = uncapitalize(found[1]), found[2], found[3]
    forms = (
        f"with {subject}, {who} can {deed}",
        f"thanks to {subject}, {who} are able to {deed}",
        f"{who} can {deed} by means of {subject}",
        f"{subject} makes it possible for {who} to {deed}",
    )
    return close(chance.choice(forms))


_IS_A = re.compile(
    r"^(?P<subject>[^,;:()]{2,60}?) (?P<be>is|are) (?P<kind>(?:an? )?[a-z][^,;:()]{3,60}?) (?:that"
    r"|which) (?P<rest>[^;:]{5,140})[.]$"
)


def split_definition(sentence: str, chance: random.Random) -> str | None:
    """ "A is a B that C." becomes "A is a B.", "A C." or "A, a B, C."."""
    found = _IS_A.match(sentence)
    if not found or not is_noun_phrase(found["subject"]):
        return None
    subject, kind, rest = found["subject"], found["kind"], found["rest"]
    return close(
        chance.choice(
            (
                f"{subject} {found['be']} {kind}",
                f"{subject} {rest}",
                f"as {kind}, {uncapitalize(subject)} {rest}",
                f"{subject}, {kind}, {rest}",
            )
        )
    )


_LEAD = re.compile(
    r"^(?:However|Therefore|Additionally|In addition|Also|For example|Note that|As a result|For instance"
    r"|In this case|Then|Next|Finally|Similarly|Yes|Typically|In general|Furthermore|Moreover),? "
)
_PARENTHESES = re.compile(r" \([^()]{2,80}\)")
_TAIL = re.compile(r",? (?:which|such as|including|like|for example|e\.g\.) [^;:.]{5,120}[.]$")
_SECOND = re.compile(
    r"^(?P<first>[^;:,]{20,150}), (?P<word>and|but|so|while|whereas) (?P<second>(?:you|it|they|we|the"
    r"|this|your|a|an) [^;:]{15,150})[.]$"
)


def shorten(sentence: str, chance: random.Random) -> str | None:
    """Leaves out a link word, brackets, examples, a relative clause, or half of a compound sentence."""
    cut = [pattern.sub(end, sentence, count=1) for pattern, end in ((_LEAD, ""), (_PARENTHESES, ""), (_TAIL, "."))]
    found = _SECOND.match(sentence)
    if found:
        cut.append(found["first"])
        if re.match(r"(?:you|the|your|a|an) ", found["second"]) and found["word"] != "so":
            cut.append(found["second"])
    kept = [text for text in cut if text.strip(" .") != sentence.strip(" .") and len(text.split()) > 3]
    return close(chance.choice(kept)) if kept else None


_LIST = re.compile(
    r"(?P<items>(?:[\w`*'./-]+(?: [\w`*'./-]+){0,3}, ){1,6}[\w`*'./-]+(?: [\w`*'./-]+){0,3},? and )"
    r"(?P<last>[\w`*'./-]+(?: [\w`*'./-]+){0,2})"
)


def reorder_list(sentence: str, chance: random.Random) -> str | None:
    """ "A, B, and C" becomes "C and A", in another order or with items left out."""
    found = _LIST.search(sentence)
    if not found:
        return None
    items = [item.strip() for item in re.split(r",? and |, ", found["items"]) if item.strip()]
    first = items[0].split()
    if (
        len(items) < 2
        or any(item.split()[0].lower() in ("or", "but", "and", "you", "it", "which", "that") for item in items)
        or len(first) > 2
    ):
        return None
    middle = [*items[1:], found["last"]]
    chance.shuffle(middle)
    if found.end() != len(sentence.rstrip(".")):
        return None
    kept = middle[: chance.randint(1, len(middle))]
    text = ", ".join([items[0], *kept[:-1]]) + " and " + kept[-1]
    return close(sentence[: found.start()] + text)


OPPOSITES = """
faster slower; larger smaller; bigger smaller; higher lower; longer shorter; older newer; earlier later; stronger weaker
easier harder; heavier lighter; better worse; cheaper dearer; wider narrower; deeper shallower
"""
_PAIRS = [pair.split() for pair in OPPOSITES.strip().replace("\n", ";").split(";")]
OPPOSITE = {**{second: first for first, second in _PAIRS}, **dict(_PAIRS), "smaller": "larger"}
_THAN = re.compile(
    rf"^(?P<a>[^,;:()]{{2,50}}?) (?P<be>is|are|was|were|has|have) (?P<word>{'|'.join(OPPOSITE)}) than "
    rf"(?P<b>[^,;:()]{{2,50}})[.]$"
)


def turn_comparison(sentence: str, _: random.Random) -> str | None:
    """ "A is faster than B." becomes "B is slower than A.", "A before B." becomes "B after A."."""
    found = _THAN.match(sentence)
    if found and is_noun_phrase(found["a"]) and is_noun_phrase(found["b"]):
        be = "are" if is_plural(found["b"]) else "is"
        return close(f"{found['b']} {be} {OPPOSITE[found['word']]} than {uncapitalize(found['a'])}")
    return None


def mark_code(sentence: str, chance: random.Random) -> str | None:
    """Identifiers in backticks."""
    terms = [term for term in code_terms(sentence) if not term.isupper()]
    if not terms or "`" in sentence:
        return None
    term = chance.choice(terms)
    return sentence.replace(term, f"`{term}`")


_FROM_TO = re.compile(
    r" from ((?:the |a |an )?[\w`.-]+(?: [\w`.-]+){0,2}) to ((?:the |a "
    r"|an )?[\w`.-]+(?: [\w`.-]+){0,2})(?=[,.;]| (?:in|on|by|with|when|if|using|for)\b)"
)


def swap_from_to(sentence: str, _: random.Random) -> str | None:
    """ "from A to B" becomes "to B from A"."""
    return _changed(sentence, _FROM_TO.sub(r" to \2 from \1", sentence))


_PRONOUN = re.compile(
    r"^(?:It|This|They|These|This (?:feature|option|setting|property|method|command|service|tool|function"
    r"|value|parameter|field|tab|page)) (?=[a-z]+\b)"
)


def resolve_pronoun(sentence: str, before: str) -> str | None:
    """ "It stores X." becomes "The cache stores X." where the sentence before is about the cache."""
    subject = subject_of(before)
    if (
        not subject
        or not _PRONOUN.match(sentence)
        or subject.split()[0].lower() in ("you", "we", "they", "it", "this", "these", "there", "i", "if")
    ):
        return None
    return close(_PRONOUN.sub(lambda _: subject + " ", sentence))


def frame(sentence: str, chance: random.Random, *, topic: str) -> str | None:
    """The sentence with what it is about in front, as a heading says it."""
    if not topic or len(topic.split()) > 7 or topic.endswith("?"):
        return None
    lead = chance.choice(
        (
            f"In {topic},",
            f"With {topic},",
            f"For {topic},",
            f"When it comes to {topic},",
            f"According to the section on {topic},",
        )
    )
    return close(f"{lead} {uncapitalize(sentence)}")


_GERUND_FIRST = re.compile(
    r"^([A-Z][a-z]+ing) ([^,;:()]{3,70}?) (requires|causes|improves|reduces|increases|prevents|allows"
    r"|creates|removes|deletes|helps) ([^;:]{4,120})[.]$"
)


def rephrase_gerund(sentence: str, chance: random.Random) -> str | None:
    """ "Deleting A removes B." becomes "When you delete A, this removes B."."""
    found = _GERUND_FIRST.match(sentence)
    if not found or found[1].lower() not in BASE_OF_GERUND:
        return None
    verb = BASE_OF_GERUND[found[1].lower()]
    return close(
        chance.choice(
            (f"if you {verb} {found[2]}, this {found[3]} {found[4]}", f"to {verb} {found[2]} {found[3]} {found[4]}")
        )
    )


REWORDINGS: Sequence[tuple[Rewording, float]] = (
    (replace_synonyms, 2.0),
    (move_condition, 2.0),
    (rephrase_condition, 2.0),
    (change_voice, 3.0),
    (nominalize, 1.5),
    (rephrase_you, 2.5),
    (rephrase_instruction, 3.0),
    (move_purpose, 2.5),
    (rephrase_permission, 3.0),
    (split_definition, 1.5),
    (shorten, 1.5),
    (reorder_list, 2.0),
    (turn_comparison, 3.0),
    (mark_code, 0.7),
    (swap_from_to, 1.5),
    (rephrase_gerund, 2.0),
)


def reword(sentence: str, chance: random.Random, *, steps: int) -> tuple[str, int]:
    """The sentence after at most so many different rewordings, and how many there were."""
    done = 0
    order = sorted(REWORDINGS, key=lambda entry: -(chance.random() ** (1 / entry[1])))
    for change, _ in order:
        if done == steps:
            break
        made = change(sentence, chance)
        if made and made != sentence and 3 < len(made.split()) < 48:
            sentence, done = made, done + 1
    return capitalize(sentence), done


def join(first: str, second: str, chance: random.Random) -> str:
    """Two sentences in one, without saying that one follows from the other."""
    word = chance.choice((", and", ";", ", while", ". In addition,", ", and also"))
    return close(f"{first.rstrip('.')}{word} {uncapitalize(second)}")


def _changed(before: str, after: str) -> str | None:
    return after if after != before else None
