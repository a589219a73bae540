// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
)

// TestAdviceHelps wants no advice to check for something that the kernel has: the check is true there, and the program fails as before.
func TestAdviceHelps(t *testing.T) {
	for _, code := range []relo.Code{
		"helper-forbidden", "helper-sleeps", "helper-setting-missing", "helper-map", "helper-license",
		"kfunc-forbidden", "kfunc-sleeps", "kfunc-not-one", "ksym-type",
	} {
		e := Of(code)
		if e == nil {
			t.Errorf("no %s", code)
			continue
		}
		for _, check := range []string{"Check bpf_core_enum_value_exists", "check bpf_ksym_exists", "Declare these __weak"} {
			if strings.Contains(e.Fix, check) || strings.Contains(e.Example, "bpf_core_enum_value_exists(") || strings.Contains(e.Example, "bpf_ksym_exists(") {
				t.Errorf("%s: %s (%s)", code, e.Fix, e.Example)
				break
			}
		}
	}
}

// TestAdviceIsForEveryLoader wants advice that names a function of libbpf to name what does the same with ebpf-go.
func TestAdviceIsForEveryLoader(t *testing.T) {
	for libbpf, ebpfgo := range map[string]string{"bpf_program__set_autoload()": "spec.Programs", "bpf_map__set_autocreate()": "spec.Maps"} {
		for _, family := range Families() {
			for _, e := range family.Codes {
				if strings.Contains(e.Fix, libbpf) && !strings.Contains(e.Fix, ebpfgo) {
					t.Errorf("%s: %s", e.Code, e.Fix)
				}
			}
		}
	}
}
