# SPDX-License-Identifier: Apache-2.0
# btfgen alone: static programs, for an ordinary user, in an image without anything else.
#
#   docker build -t btfgen .
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" btfgen generate --btf kernels -o tracer.btfa tracer.bpf.o
#
# The target fetch also has what 'corpus fetch' and 'check --boot' start: apt, dnf, pahole, xz, qemu and keys of distributions.
#
#   docker build -t btfgen-fetch --target fetch .
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" btfgen-fetch corpus fetch debian/12 -o kernels.btfc
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG TARGETOS TARGETARCH VERSION=
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags urfave_cli_no_docs -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/ ./cmd/btfgen ./cmd/btfgen-registry

FROM debian:13.1-slim AS fetch
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates cpio debian-archive-keyring dnf dnf-plugins-core pahole qemu-system-x86 rpm ubuntu-keyring xz-utils && rm -rf /var/lib/apt/lists/*
COPY LICENSE NOTICE /usr/share/doc/btfgen/
COPY --from=build /out/btfgen /out/btfgen-registry /usr/bin/
ENV HOME=/tmp
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["btfgen"]

FROM scratch
ARG VERSION=
LABEL org.opencontainers.image.title=btfgen \
      org.opencontainers.image.description="minimized BTF for BPF CO-RE objects and many kernels" \
      org.opencontainers.image.source=https://github.com/btfgen/btfgen \
      org.opencontainers.image.documentation=https://github.com/btfgen/btfgen/blob/main/docs/howto-packaging.md \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION
COPY LICENSE NOTICE /usr/share/doc/btfgen/
COPY --from=build /out/btfgen /out/btfgen-registry /usr/bin/
ENV PATH=/usr/bin
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["btfgen"]
