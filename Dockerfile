ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json ./
COPY tools/build.mjs ./tools/
COPY src ./src
COPY docs/openapi.json ./docs/
# Shown in the log, by /readyz and in the metrics: --build-arg GIT_COMMIT=$(git rev-parse HEAD)
ARG GIT_COMMIT
RUN npm run build && npm prune --omit=dev

FROM node:${NODE_VERSION}-slim AS service
# Two malloc arenas: glibc's default of eight per core keeps freed image buffers for ever.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    HOST=0.0.0.0 \
    PORT=3000 \
    STORAGE_DIR=/originals \
    EXPLORER=off
# What confines the workers, which decode what strangers upload (docs/security.md).
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap \
 && rm -rf /var/lib/apt/lists/* \
 && mkdir /originals
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY bin ./bin
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "bin/darkroom.mjs", "health"]
# A heap that may be so large, in MiB, from the start is seldom collected: 2.2 ms of CPU for an avatar instead of 3.8
# (see HEAP_GROWTH_PERCENT of src/main.ts).
CMD ["node", "--initial-heap-size=128", "dist/main.js"]

# With a decoder, for posters of videos: --target video (docs/deploy.md).
FROM service AS video
USER root
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/*
USER node

# What is built without a target.
FROM service
