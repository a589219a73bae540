// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
)

// OwnBTFFile is where a running kernel has BTF of its own.
const OwnBTFFile = "/sys/kernel/btf/vmlinux"

// loadsModules is a struct of every kernel that can load modules.
const loadsModules = "module"

// ownBTF says whether the kernel has BTF of its own, in /sys/kernel/btf, when it runs, and by what that is decided. Its BTF in the corpus
// may have been made of DWARF.
func (k *Inventory) ownBTF() (has facts.Presence, by string) {
	e := corpus.OwnBTFEvidence{Configured: k.known.config != nil, Maker: k.maker}
	_, e.Set = k.known.config[corpus.OwnBTFSetting]
	_, e.Init = k.find(corpus.OwnBTFInit, btf.KindFunc)
	_, e.Module = k.find(corpus.OwnBTFModule, btf.KindStruct)
	_, e.BPFInit = k.find(corpus.BPFInit, btf.KindFunc)
	decided, by := e.Decide()
	switch {
	case decided == btfc.HasBTF:
		return facts.Yes, by
	case decided == btfc.WithoutBTF:
		return facts.No, by
	case k.noOwnBTF:
		return facts.No, "--no-kernel-btf"
	}
	return facts.Perhaps, ""
}

// withoutOwnBTF judges what needs BTF of the running kernel's own: libbpf's bpf_object__load_vmlinux_btf, cilium/ebpf's btf.LoadKernelSpec.
func (k *Inventory) withoutOwnBTF(subject string) Finding {
	f := Finding{Status: Fails, Code: RunningKernelNone, Subject: subject}
	switch has, by := k.ownBTF(); has {
	case facts.No:
		f.Name = by
	case facts.Perhaps:
		f.Status, f.Code = MayFail, RunningKernelUnknown
	default:
		return Finding{}
	}
	return f
}

// needsOwnBTF returns what an attachment needs the kernel's own BTF for, "" if it does not.
func needsOwnBTF(s *bpfobj.Section) string {
	if s != nil && (attachesByBTF(s.Kind) || s.Kind == bpfobj.AttachOps) {
		return s.Prefix
	}
	return ""
}

// ownTypes judges an attachment on a kernel without BTF of its own.
func (e *Evaluation) ownTypes() {
	if what := needsOwnBTF(e.pr.Attach); what != "" {
		if f := e.k.withoutOwnBTF(what); f.Status != OK {
			e.add(f)
		}
	}
}

// typedKsyms judges kfuncs and typed ksyms on a kernel without BTF of its own. Even for weak ones libbpf loads no program then.
func (s *Scene) typedKsyms() (l []Finding) {
	for i := range s.o.Externs {
		x := &s.o.Externs[i]
		if x.Kind != bpfobj.ExternKsym || x.Type == 0 {
			continue
		}
		if f := s.k.withoutOwnBTF(x.Name); f.Status != OK {
			if f.Stops = s.loader.stopsWithout(); x.Weak {
				// Other loaders load programs without weak externs.
				if f.Loader = Libbpf; s.loader != Libbpf {
					continue
				}
			}
			l = append(l, f)
		}
	}
	return l
}
