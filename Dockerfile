ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json ./
COPY tools/build.mjs ./tools/
COPY src ./src
COPY docs/openapi.json ./docs/
# Appears in the log, in /readyz and in the metrics: --build-arg GIT_COMMIT=$(git rev-parse HEAD)
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
# Confines the workers, which decode files of strangers (docs/security.md).
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY bin ./bin
# Samples, until a volume is mounted over them.
COPY fixtures/originals /originals
# A number: Kubernetes does not know the names of an image's users (runAsNonRoot).
USER 1000:1000
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "bin/darkroom.mjs", "health"]
# In MiB. A heap that starts large is seldom collected: 2.2 ms of CPU for an avatar instead of 3.8 (see
# HEAP_GROWTH_PERCENT of src/main.ts).
CMD ["node", "--initial-heap-size=128", "dist/main.js"]
ARG GIT_COMMIT
LABEL org.opencontainers.image.title="Darkroom" \
      org.opencontainers.image.description="Media CDN origin and image transformation service" \
      org.opencontainers.image.url="https://github.com/darkroom-media/darkroom" \
      org.opencontainers.image.source="https://github.com/darkroom-media/darkroom" \
      org.opencontainers.image.documentation="https://github.com/darkroom-media/darkroom/blob/main/docs/deploy.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${GIT_COMMIT}"

# Adds a decoder for posters of videos: --target video (docs/deploy.md).
FROM service AS video
USER root
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/*
USER 1000:1000

# The default target.
FROM service
