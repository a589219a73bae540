#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The checks that every change has to pass, also run by CI. They need Go; those that need more (bpftool, clang, root) are
# skipped with a message. With --quick, for a first patch, it runs only gofmt, go vet, staticcheck and 'go test ./...', whose
# tests then use fewer inputs. Environment:
#
#   BTFGEN_CORPUS  a directory of kernel BTFs for the tests over a whole corpus
#   BTFGEN_DEBIAN  a directory of unpacked packages with BPF objects
#   BTFGEN_RECORDED
#                  a file of what became of their programs on old kernels
#   BTFGEN_CASES   a directory of inputs that failed once, for TestCases
#   BTFGEN_FIELD   a directory of inputs from the field, for TestField
#   BTFGEN_OBJECTS a directory of large BPF objects, also for comparing speed with the last version
#   BTFGEN_SLOW    night for all tests with all inputs (default 1: nearly all)
#   FUZZTIME       time for each fuzz target (default 2s; 0 skips them)
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
--quick) quick=1 ;;
'') export BTFGEN_SLOW=${BTFGEN_SLOW:-1} ;; # nearly all that the tests can do
*) echo "usage: ${0##*/} [--quick]" >&2 && exit 2 ;;
esac

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.3.0

name='' began=0 times=''
# step NAME: starts a step and records the duration of the last one.
step() {
	[ -z "$name" ] || times+="$((SECONDS - began)) s  $name"$'\n'
	name=$* began=$SECONDS
	[ -z "$name" ] || printf '\n== %s\n' "$name"
}

step gofmt
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	printf 'not formatted:\n%s\n' "$unformatted" >&2
	exit 1
fi

packages=(./... ./internal/testing/testrepo/testdata/server) # patterns leave testdata out
step vet
go vet "${packages[@]}"

step staticcheck
go run "$staticcheck" "${packages[@]}"

if [ -n "${quick:-}" ]; then
	step 'go test ./...'
	go test -vet=off "${packages[@]}"
	step ''
	printf '\n%s' "$times"
	exit
fi

step 'go mod tidy'
go mod tidy -diff

step 'workflows of GitHub Actions'
go run "$actionlint" .github/workflows/*.yml

step 'builds for other machines and systems'
scripts/builds.sh

step 'start-up, size and dependencies'
# bound WHAT VALUE LIMIT UNIT: fails if the value is above the limit.
bound() {
	printf '%s: %s %s, at most %s\n' "$1" "$2" "$4" "$3"
	awk -v v="$2" -v l="$3" 'BEGIN { exit !(v != "" && v + 0 <= l + 0) }' || {
		printf '%s: too much\n' "$1" >&2
		exit 1
	}
}
# shellcheck source=scripts/bounds
. scripts/bounds
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build -tags urfave_cli_no_docs -o "$work/amd64" ./cmd/btfgen
go build -tags urfave_cli_no_docs -o "$work/btfgen" ./cmd/btfgen
GODEBUG=inittrace=1 "$work/btfgen" --version 2>&1 >/dev/null |
	awk '$1 == "init" { ms += $5; bytes += $8 } END { printf "%d %.2f\n", bytes, ms }' >"$work/init"
read -r bytes ms <"$work/init"
bound 'all init functions' "$bytes" "$start_up_bytes" "bytes, in $ms ms"
bound 'program for linux/amd64' "$(wc -c <"$work/amd64")" "$binary_bytes" bytes
GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build -o "$work/registry-amd64" ./cmd/btfgen-registry
go build -o "$work/btfgen-registry" ./cmd/btfgen-registry
GODEBUG=inittrace=1 "$work/btfgen-registry" --version 2>&1 >/dev/null |
	awk '$1 == "init" { ms += $5; bytes += $8 } END { printf "%d %.2f\n", bytes, ms }' >"$work/init"
read -r bytes ms <"$work/init"
bound 'all init functions of btfgen-registry' "$bytes" "$registry_start_up_bytes" "bytes, in $ms ms"
bound 'btfgen-registry for linux/amd64' "$(wc -c <"$work/registry-amd64")" "$registry_bytes" bytes
modules=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./pkg/archive | sort -u)
bound 'modules behind pkg/archive' "$(grep -c . <<<"$modules" || true)" "$archive_modules" "($(paste -sd' ' <<<"$modules"))"

step 'known vulnerabilities'
if go run "$govulncheck" ./... >"$work/vuln" 2>&1; then
	cat "$work/vuln"
elif grep -q '^govulncheck: fetching vulnerabilities' "$work/vuln"; then
	echo 'skipped: the database of vulnerabilities cannot be reached'
else
	cat "$work/vuln" >&2
	exit 1
fi

step 'objects of testdata/bpf'
if command -v clang-19 >/dev/null; then
	scripts/testdata-bpf.sh --check
else
	echo 'skipped: no clang-19 to rebuild testdata/bpf with'
fi

step libbtfa
if command -v cc >/dev/null && [ -f /usr/include/zstd.h ]; then
	make -s -C lib/c clean all test
	make -s -C lib/c clean
else
	echo 'skipped: needs a C compiler and libzstd-dev'
fi

step 'go test ./...'
# Most tests over the corpus read it several times. Decompressing it takes four seconds.
if [ -n "${BTFGEN_CORPUS:-}" ] && command -v xz >/dev/null; then
	export BTFGEN_UNPACKED=$work/corpus
	cp -rL --no-preserve=mode "$BTFGEN_CORPUS" "$BTFGEN_UNPACKED"
	find "$BTFGEN_UNPACKED" -name '*.xz' -exec xz -d {} +
fi
log=$work/log
# Tests often wait for a program, so that more packages are tested at once than there are processors. go vet has seen them above.
options=(-vet=off -ldflags=-w -timeout 30m -p $((2 * $(getconf _NPROCESSORS_ONLN))))
if ! go test "${options[@]}" -v ./... >"$log" 2>&1; then
	grep -avE '^=== ' "$log"
	exit 1
fi
# What passed, what was skipped and why, and the figures of the comparisons.
grep -aE '^(ok|no test files)|^ *--- SKIP|_test.go:[0-9]+: .*(needs|skip|no |not |compared|predicted|as loaded|identical|agree)' "$log"

step 'race detector'
# Except packages with a single goroutine, in code and tests. Larger inputs have no other goroutines.
go list ./... | grep -vE '/(btfgen/btfgen|examples|internal/(bpfobj|btf|btf/canonical|check/interp|minimize|report.*|text/.*|testing/.*))$' |
	env -u BTFGEN_CASES -u BTFGEN_FIELD -u BTFGEN_CORPUS -u BTFGEN_DEBIAN -u BTFGEN_OBJECTS -u BTFGEN_PACKAGES -u BTFGEN_SLOW xargs go test "${options[@]}" -race

step '32 bits'
# Not all kernels run 386 programs. QEMU of Debian 12 does not run Go's for 386, but those for arm.
bits32=()
if GOARCH=386 go test -run '^$' ./pkg/kernel >/dev/null 2>&1; then
	bits32=(GOARCH=386)
elif command -v qemu-arm >/dev/null; then
	bits32=(GOARCH=arm GOFLAGS=-exec=qemu-arm)
fi
if [ ${#bits32[@]} -gt 0 ]; then
	echo "${bits32[*]}"
	# The tests of other readers test programs of this machine.
	env -u BTFGEN_CASES -u BTFGEN_FIELD -u BTFGEN_CORPUS -u BTFGEN_DEBIAN -u BTFGEN_OBJECTS -u BTFGEN_PACKAGES -u BTFGEN_SLOW "${bits32[@]}" \
		go test "${options[@]}" -skip '^Test(C([A-Z]|$)|Readers|Python)' ./internal/btf ./internal/btf/canonical ./pkg/...
else
	echo 'skipped: this machine runs neither 386 programs nor qemu-arm'
fi

step 'figures against bpftool and an earlier version'
if [ -z "${BTFGEN_CORPUS:-}" ] || [ -z "${BTFGEN_DEBIAN:-}" ]; then
	echo 'skipped: BTFGEN_CORPUS and BTFGEN_DEBIAN do not name what they were measured with'
elif ! PATH=$PATH:/usr/sbin:/sbin command -v bpftool >/dev/null; then
	echo 'skipped: bpftool is not installed'
else
	# Others may use this machine, too: every change is held to a limit that their noise does not reach, and each night to a lower one.
	limit=1.3
	[ "$BTFGEN_SLOW" != night ] || limit=1.15
	# slow FIGURE...: measures, and sets slow to the figures in which something always took more CPU time than with the earlier
	# version. Both run in turns.
	: >"$work/speeds"
	slow() {
		scripts/bench.sh --quick --speed "$work/speed" "$@"
		cat "$work/speed" >>"$work/speeds"
		mapfile -t slow < <(awk -v limit=$limit '{ k = $1 " " $2; if (!(k in least) || $3 < least[k]) least[k] = $3 }
			END { for (k in least) if (least[k] > limit) { sub(/ .*/, "", k); print k } }' "$work/speeds" | sort -u)
	}
	slow single objects real
	for _ in 1 2; do
		[ ${#slow[@]} -gt 0 ] || break
		echo 'once more, since others may use this machine, too'
		slow "${slow[@]}"
	done
	if [ ${#slow[@]} -gt 0 ]; then
		echo "slower than $limit times the version before: ${slow[*]}" >&2
		exit 1
	fi
fi

if [ "${FUZZTIME:-2s}" != 0 ]; then
	step 'fuzzing'
	scripts/fuzz.sh --each "${FUZZTIME:-2s}"
fi

step 'clean tree'
if git rev-parse --git-dir >/dev/null 2>&1 && [ -n "$(git status --porcelain)" ]; then
	git status --short
	if [ -n "${CI:-}" ]; then
		echo 'the checks left changes behind' >&2
		exit 1
	fi
fi
step ''
printf '\n%s' "$times" | sort -rn
echo 'all checks passed'
