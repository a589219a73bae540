// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"strings"
	"testing"
)

const printed = `{
	"a": {
		"now": [{"cpu": 3, "wall": 0.25, "maxrss": 5000000, "runs": 1}, {"cpu": 1, "wall": 0.5, "maxrss": 7000000, "runs": 1},
			{"cpu": 2, "wall": 0.125, "maxrss": 6000000, "runs": 1}],
		"before": [{"cpu": 4, "wall": 1, "maxrss": 2000000, "runs": 1}]
	},
	"b": {"now": [{"cpu": 8, "wall": 1, "maxrss": 1000000, "runs": 20, "failed": 2}, {"cpu": 4, "wall": 2, "maxrss": 1000000, "runs": 20, "failed": 1}]},
	"c": {
		"now": [{"cpu": 1, "wall": 1, "maxrss": 1000000, "runs": 1}],
		"before": [{"cpu": 1, "wall": 1, "maxrss": 1000000, "runs": 1, "failed": 1}]
	}
}`

func read(t *testing.T) measured {
	m, err := readMeasured(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestExpand(t *testing.T) {
	m := read(t)
	for text, want := range map[string]string{
		"none; {":                                         "none; {",
		"CPU {cpu a}, {cpu b}; wall {wall a}":             "CPU 2000.0 ms, 4000.0 ms; wall 250.0 ms",
		"{memory a}{failed a}{failed b}":                  "7 MB (failed in 3 of 40 runs)",
		"{%.2f: cpu b / cpu a} times, {%.1f s: cpu a}":    "2.00 times, 2.0 s",
		"{cpu a / 4}, {%.1f h: cpu a / 4 * 1e5 / 3600}":   "500.0 ms, 13.9 h",
		"{%.2f: cpu b / 100 * 10 / cpu a}, {%.1f: 7 / 2}": "0.20, 3.5",
	} {
		if got, err := m.expand(text); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"{cpu none}":           "no measurement",
		"{memory none}":        "invalid syntax",
		"{cpu}":                "no measurement",
		"{}":                   "operand is missing",
		"{%.1f: cpu a /}":      "operand is missing",
		"{%.1f: cpu a + 1}":    "not an operator",
		"{wall a} {fast none}": "invalid syntax",
	} {
		if _, err := m.expand(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestCompare(t *testing.T) {
	var lines, speed strings.Builder
	if err := read(t).compare("few", &lines, &speed); err != nil {
		t.Fatal(err)
	}
	want := `few       a: CPU time at least 1000.0 ms, before 4000.0 ms: 0.250 times as much; peak memory 7 MB, before 2 MB
few       c: not compared, now, before (failed in 1 of 1 runs)
`
	if lines.String() != want || speed.String() != "few a 0.250\n" {
		t.Errorf("got %s%s, want %s", lines.String(), speed.String(), want)
	}
	if m, err := readMeasured(strings.NewReader("")); len(m) != 0 || err != nil {
		t.Errorf("without measurements: got %v, %v", m, err)
	}
}
