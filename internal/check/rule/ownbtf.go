// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// OwnBTFFile is where a running kernel has BTF of its own.
const OwnBTFFile = "/sys/kernel/btf/vmlinux"

const (
	settingOwnBTF = settingPrefix + "DEBUG_INFO_BTF"
	// A static initcall of kernel/bpf/sysfs_btf.c, which is compiled with settingOwnBTF only (341dfcf8d78e).
	ownBTFInit = "btf_vmlinux_init"
	// A static initcall of kernel/bpf/inode.c: BTF that has it lists such functions (b2197755b263).
	bpfInit = "bpf_init"
	// A struct of every kernel that can load modules.
	loadsModules = "module"
	// A struct of kernel/bpf/btf.c, which is compiled with CONFIG_DEBUG_INFO_BTF_MODULES only (36e68442d1af).
	ownBTFModule = "btf_module"
)

// ownBTF says whether the kernel has BTF of its own, in /sys/kernel/btf, when it runs, and by what that is decided. Its BTF in the corpus
// may have been made of DWARF.
func (k *Inventory) ownBTF() (has facts.Presence, by string) {
	_, set := k.known.config[settingOwnBTF]
	_, compiled := k.find(ownBTFInit, btf.KindFunc)
	_, forModules := k.find(ownBTFModule, btf.KindStruct)
	_, lists := k.find(bpfInit, btf.KindFunc)
	switch {
	case set:
		return facts.Yes, settingOwnBTF
	case k.known.config != nil:
		return facts.No, "no " + settingOwnBTF
	case k.maker != "":
		return facts.No, "types made from DWARF by " + k.maker
	case compiled:
		return facts.Yes, "function " + ownBTFInit
	case forModules:
		return facts.Yes, "struct " + ownBTFModule
	case lists:
		return facts.No, "no function " + ownBTFInit
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
func (p *Pairing) typedKsyms() (l []Finding) {
	for i := range p.o.Externs {
		x := &p.o.Externs[i]
		if x.Kind != bpfobj.ExternKsym || x.Type == 0 {
			continue
		}
		if f := p.k.withoutOwnBTF(x.Name); f.Status != OK {
			if f.Stops = ObjectStops; x.Weak {
				f.Loader = Libbpf // cilium/ebpf loads programs without them
			}
			l = append(l, f)
		}
	}
	return l
}
