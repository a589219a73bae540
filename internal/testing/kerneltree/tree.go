// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Relations are what was found in a tree: sets of names, by what they say.
//
//	fact           lines of sources.txt that the sources have
//	enumerator     of the types of programs, maps, attachments, links and the flags of maps, and helpers as bpf_NAME
//	program, map   types that bpf_types.h has, with the settings that they need
//	helper TYPE    helpers that programs of a type can call, "TRACING/TRACE_ITER" for one type of attachment
//	with MAP       helpers that take maps of a type
//	sockmap        types of programs that can update maps of sockets
//	sleepable      types of maps that programs which may sleep can use
//	kptr           types of maps whose values can hold pointers to objects of the kernel
//	hook           hooks of LSM
//	set NAME       functions in a set, such as sleepable_lsm_hooks
//	kfunc TYPE     kfuncs that programs of a type can call, "any" for all types
//	refuses TYPE   kfuncs that the filter of their set keeps from programs of a type, or of a type of attachment
//	size STRUCT    the size of a context in bytes
//	field STRUCT   the offsets of its fields, and of the elements of those that are arrays
//	reads TYPE     accesses to the context, as OFFSET/SIZE, that programs of a type are allowed; "writes TYPE" likewise
//	fields OPS     fields that programs for a struct_ops may write through a pointer: the struct to which it leads, and the member with the struct that
//	               declares it, "tcp_sock sock.sk_pacing_rate", with + between members whose offsets are added; ".." behind it if a write may begin
//	               within, then "-1" if not in the last byte; the struct twice for all of it; and "none" if there is such a struct_ops
//	sleeps         kfuncs that may sleep
//	jit ARCH       abilities that the machine's compiler says it has, and "trampoline"
//	witness        those of the requested structs, functions and enumerators that it defines; "witness ARCH" those of the machine's own sources, and
//	               ftrace_ops.direct_call where the machine has direct calls
type Relations map[string]map[string]bool

func (r Relations) add(relation string, items ...string) {
	if r[relation] == nil {
		r[relation] = make(map[string]bool)
	}
	for _, item := range items {
		r[relation][item] = true
	}
}

// Tree describes the sources of one kernel.
type Tree struct {
	Release   string
	Sum       string // start of the SHA-256 of kernel/bpf/verifier.c, which identifies the sources
	Relations Relations
	Unknown   []string // conditions that no rule is for, which were taken for true

	texts    map[string]string // files without comments
	defs     *definitions
	machines map[string]*definitions // definitions only in the sources of a machine
}

// Read reads a tree: a folder, or a bare Git directory. It looks for the witnesses: struct, struct.member, function() or enum:ENUMERATOR.
func Read(path string, witnesses []string) (*Tree, error) {
	texts, err := files(path)
	if err != nil {
		return nil, err
	}
	const verifier = "kernel/bpf/verifier.c"
	if texts[verifier] == "" {
		return nil, fmt.Errorf("%s: no %s", path, verifier)
	}
	t := &Tree{Release: release(texts), Relations: make(Relations), texts: make(map[string]string), defs: newDefinitions()}
	t.machines = make(map[string]*definitions)
	t.Sum = fmt.Sprintf("%x", sha256.Sum256([]byte(texts[verifier])))[:12]
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasSuffix(name, "Kconfig") || strings.HasPrefix(name, "Makefile") {
			t.texts[name] = texts[name]
			continue
		}
		t.texts[name] = uncomment(texts[name])
		to := t.defs
		if parts := strings.Split(name, "/"); parts[0] == "arch" {
			machine := arches[parts[1]]
			if t.machines[machine] == nil {
				t.machines[machine] = newDefinitions()
			}
			to = t.machines[machine]
		}
		to.scan(preprocess(t.texts[name]))
	}
	t.enumerators()
	t.types()
	t.helpers()
	t.maps()
	t.sets()
	t.kfuncs()
	t.compilers()
	t.accesses()
	t.fields()
	for _, s := range sources() {
		if t.has(s) {
			t.Relations.add("fact", s.fact)
		}
	}
	for _, w := range witnesses {
		if t.shows(t.defs, w) {
			t.Relations.add("witness", w)
		}
		for machine, defs := range t.machines {
			if machine != "" && t.shows(defs, w) || w == directCall && t.shows(t.defs, w) && t.Relations["jit "+machine]["direct calls"] {
				t.Relations.add("witness "+machine, w)
			}
		}
	}
	return t, nil
}

// enums are those whose enumerators count.
var enums = []string{"bpf_map_type", "bpf_prog_type", "bpf_attach_type", "bpf_link_type"}

var (
	enumerator  = regexp.MustCompile(`\b(BPF_[A-Z0-9_]+)\s*(?:=\s*([^,}]*))?[,}]`)
	mappedNames = regexp.MustCompile(`\bFN\((\w+)`)
	mapFlag     = regexp.MustCompile(`(?m)^\s*(?:#define\s+)?(BPF_F_\w+)\s*=?\s*\(1U? << (\d+)\)`)
)

func (t *Tree) enumerators() {
	uapi := t.texts["include/uapi/linux/bpf.h"]
	for _, e := range enums {
		for _, body := range t.defs.enums[e] {
			for _, m := range enumerator.FindAllStringSubmatch(body, -1) {
				t.Relations.add("enumerator", m[1])
			}
		}
	}
	for _, m := range mappedNames.FindAllStringSubmatch(uapi, -1) {
		if m[1] != "unspec" {
			t.Relations.add("enumerator", "bpf_"+m[1])
		}
	}
	for _, m := range mapFlag.FindAllStringSubmatch(uapi, -1) {
		t.Relations.add("enumerator", m[1])
	}
}

var typeLine = regexp.MustCompile(`^BPF_(PROG|MAP)_TYPE\((?:BPF_PROG_TYPE_|BPF_MAP_TYPE_)(\w+),\s*(\w+)`)

// types notes the types of programs and maps, and the settings that they need.
func (t *Tree) types() {
	var settings []string
	text := strings.ReplaceAll(t.texts["include/linux/bpf_types.h"], ",\n", ",")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#if"):
			names := regexp.MustCompile(`CONFIG_\w+`).FindAllString(line, -1)
			settings = append(settings, strings.Join(names, "|"))
		case strings.HasPrefix(line, "#endif") && len(settings) > 0:
			settings = settings[:len(settings)-1]
		}
		m := typeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		needs := ""
		for _, s := range settings {
			if s != "" {
				needs += " " + s
			}
		}
		t.Relations.add(map[string]string{"PROG": "program", "MAP": "map"}[m[1]], m[2]+needs)
	}
}

// operations returns the prefix of the operations of each type of programs: "sk_filter" for SOCKET_FILTER.
func (t *Tree) operations() map[string]string {
	of := make(map[string]string)
	for line := range strings.Lines(t.texts["include/linux/bpf_types.h"]) {
		if m := typeLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && m[1] == "PROG" {
			of[m[2]] = m[3]
		}
	}
	return of
}

// attachments are the types of attachment for which programs of a type are asked about, "" for one that makes no difference.
var attachments = map[string][]string{
	"CGROUP_SOCK":    {"=CGROUP_INET_SOCK_CREATE"},
	"CGROUP_SKB":     {"=CGROUP_INET_INGRESS"},
	"CGROUP_DEVICE":  {"=CGROUP_DEVICE"},
	"CGROUP_SYSCTL":  {"=CGROUP_SYSCTL"},
	"SOCK_OPS":       {"=CGROUP_SOCK_OPS"},
	"CGROUP_SOCKOPT": {"CGROUP_GETSOCKOPT", "CGROUP_SETSOCKOPT"},
	"CGROUP_SOCK_ADDR": {"CGROUP_INET4_BIND", "CGROUP_INET6_BIND", "CGROUP_UDP4_SENDMSG", "CGROUP_UDP6_SENDMSG", "CGROUP_INET4_CONNECT",
		"CGROUP_INET6_CONNECT", "CGROUP_INET4_GETPEERNAME", "CGROUP_INET4_GETSOCKNAME", "CGROUP_INET6_GETPEERNAME", "CGROUP_INET6_GETSOCKNAME",
		"CGROUP_UDP4_RECVMSG", "CGROUP_UDP6_RECVMSG", "CGROUP_UNIX_CONNECT", "CGROUP_UNIX_GETPEERNAME", "CGROUP_UNIX_GETSOCKNAME",
		"CGROUP_UNIX_RECVMSG", "CGROUP_UNIX_SENDMSG"},
	"LSM":     {"=LSM_MAC", "LSM_CGROUP"},
	"TRACING": {"MODIFY_RETURN", "TRACE_FENTRY", "TRACE_FEXIT", "TRACE_ITER", "TRACE_RAW_TP", "TRACE_FSESSION"},
}

var getFuncProto = regexp.MustCompile(`\.get_func_proto\s*=\s*(\w+)`)

// operation returns the function that variables set a member to, "" if none does. The last of several counts.
func (t *Tree) operation(member *regexp.Regexp, variables ...string) (function string) {
	for _, name := range variables {
		for _, body := range t.defs.variables[name] {
			if m := member.FindStringSubmatch(body); m != nil {
				function = m[1]
			}
		}
	}
	return function
}

// helpers runs the functions *_func_proto for each type of programs and each helper.
func (t *Tree) helpers() {
	x := &interpreter{defs: t.defs, parsed: make(map[string][]*statement), Unknown: make(map[string]bool)}
	has := t.Relations["enumerator"]
	for kind, prefix := range t.operations() {
		get := t.operation(getFuncProto, prefix+"_verifier_ops", prefix+"_prog_ops")
		if get == "" {
			continue
		}
		list := attachments[kind]
		if list == nil {
			list = []string{"="}
		}
		for _, attach := range list {
			relation := "helper " + kind + "/" + attach
			if name, plain := strings.CutPrefix(attach, "="); plain {
				attach, relation = name, "helper "+kind
			} else if !has["BPF_"+attach] {
				continue
			}
			x.kind, x.attach = "BPF_PROG_TYPE_"+kind, "BPF_"+attach
			for name := range has {
				if helper, ok := strings.CutPrefix(name, "bpf_"); ok {
					x.helper = "BPF_FUNC_" + helper
					if truth(x.call(get)) {
						t.Relations.add(relation, helper)
					}
				}
			}
		}
	}
	t.tookForTrue(x.Unknown)
}

var (
	mapCase    = regexp.MustCompile(`\bcase BPF_MAP_TYPE_(\w+):`)
	funcName   = regexp.MustCompile(`\bBPF_FUNC_(\w+)`)
	progName   = regexp.MustCompile(`\bBPF_PROG_TYPE_(\w+)`)
	mapName    = regexp.MustCompile(`\bBPF_MAP_TYPE_(\w+)`)
	mapSwitch  = regexp.MustCompile(`(?s)switch\s*\(\s*map->map_type\s*\)\s*\{(.*)`)
	sleepable  = regexp.MustCompile(`(?s)sleepable\s*\)\s*switch\s*\(\s*map->map_type\s*\)\s*\{(.*?)\bdefault:`)
	kptrBranch = regexp.MustCompile(`(?s)case (?:BPF_KPTR_UNREF|BPF_KPTR_REF):(.*?)(?:break|case BPF_LIST_HEAD|ret = -EOPNOTSUPP)`)
)

// maps reads which helpers take which maps, and which programs.
func (t *Tree) maps() {
	t.helpersWithMaps()
	t.sockmapPrograms()
	for _, body := range t.defs.functions["check_map_prog_compatibility"] {
		if m := sleepable.FindStringSubmatch(body); m != nil {
			t.addMaps("sleepable", m[1])
		}
	}
	for _, body := range t.defs.functions["map_check_btf"] {
		if _, old, ok := strings.Cut(body, "map_value_has_kptrs(map)"); ok { // before 6.2
			old, _, _ = strings.Cut(old, "EOPNOTSUPP")
			t.addMaps("kptr", old)
		}
		if m := kptrBranch.FindStringSubmatch(body); m != nil {
			t.addMaps("kptr", m[1])
		}
	}
}

// addMaps adds the types of maps that a text names to a relation.
func (t *Tree) addMaps(relation, text string) {
	for _, m := range mapName.FindAllStringSubmatch(text, -1) {
		t.Relations.add(relation, m[1])
	}
}

// helpersWithMaps reads the groups of cases of the first switch, up to "break;": types of maps, and the helpers that take them.
func (t *Tree) helpersWithMaps() {
	for _, body := range t.defs.functions["check_map_func_compatibility"] {
		m := mapSwitch.FindStringSubmatch(body)
		if m == nil {
			continue
		}
		part, _, _ := strings.Cut(m[1], "switch")
		for {
			at := mapCase.FindStringIndex(part)
			if at == nil {
				break
			}
			group, rest, ok := strings.Cut(part[at[0]:], "break;")
			if !ok {
				break
			}
			for _, k := range mapCase.FindAllStringSubmatch(group, -1) {
				for _, f := range funcName.FindAllStringSubmatch(group, -1) {
					t.Relations.add("with "+k[1], f[1])
				}
				if strings.Contains(group, "may_update_sockmap") {
					t.Relations.add("with "+k[1], "map_update_elem of some programs")
				}
			}
			part = rest
		}
	}
}

// sockmapPrograms reads which programs may change maps of sockets.
func (t *Tree) sockmapPrograms() {
	for _, body := range t.defs.functions["may_update_sockmap"] {
		for _, m := range progName.FindAllStringSubmatch(body, -1) {
			t.Relations.add("sockmap", m[1])
		}
		if strings.Contains(body, "BPF_FUNC_map_delete_elem") {
			t.Relations.add("sockmap", "map_delete_elem is limited")
		}
	}
}

var (
	setStart = regexp.MustCompile(`\bBTF_(?:SET|SET8|KFUNCS)_START\w*\((\w+)\)`)
	setEnd   = regexp.MustCompile(`\bBTF_(?:SET|SET8|KFUNCS)_END\w*\(`)
	setID    = regexp.MustCompile(`\bBTF_ID(?:_FLAGS)?\(\s*func\s*,\s*(\w+)((?:[^()]|\([^()]*\))*)\)`)
)

// members are the sets of functions of a tree, each with the flags of its functions.
func (t *Tree) members() map[string]map[string]string {
	all := make(map[string]map[string]string)
	for _, name := range slices.Sorted(maps.Keys(t.texts)) {
		text := t.texts[name]
		for {
			at := setStart.FindStringSubmatchIndex(text)
			if at == nil {
				break
			}
			set := text[at[2]:at[3]]
			text = text[at[1]:]
			body := text
			if end := setEnd.FindStringIndex(text); end != nil {
				body = text[:end[0]]
			}
			if all[set] == nil {
				all[set] = make(map[string]string)
			}
			for _, m := range setID.FindAllStringSubmatch(body, -1) {
				all[set][m[1]] = m[2]
			}
		}
	}
	return all
}

// kept are the sets that tables are about.
var kept = []string{"bpf_lsm_disabled_hooks", "btf_sleepable_lsm_hooks", "sleepable_lsm_hooks", "untrusted_lsm_hooks", "bool_lsm_hooks",
	"bpf_lsm_current_hooks", "bpf_lsm_locked_sockopt_hooks", "bpf_lsm_unlocked_sockopt_hooks", "btf_id_deny", "noreturn_deny", "btf_non_sleepable_error_inject", "btf_allowlist_d_path"}

// lsmHook finds the name of a hook behind its result and its default result.
var lsmHook = regexp.MustCompile(`\bLSM_HOOK\([^,()]*,[^,()]*,\s*(\w+)`)

func (t *Tree) sets() {
	for _, m := range lsmHook.FindAllStringSubmatch(t.texts["include/linux/lsm_hook_defs.h"], -1) {
		t.Relations.add("hook", m[1])
	}
	all := t.members()
	for _, name := range kept {
		for f := range all[name] {
			t.Relations.add("set "+name, f)
		}
	}
}

var (
	registered = regexp.MustCompile(`register_btf_kfunc_id_set\(\s*BPF_PROG_TYPE_(\w+)\s*,\s*&(\w+)`)
	setMember  = regexp.MustCompile(`\.(?:set|check_set)\s*=\s*&(\w+)`)
	setFilter  = regexp.MustCompile(`\.filter\s*=\s*(\w+)`)
	hookCase   = regexp.MustCompile(`case BPF_PROG_TYPE_(\w+):|return BTF_KFUNC_HOOK_(\w+)`)
)

// kfuncs reads which programs can call which kfuncs, and which of these the filters of their sets refuse.
func (t *Tree) kfuncs() {
	sharing, sets := t.sharedHooks(), t.members()
	for _, text := range t.texts {
		for _, m := range registered.FindAllStringSubmatch(text, -1) {
			types := []string{m[1]}
			if m[1] == "UNSPEC" {
				types = []string{"any"}
			} else if all := sharing[m[1]]; all != nil {
				types = all
			}
			for _, body := range t.defs.variables[m[2]] {
				t.kfuncSet(body, sets, types)
			}
		}
	}
}

// sharedHooks returns the types of programs with the hook of a type, by type: kfuncs are registered for all of them.
func (t *Tree) sharedHooks() map[string][]string {
	hooks, groups := make(map[string]string), make(map[string][]string)
	for _, body := range t.defs.functions["bpf_prog_type_to_kfunc_hook"] {
		var open []string
		for _, m := range hookCase.FindAllStringSubmatch(body, -1) {
			if m[1] != "" {
				open = append(open, m[1])
				continue
			}
			for _, k := range open {
				hooks[k] = m[2]
			}
			groups[m[2]], open = append(groups[m[2]], open...), nil
		}
	}
	all := make(map[string][]string)
	for kind, hook := range hooks {
		all[kind] = groups[hook]
	}
	return all
}

// kfuncSet adds the kfuncs of a struct btf_kfunc_id_set that is registered for types of programs.
func (t *Tree) kfuncSet(body string, sets map[string]map[string]string, types []string) {
	set := setMember.FindStringSubmatch(body)
	if set == nil {
		return
	}
	if filter := setFilter.FindStringSubmatch(body); filter != nil {
		t.filtered(filter[1], sets, set[1], types)
	}
	for f, flags := range sets[set[1]] {
		for _, k := range types {
			t.Relations.add("kfunc "+k, f)
		}
		if strings.Contains(flags, "KF_SLEEPABLE") {
			t.Relations.add("sleeps", f)
		}
	}
}

var ability = regexp.MustCompile(`\bbool bpf_jit_(supports_\w+|inlines_helper_call)\s*\(`)

// arches are the machines of kernels, and what this project calls them.
var arches = map[string]string{"x86": "x86_64", "arm64": "arm64", "arm": "arm", "riscv": "riscv64", "s390": "s390x", "powerpc": "ppc64le", "loongarch": "loongarch64", "mips": "mips"}

// compilers reads what the compilers of machines can do.
func (t *Tree) compilers() {
	for name, text := range t.texts {
		parts := strings.Split(name, "/")
		if parts[0] != "arch" || len(parts) < 3 || arches[parts[1]] == "" {
			continue
		}
		relation := "jit " + arches[parts[1]]
		if strings.HasSuffix(name, "Kconfig") {
			if regexp.MustCompile(`select HAVE_DYNAMIC_FTRACE_WITH_DIRECT_CALLS`).MatchString(text) {
				t.Relations.add(relation, "direct calls")
			}
			continue
		}
		if parts[2] != "net" {
			continue
		}
		for _, m := range ability.FindAllStringSubmatch(text, -1) {
			t.Relations.add(relation, m[1])
		}
		if regexp.MustCompile(`\barch_prepare_bpf_trampoline\(`).MatchString(text) {
			t.Relations.add(relation, "trampolines")
		}
	}
}

// directCall is a member that only the kernels of machines with direct calls have.
const directCall = "ftrace_ops.direct_call"

// shows reports whether definitions have a witness.
func (t *Tree) shows(defs *definitions, w string) bool {
	if name, ok := strings.CutSuffix(w, "()"); ok {
		return defs.functions[name] != nil
	}
	if enum, name, ok := strings.Cut(w, ":"); ok {
		if helper, ok := strings.CutPrefix(name, "BPF_FUNC_"); ok {
			return t.Relations["enumerator"]["bpf_"+helper]
		}
		return slices.ContainsFunc(defs.enums[enum], func(body string) bool { return containsWord(body, name) })
	}
	if of, ok := strings.CutSuffix(w, "__safe_rcu"); ok { // made by a macro
		return strings.Contains(t.texts["kernel/bpf/verifier.c"], "BTF_TYPE_SAFE_RCU(struct "+of+")")
	}
	name, member, _ := strings.Cut(w, ".")
	bodies := defs.structs[name]
	if member == "" {
		return bodies != nil
	}
	return slices.ContainsFunc(bodies, func(body string) bool {
		return regexp.MustCompile(`\b` + member + `\s*(\[[^\]]*\]\s*)*(:[^;]*)?[;,)]`).MatchString(body)
	})
}

func containsWord(text, word string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(text)
}
