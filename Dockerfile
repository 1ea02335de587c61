# A server with the local models inside: it starts without a network. docs/docker.md says how to run it.
FROM python:3.11-slim AS build

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/bythebook/bin:$PATH
RUN python -m venv /opt/bythebook
WORKDIR /src

# What changes least comes first: an edit of the code does not fetch the libraries or the model again.
COPY requirements-server.lock ./
RUN pip install --require-hashes --requirement requirements-server.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
COPY docs docs
RUN pip install --no-deps --no-build-isolation . \
    && BYTHEBOOK_MODEL_FOLDER=/opt/models bythebook model download


FROM python:3.11-slim

RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin bythebook \
    && install --directory --owner bythebook --group bythebook /data /book
COPY --from=build /opt/bythebook /opt/bythebook
COPY --from=build /opt/models /opt/models

ENV PATH=/opt/bythebook/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    BYTHEBOOK_DATA_DIR=/data \
    BYTHEBOOK_MODEL_FOLDER=/opt/models \
    BYTHEBOOK_HOST=0.0.0.0 \
    BYTHEBOOK_PORT=8000
USER 10001:10001
WORKDIR /book
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
ENTRYPOINT ["bythebook"]
CMD ["serve"]
