// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// prototypes is what a tree of the Linux kernel says of helpers and types of programs: scripts/facts-prototypes.sh.
type prototypes struct {
	helpers  map[string]*prototype
	typed    map[string][]*prototype // by name: all prototypes with a pointer to a struct of the kernel
	contexts map[string]string       // by type of programs
	ids      map[string]string       // structs
}

// prototype is the struct bpf_func_proto of a helper.
type prototype struct {
	result, id string
	args       []string
	sleeps     bool
	gpl        bool
}

// implementations are functions that are not called like their helper.
var implementations = map[string]string{
	"probe_read": "bpf_probe_read_compat", "probe_read_str": "bpf_probe_read_compat_str", "skb_output": "bpf_skb_event_output", "xdp_output": "bpf_xdp_event_output",
	"fib_lookup": "bpf_skb_fib_lookup",
}

func readPrototypes(t *testing.T) *prototypes {
	t.Helper()
	text, err := os.ReadFile("testdata/prototypes.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := &prototypes{make(map[string]*prototype), make(map[string][]*prototype), make(map[string]string), make(map[string]string)}
	for line := range strings.Lines(string(text)) {
		switch w := strings.Fields(line); w[0] {
		case "helper":
			p.helpers[w[1]] = &prototype{w[2], w[3], w[4:9], slices.Contains(w[9:], "sleeps"), slices.Contains(w[9:], "gpl")}
			if strings.Contains(line, "ARG_PTR_TO_BTF_ID") {
				p.typed[w[1]] = append(p.typed[w[1]], p.helpers[w[1]])
			}
		case "program":
			p.contexts[w[1]] = w[2]
		case "id":
			p.ids[w[1]] = w[2]
		}
	}
	return p
}

// typed are functions that some types of programs call as a helper, with a pointer to a struct of the kernel.
var typed = map[string]string{
	"get_socket_cookie": "bpf_get_socket_ptr_cookie", "setsockopt": "bpf_sk_setsockopt", "getsockopt": "bpf_sk_getsockopt",
	"sk_storage_get": "bpf_sk_storage_get_tracing", "sk_storage_delete": "bpf_sk_storage_delete_tracing",
}

// object returns the argument that is a pointer to a struct of the kernel. The helper does not take a reference away.
func (p *prototypes) object(id int64) (o KernelPointer) {
	name := strings.TrimPrefix(HelperName(id), "bpf_")
	for _, proto := range slices.Concat(p.typed[HelperName(id)], p.typed[implementations[name]], p.typed[typed[name]]) {
		for i, arg := range proto.args {
			if strings.HasPrefix(arg, "ARG_PTR_TO_BTF_ID") && !strings.Contains(arg, "OBJ_RELEASE") {
				o = KernelPointer{asm.R1 + asm.Register(i), o.Null || strings.Contains(arg, "NULL")}
			}
		}
	}
	return o
}

// of returns the prototype of a helper, nil if the tree does not show it.
func (p *prototypes) of(id int64) *prototype {
	name := HelperName(id)
	if other := implementations[strings.TrimPrefix(name, "bpf_")]; other != "" {
		name = other
	}
	return p.helpers[name]
}

// memory returns the memory that arguments are, sizes and functions.
func (p *prototype) memory() (memory []Memory, sizes []Size, callback Callback, writes []asm.Register) {
	for i, arg := range p.args {
		r := asm.R1 + asm.Register(i)
		out := strings.Contains(arg, "UNINIT") || strings.Contains(arg, "MEM_WRITE")
		if out {
			writes = append(writes, r)
		}
		switch kind, _, _ := strings.Cut(arg, "|"); kind {
		case "ARG_PTR_TO_MAP_KEY":
			memory = append(memory, Memory{At: r})
		case "ARG_PTR_TO_MAP_VALUE":
			memory = append(memory, Memory{At: r, Value: true, Writes: out})
		case "ARG_PTR_TO_MEM", "ARG_PTR_TO_UNINIT_MEM":
			memory = append(memory, Memory{At: r, Size: r + 1, Writes: out})
		case "ARG_CONST_SIZE", "ARG_CONST_SIZE_OR_ZERO":
			sizes = append(sizes, Size{r, kind == "ARG_CONST_SIZE_OR_ZERO"})
		case "ARG_PTR_TO_FUNC":
			callback.Fn = r
		case "ARG_PTR_TO_STACK_OR_NULL":
			callback.Context = r
		}
	}
	return memory, sizes, callback, writes
}

// unsized are helpers with sizes that are not judged.
var unsized = strings.Fields(`bind btf_find_by_name_kind copy_from_user copy_from_user_task d_path dynptr_from_mem dynptr_read dynptr_write fib_lookup
	get_branch_snapshot get_current_comm get_ns_current_pid_tgid get_task_stack ima_file_hash ima_inode_hash kallsyms_lookup_name
	lwt_seg6_action lwt_seg6_store_bytes perf_event_read_value perf_prog_read_value read_branch_records redirect_neigh ringbuf_output seq_printf
	seq_printf_btf seq_write sk_lookup_tcp sk_lookup_udp skc_lookup_tcp skb_get_tunnel_key skb_get_tunnel_opt skb_get_xfrm_state skb_set_tunnel_key skb_set_tunnel_opt snprintf snprintf_btf sock_addr_set_sun_path
	strncmp strtol strtoul sys_bpf sysctl_get_current_value sysctl_get_name sysctl_get_new_value sysctl_set_new_value tcp_check_syncookie
	tcp_gen_syncookie tcp_raw_gen_syncookie_ipv4 tcp_raw_gen_syncookie_ipv6 trace_printk trace_vprintk`)

// disagree returns what helpers have that prototypes do not say, or the other way round.
func (p *prototypes) disagree(all []Helper) (l []string) {
	counts := make(map[string]int)
	for id := int64(1); id <= LastHelper; id++ {
		h, proto, name := &all[id], p.of(id), strings.TrimPrefix(HelperName(id), "bpf_")
		for what, is := range map[string]bool{
			"settings": h.Setting != "", "replacements": h.Instead != 0, "iterators": h.Iterators, "memory": h.Memory != nil, "writes none": h.Writes == WritesNone,
			"writes first": h.Writes == WritesFirst, "callbacks": h.CallsBack != nil, "values": h.GivesValue,
			"refusals": len(h.refused) == 9 && h.Refused("RAW_TRACEPOINT") && !h.Refused("KPROBE"),
		} {
			if is {
				counts[what]++
			}
		}
		if old := strings.NewReplacer("_kernel", "", "_user", "").Replace(HelperName(id)); h.Instead != 0 && HelperName(h.Instead) != old {
			l = append(l, fmt.Sprintf("%s: replaced by %s, want %s", name, HelperName(h.Instead), old))
		}
		if proto == nil {
			continue
		}
		differ := func(what string, got, want any) {
			if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
				l = append(l, fmt.Sprintf("%s: %s %s, want %s", name, what, g, w))
			}
		}
		memory, sizes, callback, writes := proto.memory()
		if !slices.Contains(unsized, name) {
			differ("sizes", h.Sizes, sizes)
		} else if len(sizes) == 0 || len(h.Sizes) > 0 {
			l = append(l, name+": has no sizes, or they are judged")
		}
		if h.Memory != nil {
			differ("memory", h.Memory, memory)
		}
		var ofMap []asm.Register
		for _, m := range memory {
			if m.Size == 0 && strings.HasPrefix(name, "map_") && name != "map_lookup_percpu_elem" {
				ofMap = append(ofMap, m.At)
			}
		}
		differ("of the map", h.OfMap, ofMap)
		switch {
		case h.CallsBack != nil:
			differ("calls back", Callback{h.CallsBack.Fn, h.CallsBack.Context, 0}, callback)
		case callback.Fn != 0:
			differ("calls late", h.CallsLate, true)
		default:
			differ("calls late", h.CallsLate, false)
		}
		if h.Writes == WritesNone || h.Writes == WritesFirst {
			differ("writes", map[Written]int{WritesFirst: 1}[h.Writes], len(writes))
		}
		_, alone := h.callers["SYSCALL"]
		alone = alone && len(h.callers) == 1 // programs of this type always may sleep
		differ("object", h.Object, p.object(id))
		differ("sleeps", h.Sleeps || alone, proto.sleeps || alone)
		differ("license", h.GPL, proto.gpl)
		result := ""
		if strings.HasPrefix(proto.result, "RET_PTR_TO_BTF_ID") {
			_, id, _ := strings.Cut(strings.TrimSuffix(proto.id, "]"), "&")
			list, at, _ := strings.Cut(id, "[")
			result = p.ids[at] + p.ids[list]
		}
		differ("result", h.Result, result)
		differ("gives memory of a ring", h.GivesRing, proto.result == "RET_PTR_TO_RINGBUF_MEM_OR_NULL")
		if h.GivesValue {
			differ("gives a value", proto.result, "RET_PTR_TO_MAP_VALUE_OR_NULL")
		}
	}
	want := map[string]int{"settings": 1, "replacements": 4, "iterators": 2, "memory": 22, "writes none": 3, "writes first": 7, "callbacks": 4, "values": 1, "refusals": 1}
	for what, n := range want {
		if counts[what] != n {
			l = append(l, fmt.Sprintf("%d helpers with %s, want %d", counts[what], what, n))
		}
	}
	return l
}

// TestPrototypes compares helpers.txt and programs.txt with a tree of the Linux kernel.
func TestPrototypes(t *testing.T) {
	p := readPrototypes(t)
	for _, why := range p.disagree(helperTable()) {
		t.Error(why)
	}
	known := 0
	for id := int64(1); id <= LastHelper; id++ {
		if p.of(id) != nil {
			known++
		}
	}
	if known < 190 {
		t.Errorf("%d prototypes", known)
	}
	for _, why := range p.contextsDisagree(programTable()) {
		t.Error(why)
	}
}

// contextsDisagree returns types of programs whose context is another one in the tree.
func (p *prototypes) contextsDisagree(all map[string]*Program) (l []string) {
	for kind, context := range p.contexts {
		switch context {
		case "void*", "__u64", "__u32", "bpf_user_pt_regs_t", "bpf_raw_tracepoint_args", "bpf_nf_ctx":
			context = "" // no struct whose fields are judged
		}
		if all[kind] == nil || all[kind].Context != context {
			l = append(l, fmt.Sprintf("%s: context %v, want %s", kind, all[kind], context))
		}
	}
	return l
}
