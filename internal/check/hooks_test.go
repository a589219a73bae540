// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestDisabledHooks holds verdicts on hooks that kernels keep programs from.
func TestDisabledHooks(t *testing.T) {
	rep := runOn(t, "lsmhooks.bpfel")
	for k := range rep.Kernels {
		name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
		for program, since := range map[string]string{
			"open": "", "getprocattr": "6.12", "listsecurity": "6.12", "alloc_security": "6.19", "decode_session": "7.2",
		} {
			p, _ := find(t, rep, program, name)
			if p.Status[k] == rule.Other {
				continue
			}
			want := rule.MayFail
			if since == "" {
				want = rule.OK
			} else if kernel.CompareVersions(release, since) >= 0 {
				want = rule.Fails
			}
			// Not every kernel has each hook.
			found := findingsOn(p, k, rule.FamilyTarget)
			missing := slices.ContainsFunc(found, func(f rule.Finding) bool {
				return f.Code == rule.AttachTargetMissing || f.Code == rule.AttachTargetNoFunctions
			})
			if got := rule.Worst(found); got != want && !missing {
				t.Errorf("%s on %s: %s, want %s: %v", program, name, got, want, found)
			}
		}
	}
}

// TestSleepableHooks holds verdicts on hooks that not every kernel lets programs sleep in.
func TestSleepableHooks(t *testing.T) {
	rep := runOn(t, "sleepable.bpfel")
	for k := range rep.Kernels {
		release := rep.Kernels[k].Key().Release
		for program, since := range map[string]string{"committed": "5.10", "open": "6.1", "mkdir": "6.12", "permission": ""} {
			p, _ := find(t, rep, program, rep.Kernels[k].Name)
			if p.Status[k] == rule.Other {
				continue
			}
			want := rule.OK
			switch {
			case since == "" && kernel.CompareVersions(release, "7.3") >= 0:
				want = rule.MayFail
			case since == "":
				want = rule.Fails
			case kernel.CompareVersions(release, since) < 0:
				want = rule.MayFail
			}
			found := slices.DeleteFunc(findingsOn(p, k, rule.FamilyTarget), func(f rule.Finding) bool { return f.Code != rule.AttachTargetHookSleeps })
			if got := rule.Worst(found); got != want {
				t.Errorf("%s on %s: %s, want %s: %v", program, release, got, want, found)
			}
		}
	}
}

// TestSleepableFunctions holds verdicts on functions that programs which may sleep are attached to: they are those that are
// made for error injection.
func TestSleepableFunctions(t *testing.T) {
	const injection = "CONFIG_FUNCTION_ERROR_INJECTION=y\n"
	for config, want := range map[string]map[string]rule.Status{
		"":                      {"of_call": rule.Fails, "of_function": rule.Fails}, // the BTF lacks the function that shows the setting
		usualConfig:             {"of_call": rule.Fails, "of_function": rule.Fails},
		usualConfig + injection: {"of_call": rule.Fails, "of_function": rule.Fails}, // contradicts this BTF
	} {
		rep := runKnown(t, "sleepable.bpfel", config, "")
		for program, want := range want {
			p, k := find(t, rep, program, rep.Kernels[0].Name)
			if p.Load[k] != want {
				t.Errorf("%q: %s: %s, want %s: %v", config, program, p.Load[k], want, p.Findings)
			}
		}
	}
}
