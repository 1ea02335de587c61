"""The models of the OpenAPI document match the JSON that is sent."""

from __future__ import annotations

import jsonschema_rs
import pytest

from bythebook import answers, retrieval
from bythebook.conversations import Message
from bythebook.errors import NotFound
from bythebook.index import Filters
from bythebook.serialization import error_to_dict, to_json
from bythebook.server import schemas
from bythebook.server.api_docs import EXAMPLES
from bythebook.server.routes import completions
from tests.support.passages import result
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}


async def test_responses_match_their_models(house: ServedBook) -> None:
    session = (await house.client.post("/v1/sessions")).json()
    schemas.Session.model_validate(session)
    said = (await house.client.post("/v1/ask", json=QUESTION | {"session_id": session["id"]})).json()
    schemas.AgentResponse.model_validate(said)
    schemas.Messages.model_validate((await house.client.get(f"/v1/sessions/{session['id']}/messages")).json())
    schemas.RetrievalContext.model_validate((await house.client.post("/v1/search", json=QUESTION)).json())
    rated = await house.client.post(
        "/v1/feedback", json={"response_id": said["id"], "rating": "down", "reason": "Old."}
    )
    schemas.Feedback.model_validate(rated.json())
    chat = {"messages": [{"role": "user", "content": QUESTION["query"]}]}
    completions.ChatCompletion.model_validate((await house.client.post("/v1/chat/completions", json=chat)).json())
    completions.Models.model_validate((await house.client.get("/v1/models")).json())
    schemas.ErrorResponse.model_validate((await house.client.get("/nowhere")).json())
    no_chat = await house.client.post("/v1/chat/completions", json={"messages": []})
    completions.OpenAIErrorResponse.model_validate(no_chat.json())


async def test_response_models_have_the_fields_of_the_json() -> None:
    found = result("The horn sounds.")
    cited = retrieval.to_citation(found, 0, 8, number=1)
    for kind, noun in (
        (schemas.RetrievalResult, found),
        (schemas.Citation, cited),
        (schemas.RetrievalContext, retrieval.RetrievalContext("horn", (found,))),
        (schemas.ResponseMetadata, answers.ResponseMetadata(1.0, "g000001")),
        (schemas.SentenceProof, answers.SentenceProof("It sounds.", "kept", "it stands there")),
        (schemas.Message, Message("user", "Why?")),
    ):
        assert set(kind.model_fields) == set(to_json(noun)), kind
    assert set(schemas.ErrorResponse.model_fields) == set(error_to_dict(NotFound("no")))


async def test_a_request_converts_to_an_agent_request() -> None:
    asked = schemas.AskRequest(
        query=" horn ", filters=schemas.FiltersBody(module="m"), selected_text="x", selection_mode="only"
    )
    assert asked.to_domain() == answers.AgentRequest(
        "horn", filters=Filters(module="m"), selected_text="x", selection_mode="only"
    )
    assert set(schemas.AskRequest.model_fields) == set(answers.AgentRequest.__dataclass_fields__)


async def test_every_operation_is_described(house: ServedBook) -> None:
    reference = (await house.client.get("/openapi.json")).json()
    for path, methods in reference["paths"].items():
        for method, route in methods.items():
            assert route["summary"], path
            assert route.get("description"), (method, path)
            assert "422" not in route["responses"], (method, path)
    assert "HTTPValidationError" not in reference["components"]["schemas"]


async def test_examples_match_their_schemas(house: ServedBook) -> None:
    document = house.app.openapi()
    for name, examples in EXAMPLES.items():
        whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        for example in examples:
            jsonschema_rs.validate(whole, example)
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            for received in (call.get("requestBody", {}), *call["responses"].values()):
                shown = received.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
                assert not shown or shown.rpartition("/")[2] in EXAMPLES, (method, path)


async def test_every_operation_names_its_scope(house: ServedBook) -> None:
    document = house.app.openapi()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    named = {call["operationId"]: call["security"] for calls in document["paths"].values() for call in calls.values()}
    assert named["ask"] == [{"key": ["ask"]}, {}]
    assert named["search"] == [{"key": ["search"]}, {}]
    assert named["live"] == []
    assert len(named) == sum(map(len, document["paths"].values()))
