# SPDX-License-Identifier: Apache-2.0
# btfgen alone: static programs, for an ordinary user, in an image without anything else.
#
#   docker build -t btfgen .
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" btfgen generate --btf kernels -o tracer.btfa tracer.bpf.o
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG TARGETOS TARGETARCH VERSION=
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags urfave_cli_no_docs -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/ ./cmd/btfgen ./cmd/btfgen-registry

FROM scratch
COPY LICENSE NOTICE /usr/share/doc/btfgen/
COPY --from=build /out/btfgen /out/btfgen-registry /usr/bin/
ENV PATH=/usr/bin
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["btfgen"]
