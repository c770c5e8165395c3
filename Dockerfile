# docker build -t penstock . && docker run --rm -v "$PWD/demo-output:/penstock/demo-output" penstock
# builds penstock and runs its demo: a small GPT is trained, killed and resumed on other numbers of processes, and each token
# and loss is compared. `docker run --rm -it penstock bash` has the command `penstock` and all that the demo uses.
FROM debian:12
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates make python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /penstock
# What is installed changes less often than the sources: a layer of its own.
COPY requirements requirements
COPY scripts/setup scripts/setup
RUN scripts/setup && rm -rf /var/lib/apt/lists/*
COPY . .
RUN scripts/build && rm -rf build
ENV PATH=/penstock/.venv/bin:$PATH
# The ring of io_uring is refused by Docker's default seccomp profile; loaders then read by threads and pread.
CMD ["python", "examples/demo/run.py", "--out", "demo-output"]
