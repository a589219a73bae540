// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestDisabledHooks holds verdicts on hooks that kernels keep programs from.
func TestDisabledHooks(t *testing.T) {
	rep := runOn(t, "lsmhooks.bpfel")
	for k := range rep.Kernels {
		name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
		for program, since := range map[string]string{
			"open": "", "getprocattr": "6.12", "listsecurity": "6.12", "alloc_security": "7.0", "decode_session": "7.3",
		} {
			p, _ := find(t, rep, program, name)
			if p.Status[k] == Other {
				continue
			}
			want := MayFail
			if since == "" {
				want = OK
			} else if since == "6.12" && kernel.CompareVersions(release, since) >= 0 {
				want = Fails
			}
			// Not every kernel has each hook.
			found := findingsOn(p, k, FamilyTarget)
			missing := slices.ContainsFunc(found, func(f Finding) bool {
				return f.Code == AttachTargetMissing || f.Code == AttachTargetNoFunctions
			})
			if got := Worst(found); got != want && !missing {
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
			if p.Status[k] == Other {
				continue
			}
			want := OK
			switch {
			case since == "" && kernel.CompareVersions(release, "7.3") >= 0:
				want = MayFail
			case since == "":
				want = Fails
			case kernel.CompareVersions(release, since) < 0:
				want = MayFail
			}
			found := slices.DeleteFunc(findingsOn(p, k, FamilyTarget), func(f Finding) bool { return f.Code != AttachTargetHookSleeps })
			if got := Worst(found); got != want {
				t.Errorf("%s on %s: %s, want %s: %v", program, release, got, want, found)
			}
		}
	}
}

// TestSleepableFunctions holds verdicts on functions that programs which may sleep are attached to: they are those that are
// made for error injection.
func TestSleepableFunctions(t *testing.T) {
	const injection = "CONFIG_FUNCTION_ERROR_INJECTION=y\n"
	for config, want := range map[string]map[string]Status{
		"":                      {"of_call": Fails, "of_function": Fails}, // by a function that the BTF lacks
		usualConfig:             {"of_call": Fails, "of_function": Fails},
		usualConfig + injection: {"of_call": Fails, "of_function": Fails}, // which is not the configuration of this BTF
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

// TestVerifierSleepableHooks asks the running kernel for the hooks of LSM to which programs that may sleep can be attached.
// With -v the answers are logged: the paragraph of facts.txt is made of them.
func TestVerifierSleepableHooks(t *testing.T) {
	k := datedKernel(t)
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	var sleepable []string
	asked := 0
	for typ := range spec.All() {
		fn, ok := typ.(*btf.Func)
		if !ok || !strings.HasPrefix(fn.Name, "bpf_lsm_") {
			continue
		}
		id, err := spec.TypeID(fn)
		if err != nil {
			t.Fatal(err)
		}
		hook := strings.TrimPrefix(fn.Name, "bpf_lsm_")
		l := &loader{kind: uint32(ebpf.LSM), attach: uint32(ebpf.AttachLSMMac), btfID: uint32(id), flags: unix.BPF_F_SLEEPABLE}
		log, err := l.load(insn{Op: 0xb7})
		refused := strings.Contains(log, "is not sleepable")
		if !refused && err != nil {
			continue // it is no hook, or none for programs
		}
		asked++
		e := evaluation{pairing: &pairing{k: k}, pr: &bpfobj.Program{Attach: bpfobj.SectionOf("lsm.s/" + hook)}}
		e.lsmHook(hook)
		e.out = slices.DeleteFunc(e.out, func(f Finding) bool { return f.Code != AttachTargetHookSleeps })
		if got := Worst(e.out); refused && got == OK || !refused && got == Fails {
			t.Errorf("%s: %s, refused: %t: %s", hook, got, refused, log)
		}
		if !refused {
			sleepable = append(sleepable, hook)
		}
	}
	if asked == 0 {
		t.Skip("needs rights to load programs of LSM")
	}
	slices.Sort(sleepable)
	t.Logf("of %d hooks: %v", asked, sleepable)
}
