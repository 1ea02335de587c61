"""Examples for the API reference: requests to a small book about a lighthouse, and their responses."""

from typing import Any

Example = dict[str, Any]

QUESTION = "How often does the fog horn sound?"
QUOTE = "The horn gives two blasts of three seconds every ninety seconds."
PAGE = "https://lighthouse.example/signals/fog"
SESSION_ID = "03043f46-8a15-406c-88ad-adca16422897"
ANSWER_ID = "b426577c-9fd3-4d62-9b35-801226415294"
CHUNK_ID = "f632e9c3-7bce-57d6-8243-435255d094fa"
TIMESTAMP = "2026-11-16T16:49:50.658278+00:00"

CHAT: Example = {"role": "user", "content": QUESTION}

PASSAGE: Example = {
    "chunk_id": CHUNK_ID,
    "document_id": "f632e9c3-7bce-57d6-822b-1b2c05f61ba9",
    "text": f"{QUOTE} Ships know Brannock Point by this pattern.",
    "score": 0.66,
    "position": 1,
    "url": PAGE,
    "title": "Fog signals",
    "chunk_index": 1,
    "token_count": 21,
    "heading_hierarchy": ["Fog signals", "The horn's pattern"],
    "module_name": "Signals",
    "chapter_id": "signals/fog",
    "anchor": "the-horns-pattern",
    "rerank_score": 1.41,
    "start": 111,
    "fence": "",
}
CONTEXT: Example = {
    "query": "fog horn",
    "results": [PASSAGE],
    "retrieved_at": TIMESTAMP,
    "filter_applied": "",
    "cache_hit": False,
    "total_tokens": 21,
}
CITATION: Example = {
    "number": 1,
    "title": "Fog signals",
    "url": f"{PAGE}#the-horns-pattern:~:text=The%20horn%20gives%20two%20blasts,ninety%20seconds.",
    "score": 0.66,
    "chunk_id": CHUNK_ID,
    "quote": QUOTE,
    "start": 0,
    "end": 64,
    "verified": True,
    "excerpt": QUOTE,
}
METADATA: Example = {
    "response_time_ms": 31.8,
    "index_generation": "g000001",
    "embedding_time_ms": 9.4,
    "retrieval_time_ms": 5.1,
    "reranking_time_ms": 92.4,
    "generation_time_ms": 12.7,
    "proof_time_ms": 0.0,
    "first_token_ms": None,
    "chunk_count": 1,
    "cache_hit": False,
    "reading": "full",
    "searches": 1,
    "passages_left_out": 0,
    "exchanges_left_out": 0,
    "removed": [],
    "proof": [],
    "confidence": 0.97,
}
ANSWER: Example = {
    "answer": f"{QUOTE} [1]",
    "outcome": "answered",
    "citations": [CITATION],
    "sources": [PASSAGE],
    "model": "extractive",
    "metadata": METADATA,
    "suggestions": [],
    "turn_number": 1,
    "tokens_used": 0,
    "session_id": SESSION_ID,
    "id": ANSWER_ID,
    "created_at": TIMESTAMP,
    "grounded": True,
    "retrieval_performed": True,
    "retrieval_count": 1,
    "retrieved_sources": [PAGE],
}
SESSION: Example = {
    "id": SESSION_ID,
    "user_id": "",
    "model": "",
    "status": "completed",
    "created_at": TIMESTAMP,
    "turn_count": 1,
    "retrieval_count": 1,
    "total_tokens": 175,
    "max_history": 20,
}
_DEFAULTS: Example = {"timestamp": TIMESTAMP, "tool_calls": [], "tool_call_id": None, "name": None, "metadata": {}}
MESSAGES: Example = {
    "session_id": SESSION_ID,
    "messages": [
        {"id": "6c1d0c0e-57a4-4a3c-8d61-0d3f6f6a2b11", **CHAT, "citations": [], "token_count": 8} | _DEFAULTS,
        {
            "id": "9a0f7d52-1c7b-4a2e-9d44-5b1c8a7e3f20",
            "role": "assistant",
            "content": ANSWER["answer"],
            "citations": [CITATION],
            "token_count": 16,
        }
        | _DEFAULTS,
    ],
}
RATING: Example = {"response_id": ANSWER_ID, "rating": "down", "reason": "It does not say why."}
FEEDBACK: Example = RATING | {"rated_at": TIMESTAMP}

ERROR: Example = {
    "error": "invalid_input",
    "message": "top_k: Input should be less than or equal to 10",
    "user_message": "Your question couldn't be processed. Please rephrase.",
    "detail": None,
    "status_code": 400,
    "retry_after": None,
    "recoverable": False,
    "request_id": "5f0c2a8be3c94c0c9f5b6a0e6d1f3a27",
}
OPENAI_ERROR: Example = {name: value for name, value in ERROR.items() if name != "error"} | {
    "message": "the last message must be the user's: it is the question.",
    "type": "invalid_request_error",
    "param": None,
    "code": ERROR["error"],
}
_URL_CITATION: Example = {"url": CITATION["url"], "title": "Fog signals", "start_index": 65, "end_index": 68}
COMPLETION: Example = {
    "id": f"chatcmpl-{ANSWER_ID}",
    "object": "chat.completion",
    "created": 1794847790,
    "model": "bythebook",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": ANSWER["answer"],
                "refusal": None,
                "annotations": [{"type": "url_citation", "url_citation": _URL_CITATION}],
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "bythebook": ANSWER | {"session_id": None},
}
MODELS: Example = {
    "object": "list",
    "data": [{"id": "bythebook", "object": "model", "created": 1794847780, "owned_by": "bythebook"}],
}

EXAMPLES: dict[str, list[Example]] = {
    "AgentRequest": [{"query": QUESTION}, {"query": QUESTION, "top_k": 3, "stream": True}],
    "AgentResponse": [ANSWER],
    "ChatCompletion": [COMPLETION],
    "ChatRequest": [{"model": "bythebook", "messages": [CHAT]}],
    "ErrorResponse": [ERROR],
    "Feedback": [FEEDBACK],
    "FeedbackRequest": [RATING],
    "Health": [{"status": "ready"}],
    "Messages": [MESSAGES],
    "Models": [MODELS],
    "OpenAIErrorResponse": [{"error": OPENAI_ERROR}],
    "RetrievalContext": [CONTEXT],
    "SearchRequest": [{"query": "fog horn", "top_k": 3}],
    "Session": [SESSION],
}
"""The examples of each schema by its name."""
