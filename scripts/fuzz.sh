#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all fuzz targets, one after the other. See usage below.
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
found=0
# summary prints the results of all targets and exits.
summary() {
	local status=$?
	if [[ -s $work/summary ]]; then
		printf '\n%-40s %12s %8s  %s\n' target executions new result
		awk '{ at = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", at); printf "%-40s %12d %8d  %s\n", $1, $2, $3, at; sum += $2 } END { printf "%-40s %12d\n", "all", sum }' "$work/summary"
		printf 'ran for %d s\n' "$SECONDS"
	fi
	rm -rf "$work"
	((status)) || status=$found
	exit "$status"
}
trap summary EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Only the inputs of the repository are used at first.
unset BTFGEN_CORPUS BTFGEN_DEBIAN

module=$(go list -m)
go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}' ./... | while read -r pkg file; do
	if [[ $pkg ]]; then sed -nE "s,^func (Fuzz[A-Za-z0-9_]+)\(.*,$pkg \1,p" "$file"; fi
done | sort >"$work/targets"
mapfile -t targets <"$work/targets"
((${#targets[@]})) || { printf '%s: no fuzz targets\n' "$me" >&2; exit 1; }

# ended_in_time reports whether a target only failed because its time ran out during an input, which fuzzers before Go 1.27 may
# report as a failure (https://go.dev/issue/75804). It then names no input, unlike for real failures.
ended_in_time() {
	[[ $(grep -A1 '^--- FAIL: ' "$work/log" | sed -n '2s/^ *//p') == 'context deadline exceeded' ]] &&
		! grep -qE 'Failing input|panic:|_test\.go:[0-9]+:' "$work/log"
}

for i in "${!targets[@]}"; do
	read -r pkg target <<<"${targets[i]}"
	for=$each
	if [[ ! $each ]]; then
		# What is left, shared by those that are left; building takes its part.
		left=$(((seconds - SECONDS) / (${#targets[@]} - i)))
		for=$((left > 1 ? left : 1))s
	fi
	printf '%s %s, %s\n' "$pkg" "$target" "$for"
	result=passed
	if ! go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$for" -fuzzminimizetime 100x >"$work/log" 2>&1; then
		if ended_in_time; then
			result='passed, the last input was not done'
		else
			result=FAILED found=1
			cat "$work/log"
		fi
	fi
	# fuzz: elapsed: 3s, execs: 4500 (1500/sec), new interesting: 7 (total: 90)
	awk -v name="${pkg#"$module/"}.$target" -v result="$result" '
		/^fuzz: elapsed: .* execs: / {
			for (i = 1; i < NF; i++) {
				if ($i == "execs:") execs = $(i + 1)
				if ($i == "interesting:") new = $(i + 1)
			}
		}
		END { print name, execs + 0, new + 0, result }' "$work/log" >>"$work/summary"
done
