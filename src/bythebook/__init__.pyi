# The public names and their modules. `__init__.py` reads this file and imports each name on first use.
from bythebook.answers import AgentRequest as AgentRequest
from bythebook.answers import AgentResponse as AgentResponse
from bythebook.answers import AnswerCompleted as AnswerCompleted
from bythebook.answers import Outcome as Outcome
from bythebook.answers import ResponseMetadata as ResponseMetadata
from bythebook.answers import SourcesFound as SourcesFound
from bythebook.answers import State as State
from bythebook.answers import StateChanged as StateChanged
from bythebook.answers import TextDelta as TextDelta
from bythebook.book import Book as Book
from bythebook.book import SyncBook as SyncBook
from bythebook.conversations import Conversation as Conversation
from bythebook.conversations import ConversationTurn as ConversationTurn
from bythebook.conversations import Message as Message
from bythebook.conversations import ToolCall as ToolCall
from bythebook.errors import AccessDenied as AccessDenied
from bythebook.errors import BookError as BookError
from bythebook.errors import CohereAPIError as CohereAPIError
from bythebook.errors import ConfigurationError as ConfigurationError
from bythebook.errors import ContextOverflow as ContextOverflow
from bythebook.errors import DeadlineExceeded as DeadlineExceeded
from bythebook.errors import InputError as InputError
from bythebook.errors import NotFound as NotFound
from bythebook.errors import ProviderError as ProviderError
from bythebook.errors import QdrantConnectionError as QdrantConnectionError
from bythebook.errors import RateLimited as RateLimited
from bythebook.errors import RetrievalError as RetrievalError
from bythebook.errors import Unavailable as Unavailable
from bythebook.feedback import Feedback as Feedback
from bythebook.index import Filters as Filters
from bythebook.ingest import IngestReport as IngestReport
from bythebook.llm.config import AgentConfig as AgentConfig
from bythebook.llm.search_tool import RetrievalToolResponse as RetrievalToolResponse
from bythebook.retrieval import Citation as Citation
from bythebook.retrieval import RetrievalContext as RetrievalContext
from bythebook.retrieval import RetrievalResult as RetrievalResult
from bythebook.server.schemas import ErrorResponse as ErrorResponse
from bythebook.settings import Settings as Settings

__all__: list[str]
__version__: str
