// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
)

// callees are the functions that one calls, or has called back.
type callees struct {
	calls  []int // each once, in order of the code
	shared bool  // its result is kept for other programs and kernels: calls nest no deeper than verifiers accept
}

// findCallees returns those of each function.
func findCallees(o *bpfobj.Object) []callees {
	const (
		deepest = 8
		busy    = deepest + 1 // while its callees are looked at: it calls itself
	)
	all, depth := make([]callees, len(o.Funcs)), make([]int, len(o.Funcs))
	for fn := range o.Funcs {
		all[fn].calls = o.Funcs[fn].Calls()
	}
	var visit func(fn int) int
	visit = func(fn int) int {
		if depth[fn] == 0 {
			depth[fn] = busy
			d := 1
			for _, c := range all[fn].calls {
				d = max(d, 1+visit(c))
			}
			depth[fn] = min(d, busy)
			all[fn].shared = d <= deepest
		}
		return depth[fn]
	}
	for fn := range o.Funcs {
		visit(fn)
	}
	return all
}

// globalMemory is the fact that global functions can have pointers to memory as arguments.
const globalMemory = "memory for global functions"

// takeMemory returns which functions are global and have an argument that points to memory of a known size, which is not the context of a
// program (btf_get_prog_ctx_type in kernel/bpf/btf.c).
func takeMemory(o *bpfobj.Object) map[int]bool {
	named := make(map[string]int)
	for i := range o.Funcs {
		if o.Funcs[i].Global {
			named[o.Funcs[i].Name] = i
		}
	}
	out := make(map[int]bool)
	if o.BTF == nil || len(named) == 0 {
		return out
	}
	eachPrototype(o.BTF, func(name string, proto btf.Type) {
		fn, ok := named[name]
		for i := range proto.Vlen() {
			if ok && pointsToMemory(o.BTF, proto.Param(i).Type) {
				out[fn] = true
			}
		}
	})
	return out
}

// eachPrototype calls f for each function of an object's BTF.
func eachPrototype(b *btf.BTF, f func(name string, proto btf.Type)) {
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		if t.Kind() != btf.KindFunc {
			continue
		}
		if proto := b.Type(t.Ref()); proto.Kind() == btf.KindFuncProto {
			f(string(t.Name()), proto)
		}
	}
}

// pointsToMemory reports whether a type is a pointer to something of a known size, except a context.
func pointsToMemory(b *btf.BTF, id btf.TypeID) bool {
	t, ok := b.SkipMods(id)
	if !ok || t.Kind() != btf.KindPtr {
		return false
	}
	to, ok := b.SkipMods(t.Ref())
	if _, err := b.SizeOf(t.Ref()); !ok || err != nil || to.Kind() == btf.KindVoid {
		return false
	}
	return to.Kind() != btf.KindStruct || !contextStructs[string(b.Name(to.NameOff))]
}

// contextStructs are the contexts of programs: include/linux/bpf_types.h, and the registers, which have a name for each machine.
var contextStructs = map[string]bool{
	"__sk_buff": true, "xdp_md": true, "bpf_sock": true, "bpf_sock_addr": true, "bpf_sock_ops": true, "sk_msg_md": true, "bpf_flow_keys": true,
	"bpf_perf_event_data": true, "bpf_raw_tracepoint_args": true, "bpf_cgroup_dev_ctx": true, "bpf_sysctl": true, "bpf_sockopt": true,
	"sk_reuseport_md": true, "bpf_sk_lookup": true, "bpf_nf_ctx": true, "pt_regs": true, "user_pt_regs": true, "user_regs_struct": true,
}
