"""Which questions lean on the conversation: after an unrelated turn most stand alone, and only pointers do not."""

from __future__ import annotations

import pytest

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rules import make_standalone

UNRELATED = (
    Exchange("How do I sharpen a plane iron?", "With a stone.", ("Sharpening", "Stones")),
    Exchange("Does the lathe run backwards?", "Yes, below 400 turns a minute.", ("The lathe",)),
    Exchange("What is a rabbet?", "A step cut along an edge.", ("Joints", "Glue")),
)

STANDING_ALONE = """
How do I get started?
Where do I begin?
What is this book about?
Who maintains this project?
What are the requirements?
Which version do I need?
How do I install the toolkit?
How do I upgrade?
How can I contribute?
What license does the project have?
Which wood is best for a cutting board?
What is the difference between a mortise and a tenon?
How do I make sure that the glue holds?
How do I know that a board is dry?
What does it mean when a blade chatters?
Is it possible to bend oak without steam?
How long does it take to dry a plank?
Does it cost more to order boards by post?
Can I use both nails and screws?
How do I clean a brush before storing it?
How do I draw a template and cut it out?
Does a bandsaw lose its tension when it gets warm?
Does the saw stop if its guard opens?
What happens if a belt breaks?
What happens to the varnish when I sand the table?
Why does my drill smoke?
Which bits can be sharpened?
How does one choose a chisel?
Can I cut more than one board at a time?
How many clamps are enough for one panel?
Is there a way that dust settles faster?
How do I fit several drawers at once?
Can I use the same jig for several sizes?
How do I share a bench with another person?
What other oils does linseed replace in old recipes?
So how do I store veneer?
Then how do I flatten a board?
ok, how do I set the fence?
thanks! how do I change the belt?
Great, where do I keep the offcuts?
In winter, how do I heat the workshop?
For a large table, which joint is strongest?
With a dull blade, what goes wrong?
By the way, what is a spokeshave?
Changing the subject, which gloves should I wear?
I get this message: motor overload
Motor overload at start
No spindle found
Could not open port 3
dovetail jig
safety glasses
quickstart
install
Tell me about wood fillers
Tell me more about Japanese saws
Explain how grain direction matters
Show me code for the milling program
Give me an example of a drawer plan
List the parts of a vise
Compare oil and wax
What is the best way to test this tool?
How do I use the clamp that holds round pieces?
How do I handle that kind of wood which splinters?
What was Maria Ferber's first chair made of?
What does error E7 mean?
Do I need a licence for the laser?
How are offcuts recycled?
Are there any sanding discs for metal?
What do the numbers on sandpaper mean?
When was the first bandsaw built?
Can children use the scroll saw?
""".strip().splitlines()

LEANING = """
How do I turn it off?
Is it on by default?
When should I use it?
What is its default value?
Who invented it?
How can I create one?
Which one is better?
How do they differ?
Do they rust?
Can I limit their number?
What are these for?
How do I change this?
Is this safe?
Where is that described?
Does that work outdoors?
What do you mean by that?
Can you summarize that?
How do I use that option?
What is that setting called?
And what does that cost?
So how do I clean it?
ok, how do I undo it?
thanks, but what if it breaks?
why?
why not?
how?
how so?
since when?
tell me more
go on
more details please
and then?
What about softwood?
How about plywood?
And what about cherry?
and for softwood?
or with a hand tool?
but only for oak?
and the small one?
And the handle?
for a single board?
in winter?
on concrete?
with gloves?
without power?
only for beginners?
just for repairs?
instead of glue?
from both sides?
no, I meant the handle
I meant the small lathe
sorry, I mean for metal
no, the outer edge
not the blade, the guard
No, I was asking about the stand
What else can I sharpen?
anything else?
Are there other options?
Is there another way?
Does the same apply to pine?
as you said, which stone?
explain your answer
the previous answer in one sentence
What is the difference to a scraper?
What are the drawbacks?
What are the alternatives?
show me an example
example?
code please
Can you give me a code snippet?
a minimal example with pine?
How about an example?
What does the first source say?
""".strip().splitlines()


def test_the_sets_are_large_enough() -> None:
    assert min(len(set(STANDING_ALONE)), len(set(LEANING))) >= 60


@pytest.mark.parametrize("question", STANDING_ALONE)
def test_a_question_that_stands_alone_is_searched_as_it_is(question: str) -> None:
    for exchange in UNRELATED:
        found = make_standalone(question, [exchange])
        assert (found.text, found.searches, found.depends, found.unclear) == (question, (question,), False, False)


@pytest.mark.parametrize("question", LEANING)
def test_a_pointer_a_fragment_or_a_correction_leans_on_the_latest_answer(question: str) -> None:
    for exchange in UNRELATED:
        found = make_standalone(question, [exchange])
        assert (found.depends, found.unclear) == (True, False)
        assert found.text != question


@pytest.mark.parametrize(
    ("question", "text"),
    [
        pytest.param("for one field?", "How do I hide columns in the report for one field?", id="a fragment"),
        pytest.param("and in PDF?", "How do I hide columns in the report in PDF?", id="a fragment after and"),
        pytest.param("no, I meant rows", "How do I hide columns in the report rows?", id="a correction"),
        pytest.param("no, in the chart", "How do I hide columns in the report in the chart?", id="a denial"),
        pytest.param("not the report, the chart", "How do I hide columns in the report the chart?", id="instead"),
    ],
)
def test_a_fragment_completes_the_question_before_it(question: str, text: str) -> None:
    history = [Exchange("What is a dashboard?"), Exchange("How do I hide columns in the report?")]
    found = make_standalone(question, history)
    assert (found.text, found.searches, found.depends) == (text, (text,), True)


def test_a_fragment_after_a_fragment_takes_its_place() -> None:
    history = [Exchange("How do I hide columns in the report?"), Exchange("for one field?")]
    assert make_standalone("on paper?", history).text == "How do I hide columns in the report on paper?"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        pytest.param("show me an example", "example of hide columns in the report", id="an example"),
        pytest.param("code please", "code example of hide columns in the report", id="code"),
        pytest.param(
            "a snippet with Python?", "code example of hide columns in the report with python", id="with something"
        ),
    ],
)
def test_an_example_is_one_of_the_answered_subject(question: str, text: str) -> None:
    found = make_standalone(question, [Exchange("How do I hide columns in the report?")])
    assert (found.text, found.wants_code, found.depends) == (text, True, True)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("How does the example work?", id="about an example"),
        pytest.param("Show me an example of a pivot table", id="of something else"),
    ],
)
def test_a_question_about_an_example_does_not_ask_for_one(question: str) -> None:
    assert not make_standalone(question, [Exchange("How do I hide columns in the report?")]).wants_code


REFUSED = Exchange("How do I breed llamas?", "I don't have information about that.", answered=False)


@pytest.mark.parametrize("question", ["How do I do it?", "why?", "in Peru?", "show me an example", "And for alpacas?"])
def test_a_refused_question_is_never_the_subject(question: str) -> None:
    answered = Exchange("What is a rabbet?", "A step.", ("Joints",))
    text = make_standalone(question, [answered, REFUSED]).text
    assert "rabbet" in text
    assert "llama" not in text
    alone = make_standalone(question, [REFUSED])
    assert (alone.text, alone.depends and not alone.unclear) == (question, False)


def test_a_question_about_the_whole_book_has_a_second_reading() -> None:
    found = make_standalone("What are the requirements?", [Exchange("What is a rabbet?")])
    assert found.alternative is not None
    assert (found.alternative.text, found.alternative.depends) == ("What are the requirements? rabbet", True)
    assert make_standalone("What is a dado?", [Exchange("What is a rabbet?")]).alternative is None


def test_the_subject_of_a_question_about_the_whole_book_is_carried_on() -> None:
    history = [Exchange("What is a rabbet?"), Exchange("How do I install?")]
    assert make_standalone("on Windows?", history).text == "How do I install on Windows?"
