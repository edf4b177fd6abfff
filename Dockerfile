# One image, two commands: `serve` (the API, the default) and `worker`.
#
# The base is pinned by tag. To pin it by digest, look the digest up and pass it:
#   docker buildx imagetools inspect python:3.13-slim-bookworm --format '{{.Manifest.Digest}}'
#   docker build --build-arg PYTHON_IMAGE=python:3.13-slim-bookworm@sha256:... .
ARG PYTHON_IMAGE=python:3.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
RUN ["python", "-m", "venv", "--without-pip", "/opt/assay"]
COPY requirements/runtime.txt /build/runtime.txt
RUN ["pip", "--python", "/opt/assay/bin/python", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", "/build/runtime.txt"]
COPY app /opt/assay/src/app
COPY worker /opt/assay/src/worker
RUN ["python", "-m", "compileall", "-q", "/opt/assay/src"]

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="Assay" \
      org.opencontainers.image.description="Scores for language models' outputs that can be audited, over HTTP" \
      org.opencontainers.image.licenses="MIT"
RUN ["useradd", "--system", "--uid", "10001", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", "assay"]
COPY --from=build /opt/assay /opt/assay
ENV PATH=/opt/assay/bin:$PATH PYTHONPATH=/opt/assay/src PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    ASSAY_HOST=0.0.0.0 ASSAY_PORT=8000
WORKDIR /opt/assay/src
USER 10001:10001
# The API, and a worker's metrics.
EXPOSE 8000 9464
# Checks the API; a worker's container checks its metrics port instead, see docker-compose.yml.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['ASSAY_PORT']}/livez\", timeout=2)"]
ENTRYPOINT ["python", "-m", "app.cli"]
CMD ["serve"]
