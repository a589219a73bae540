// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestSince checks the verdicts on what verifiers accept since some release, whether they reach it or not.
func TestSince(t *testing.T) {
	late := expected{before: "6.18", status: Fails}
	early := expected{before: "5.13", status: Fails}
	expectVerdicts(t, "since", map[string]expected{
		"overrides": {status: MayFail}, "overrides_guarded": {status: Guarded}, "six_arguments": {},
		"many_arguments": {on: map[string]Status{"x86_64/5.10": Fails, "x86_64/6.1": Fails}, attach: true},
		"wide_argument":  {on: map[string]Status{"x86_64/5.10": Fails, "x86_64/6.1": Fails}, attachFrom: "6.1"},
		"user_read":      {}, "user_written": late,
		"user_written_guarded": {before: "6.18", status: Guarded},
		"kernel_written":       {status: Fails, attachFrom: "6.18"},
		"calls_back":           early, "calls_back_guarded": early,
	})
}

// TestRegisters checks the verdicts on functions whose arguments take more registers than a trampoline passes on.
func TestRegisters(t *testing.T) {
	rep := runOn(t, "since.bpfel")
	for _, tt := range []struct {
		program, kernel string
		want            Status
	}{
		{"many_arguments", "debian/11/x86_64/5.10.0-30-amd64", Fails},
		{"many_arguments", "debian/12/x86_64/6.1.0-47-amd64", Fails},
		{"many_arguments", "debian/13/x86_64/6.12.107+deb13-amd64", OK},
		{"many_arguments", "debian/12/arm64/6.1.0-50-arm64", MayFail}, // its ftrace makes no direct calls
		{"wide_argument", "debian/12/x86_64/6.1.0-47-amd64", Fails},
		{"wide_argument", "debian/13/x86_64/6.12.107+deb13-amd64", OK},
		{"wide_argument", "debian/12/arm64/6.1.0-50-arm64", MayFail},
		{"six_arguments", "debian/11/x86_64/5.10.0-30-amd64", OK},
		{"six_arguments", "debian/12/x86_64/6.1.0-47-amd64", OK},
	} {
		p, k := find(t, rep, tt.program, tt.kernel)
		if p.Status[k] != tt.want || p.Load[k] != OK {
			t.Errorf("%s on %s: %s, %s to load, want %s: %v", tt.program, tt.kernel, p.Status[k], p.Load[k], tt.want, p.Findings)
		}
	}
}

// TestHelperSettings checks the verdicts on a helper that kernels have only with a setting of their build.
func TestHelperSettings(t *testing.T) {
	for _, tt := range []struct {
		config, symbols string
		want, guarded   Status
	}{
		{"", "", MayFail, Guarded},
		{usualConfig, "", Fails, Guarded},
		{usualConfig + "CONFIG_BPF_KPROBE_OVERRIDE=y\n", "", OK, OK},
		{"", usualSymbols, Fails, Guarded},
		{"", usualSymbols + "t bpf_override_return\n", OK, OK},
	} {
		rep := runKnown(t, "since.bpfel", tt.config, tt.symbols)
		for program, want := range map[string]Status{"overrides": tt.want, "overrides_guarded": tt.guarded} {
			p, k := find(t, rep, program, rep.Kernels[0].Name)
			if got := statusOf(p, k, FamilyHelper); got != want {
				t.Errorf("%s with configuration %q and symbols %q: %s, want %s: %v", program, tt.config, tt.symbols, got, want, p.Findings)
			}
		}
	}
}
