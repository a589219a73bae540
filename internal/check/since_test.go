// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestSince checks the verdicts on what verifiers accept since some release, whether they reach it or not.
func TestSince(t *testing.T) {
	late := expected{before: "6.18", status: rule.Fails}
	early := expected{before: "5.13", status: rule.Fails}
	expectVerdicts(t, "since", map[string]expected{
		"overrides": {status: rule.MayFail}, "overrides_guarded": {status: rule.Guarded}, "six_arguments": {},
		"many_arguments": {on: map[string]rule.Status{"x86_64/5.10": rule.Fails, "x86_64/6.1": rule.Fails}, attach: true},
		"wide_argument":  {on: map[string]rule.Status{"x86_64/5.10": rule.Fails, "x86_64/6.1": rule.Fails}, attachFrom: "6.1"},
		"user_read":      {}, "user_written": late,
		"user_written_guarded": {before: "6.18", status: rule.Guarded},
		"kernel_written":       {status: rule.Fails, attachFrom: "6.18"},
		"calls_back":           early, "calls_back_guarded": early,
	})
}

// TestRegisters checks the verdicts on functions whose arguments take more registers than a trampoline passes on.
func TestRegisters(t *testing.T) {
	rep := runOn(t, "since.bpfel")
	for _, tt := range []struct {
		program, kernel string
		want            rule.Status
	}{
		{"many_arguments", "debian/11/x86_64/5.10.0-30-amd64", rule.Fails},
		{"many_arguments", "debian/12/x86_64/6.1.0-47-amd64", rule.Fails},
		{"many_arguments", "debian/13/x86_64/6.12.107+deb13-amd64", rule.OK},
		{"many_arguments", "debian/12/arm64/6.1.0-50-arm64", rule.Fails}, // ftrace on arm64 makes no direct calls then
		{"wide_argument", "debian/12/x86_64/6.1.0-47-amd64", rule.Fails},
		{"wide_argument", "debian/13/x86_64/6.12.107+deb13-amd64", rule.OK},
		{"wide_argument", "debian/12/arm64/6.1.0-50-arm64", rule.Fails},
		{"six_arguments", "debian/11/x86_64/5.10.0-30-amd64", rule.OK},
		{"six_arguments", "debian/12/x86_64/6.1.0-47-amd64", rule.OK},
	} {
		p, k := find(t, rep, tt.program, tt.kernel)
		if p.Status[k] != tt.want || p.Load[k] != rule.OK {
			t.Errorf("%s on %s: %s, %s to load, want %s: %v", tt.program, tt.kernel, p.Status[k], p.Load[k], tt.want, p.Findings)
		}
	}
}

// TestHelperSettings checks the verdicts on a helper that kernels have only with a setting of their build.
func TestHelperSettings(t *testing.T) {
	for _, tt := range []struct {
		config, symbols string
		want, guarded   rule.Status
	}{
		{"", "", rule.MayFail, rule.Guarded},
		{usualConfig, "", rule.Fails, rule.Guarded},
		{usualConfig + "CONFIG_BPF_KPROBE_OVERRIDE=y\n", "", rule.OK, rule.OK},
		{"", usualSymbols, rule.Fails, rule.Guarded},
		{"", usualSymbols + "t bpf_override_return\n", rule.OK, rule.OK},
	} {
		rep := runKnown(t, "since.bpfel", tt.config, tt.symbols)
		for program, want := range map[string]rule.Status{"overrides": tt.want, "overrides_guarded": tt.guarded} {
			p, k := find(t, rep, program, rep.Kernels[0].Name)
			if got := statusOf(p, k, rule.FamilyHelper); got != want {
				t.Errorf("%s with configuration %q and symbols %q: %s, want %s: %v", program, tt.config, tt.symbols, got, want, p.Findings)
			}
		}
	}
}
