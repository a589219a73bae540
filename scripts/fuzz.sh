#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all fuzz targets, as many at once as there are processors. See usage below.
set -euo pipefail

me=${0##*/}
cd "$(dirname "$0")/.."

usage() {
	cat <<EOF2
usage: $me HOURS
       $me --each DURATION

Runs every fuzz target, for HOURS in all (0.5 is half an hour) or for DURATION
each (5s), and prints a summary. A target ends at its first failing input, which
stays in testdata/fuzz of its package; the others go on. Inputs that reach new
code stay in Go's cache, and the next run begins with them.

Exit status: 0 nothing was found; 1 something was; 2 wrong usage.
EOF2
}

wrong() {
	printf '%s: %s\n' "$me" "$1" >&2
	usage >&2
	exit 2
}

each=
case ${1:-} in
-h | --help) usage; exit 0 ;;
--each)
	(($# == 2)) || wrong 'want one DURATION'
	each=$2
	[[ $each =~ ^[0-9]+(s|m|h|x)$ ]] || wrong "$each is not a duration"
	;;
*)
	(($# == 1)) || wrong 'want HOURS'
	[[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]] || wrong "$1 is not a number of hours"
	seconds=$(awk -v h="$1" 'BEGIN { printf "%d", h * 3600 }')
	;;
esac

work=$(mktemp -d)
# summary prints the results of all targets and exits.
summary() {
	local status=$?
	if [[ -s $work/summary ]]; then
		printf '\n%-40s %12s %8s  %s\n' target executions new result
		sort "$work/summary" |
			awk '{ at = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", at); printf "%-40s %12d %8d  %s\n", $1, $2, $3, at; sum += $2 } END { printf "%-40s %12d\n", "all", sum }'
		printf 'ran for %d s\n' "$SECONDS"
		cat "$work"/*.failed 2>/dev/null && status=1
	fi
	rm -rf "$work"
	exit "$status"
}
trap summary EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Only the inputs of the repository are used at first.
unset BTFGEN_CORPUS BTFGEN_DEBIAN

go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}' ./... | while read -r pkg file; do
	if [[ $pkg ]]; then sed -nE "s,^func (Fuzz[A-Za-z0-9_]+)\(.*,$pkg \1,p" "$file"; fi
done | sort >"$work/targets"
[[ -s $work/targets ]] || { printf '%s: no fuzz targets\n' "$me" >&2; exit 1; }

jobs=$(getconf _NPROCESSORS_ONLN) module=$(go list -m) cache=$(go env GOCACHE)/fuzz
export work module cache

# All targets of a package share a program, which is instrumented as by go test -fuzz, but only in this module's code: most of the time
# to build it went into other code, and inputs that reach new code in this module are found as soon, with three times the executions.
mkdir "$work/bin"
# shellcheck disable=SC2046 # a package has no spaces
go test -c -ldflags=-w -gcflags="$module/...=-d=libfuzzer" -o "$work/bin/" $(cut -d' ' -f1 "$work/targets" | uniq)

if [[ ! $each ]]; then
	rounds=$((($(wc -l <"$work/targets") + jobs - 1) / jobs))
	left=$(((seconds - SECONDS) / rounds))
	each=$((left > 1 ? left : 1))s
fi
export each

# ended_in_time LOG reports whether a target only failed because its time ran out during an input, which fuzzers before Go 1.27 may
# report as a failure (https://go.dev/issue/75804). It then names no input, unlike for real failures.
ended_in_time() {
	[[ $(grep -A1 '^--- FAIL: ' "$1" | sed -n '2s/^ *//p') == 'context deadline exceeded' ]] &&
		! grep -qE 'Failing input|panic:|_test\.go:[0-9]+:' "$1"
}

# run PACKAGE TARGET fuzzes as go test -fuzz does, in the directory of the package, with one worker.
run() {
	local name=${1#"$module/"} log result=passed
	log=$work/${name//\//_}.$2
	printf '%s %s, %s\n' "$1" "$2" "$each"
	if ! (cd "$name" && "$work/bin/${1##*/}.test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$each" -test.fuzzminimizetime 100x \
		-test.fuzzcachedir "$cache/$1" -test.parallel 1 -test.paniconexit0) >"$log" 2>&1; then
		if ended_in_time "$log"; then
			result='passed, the last input was not done'
		else
			result=FAILED
			cp "$log" "$log.failed"
		fi
	fi
	# fuzz: elapsed: 3s, execs: 4500 (1500/sec), new interesting: 7 (total: 90)
	awk -v name="$name.$2" -v result="$result" '
		/^fuzz: elapsed: .* execs: / {
			for (i = 1; i < NF; i++) {
				if ($i == "execs:") execs = $(i + 1)
				if ($i == "interesting:") new = $(i + 1)
			}
		}
		END { print name, execs + 0, new + 0, result }' "$log" >>"$work/summary"
}
export -f run ended_in_time
xargs -P "$jobs" -L 1 bash -c 'run "$@"' - <"$work/targets"
