"""The words of a question: tokens, content words, and the English word lists that identify a follow-up.

Few of these words occur in other languages, whose questions stay unchanged.
"""

import re
from collections.abc import Sequence

FUNCTION = frozenset(
    """
    a an the and or but nor so if when while since because as than then though although unless until whether
    of to in on at by for from with without within into onto over under about between among through during against
    across per via upon out up down off there
    i me my mine we us our ours you your yours myself yourself i'm i've i'd i'll you're you've we're im ive
    am is are was were be been being isn't aren't wasn't weren't there's
    do does did doing done don't doesn't didn't have has had having haven't hasn't hadn't
    can could may might must shall should will would can't cannot couldn't won't wouldn't shouldn't able possible
    what which who whom whose where why how what's who's where's how's whats
    not any some all every much many few lot lots very really just only even still yet already ever never
    let let's lets get got getting go going come make makes made want wanted wants need needed needs know known
    understand understood tell say said give gave show explain describe define clarify elaborate summarize summarise
    discuss mean means meant think like see look help find ask asking wonder wondering hear heard mention mentioned
    called thing things something anything nothing everything stuff kind sort way ways bit little
    actually basically exactly maybe perhaps
    """.split()
)
"""Stop words: they do not name a subject."""

COURTESY = frozenset(
    """
    please thanks thank hello hi hey ok okay sure well oh great good nice cool right yes no bye goodbye sorry
    excuse wow hm hmm um
    """.split()
)
"""Conversational fillers. Alone they ask nothing."""

POINTING = frozenset(
    """
    it its itself it's they them their theirs themselves they're this that that's these those
    he him his himself he's she her hers herself she's one ones both latter former
    """.split()
)
"""Pronouns that refer to the conversation."""

POINTING_INSIDE = frozenset("it its it's they them their that he him his she her".split())
"""Pronouns that often refer to something earlier in the same question."""

CONTINUING = frozenset("more other others another else also too same again instead further next additional".split())
"""Words that ask for an addition to the previous answer."""

RELATIONAL = frozenset(
    """
    advantage advantages alternative alternatives answer answers aspect aspects basics benefit benefits best better
    cause causes characteristics choice choices code common compare comparison con cons consequence consequences context
    cost costs definition definitions detail details difference differences different difficult disadvantage
    disadvantages documentation downside downsides drawback drawbacks easy effect effects example examples expensive
    feature features first free function functions goal goals happen happened happens history idea impact importance
    important information install installation instructions issue issues kinds last limit limitations limits link list
    long main major maximum meaning method methods minimum name names number objective objectives often option options
    origin origins overview part parts performance popular possibilities prerequisites price pricing pro problem
    problems process pros purpose reason reasons related relevant requirement requirements result results risk risks
    role second secure setup sign signs similar simple size solution solutions source sources start started step steps
    summary support supported symptom symptoms syntax time treatment treatments type types usage use used useful uses
    using version versions work worked working works year years
    """.split()
)
"""Words that need an "of ..." complement. A question with only such words omits its subject."""

ABOUT_THE_BOOK = frozenset(
    """
    basics cost costs documentation feature features first free goal goals history install installation installing name
    overview parts popular prerequisites price pricing purpose requirements setup start started support supported usage
    use used version versions
    """.split()
)
"""Relational words that also ask about the book as a whole: "How do I get started?"."""

JOINING = frozenset("and or but so also then ok okay".split())
"""Words that attach a fragment to the previous question. A whole question after them stands alone."""

CONTINUED = (
    ("what", "about"), ("how", "about"),
    ("what", "else"), ("how", "else"), ("where", "else"), ("who", "else"), ("when", "else"), ("why", "else"),
    ("anything", "else"), ("what", "other"), ("which", "other"), ("any", "other"), ("are", "there", "other"),
    ("are", "there", "any", "other"), ("is", "there", "another"), ("is", "there", "any", "other"),
)  # fmt: skip
"""Openings of questions that continue the previous one although they are complete."""

FINITE = frozenset(
    """
    what which who whom whose when where why how what's who's where's how's whats is are was were am do does did don't
    doesn't didn't have has had haven't hasn't can can't could couldn't may might must should shall will won't would
    isn't aren't wasn't there's i'm i've it's
    """.split()
)
"""Words that make a clause. A short question without one is a fragment or a bare name."""

REQUESTS = frozenset(
    "tell give show explain describe list compare define summarize summarise help find discuss let make create".split()
)
"""Verbs that begin a whole request."""

FRAGMENT = frozenset(
    """
    for in on with without from to at by via using as under inside outside only just not into onto per through during
    between before after than including excluding instead except
    """.split()
)
"""Words that begin a fragment: "for a single field?"."""

EXAMPLES = frozenset("example examples code snippet snippets sample samples".split())
"""Words that ask for an example."""

OF_EXAMPLES = frozenset(
    """
    minimal working concrete complete full quick short small tiny brief real actual usage runnable one some another more
    different other
    """.split()
)
"""Words that describe an example without naming its subject."""

THE_BOOK = frozenset(
    """
    book manual documentation docs guide tutorial course library package project framework tool site website software
    product page repository handbook
    """.split()
)
"""Nouns after "this" that name the book or what the reader has in hand, not the conversation."""

ANSWERED_BEFORE = (
    ("you", "said"), ("you", "mentioned"), ("you", "wrote"), ("you", "showed"), ("you", "gave"), ("you", "quoted"),
    ("your", "answer"), ("your", "reply"), ("your", "example"), ("previous", "answer"), ("last", "answer"),
    ("previous", "question"), ("the", "above"), ("the", "same", "thing"), ("the", "same", "way"),
    ("the", "same", "apply"), ("the", "same", "work"), ("the", "same", "true"), ("the", "same", "for"),
    ("the", "same", "with"), ("the", "same", "in"),
)  # fmt: skip
"""Phrases that refer to what was said."""

ACTS = frozenset(
    """
    use set change call run enable disable configure pass need want fix avoid explain handle install remove add create
    start stop read write open close override get make see describe try choose pick find solve prevent test
    """.split()
)
"""Verbs after which "that" is an object."""

WILLING = frozenset("i you we they to not just only please can't cannot don't should must can".split())
"""Words between which and "that" a verb stands."""

BEFORE_THAT = frozenset(
    """
    is was are were does do did can could will would should has have about of for to with like by in after before than
    at from on why how and or but know mean so into through using without doing
    """.split()
)
"""Words after which "that" is a pronoun, not a conjunction."""

AFTER_EMPTY_IT = frozenset(
    """
    possible necessary worth worthwhile better best safe ok okay advisable recommended required mandatory good bad
    easy hard difficult true take takes matter enough common normal legal allowed mean means cost costs faster
    """.split()
)
"""Words with which "it" is a dummy subject, as in "Is it possible to …"."""

CLAUSE = frozenset("and or but if when since because so while then although though unless".split())
"""Conjunctions that start a clause, whose "it" may refer to the clause before."""

ALTERNATIVES = frozenset("or and than vs versus".split())
"""Words between the two alternatives of "the former" and "the latter"."""

ELSEWHERE = frozenset("today tonight tomorrow yesterday weather joke".split())
"""Questions about current events are never about the subject of the conversation."""

_WORD = re.compile(r"[^\W_]+(?:[-.'_+#&/][^\W_]+)*[+#]*|[.;:?!,]")


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of a text."""
    return _WORD.findall(text.replace("’", "'"))


def is_word(word: str) -> bool:
    """True for a word, false for a punctuation mark."""
    return word[0].isalnum()


def content_words(words: Sequence[str]) -> tuple[str, ...]:
    """Words that name the subject, as written, without duplicates."""
    found: dict[str, str] = {}
    for word in words:
        term = word.removesuffix("'s")
        if is_word(term) and not is_stop_word(term):
            found.setdefault(stem(term), term)
    return tuple(found.values())


def is_stop_word(word: str) -> bool:
    """True if the word could occur in a question about any subject."""
    lists = (FUNCTION, COURTESY, POINTING, CONTINUING, RELATIONAL)
    return any(word.lower() in each for each in lists)


def stem(term: str) -> str:
    """Strip a plural ending: "clusters" becomes "cluster"."""
    low = term.lower()
    ending = next((end for end in ("ing", "ed", "es", "s") if low.endswith(end) and len(low) > len(end) + 3), "")
    return low.removesuffix(ending)
