#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds for other machines and systems. CI runs it while it installs packages, and scripts/check.sh again.
set -euo pipefail
cd "$(dirname "$0")/.."
GOARCH=arm go vet ./... # 32 bits; compiles the tests, too
unoptimized=-gcflags='all=-N -l' # takes two thirds of the time
GOARCH=s390x go build "$unoptimized" ./...
GOOS=darwin GOARCH=arm64 go build "$unoptimized" ./cmd/... ./pkg/...
GOOS=windows go vet "$unoptimized" ./...
