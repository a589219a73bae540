// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// contextAttachments are the types of attachment for which the context of programs of a type is asked about, "" for one that makes no difference.
var contextAttachments = map[string][]string{
	"SOCKET_FILTER": {""}, "SCHED_CLS": {""}, "SCHED_ACT": {""}, "XDP": {"", "XDP_DEVMAP"}, "CGROUP_SKB": {""}, "LWT_IN": {""}, "LWT_OUT": {""},
	"LWT_XMIT": {""}, "LWT_SEG6LOCAL": {""}, "SOCK_OPS": {""}, "SK_SKB": {""}, "CGROUP_DEVICE": {""}, "SK_MSG": {""}, "SK_REUSEPORT": {""},
	"FLOW_DISSECTOR": {""}, "CGROUP_SYSCTL": {""}, "SK_LOOKUP": {""},
	"CGROUP_SOCK":      {"CGROUP_INET_SOCK_CREATE", "CGROUP_INET_SOCK_RELEASE", "CGROUP_INET4_POST_BIND", "CGROUP_INET6_POST_BIND"},
	"CGROUP_SOCKOPT":   attachments["CGROUP_SOCKOPT"],
	"CGROUP_SOCK_ADDR": attachments["CGROUP_SOCK_ADDR"],
}

// context is the struct that programs of a type get.
var context = map[string]string{
	"SOCKET_FILTER": "__sk_buff", "SCHED_CLS": "__sk_buff", "SCHED_ACT": "__sk_buff", "XDP": "xdp_md", "CGROUP_SKB": "__sk_buff", "LWT_IN": "__sk_buff",
	"LWT_OUT": "__sk_buff", "LWT_XMIT": "__sk_buff", "LWT_SEG6LOCAL": "__sk_buff", "SOCK_OPS": "bpf_sock_ops", "SK_SKB": "__sk_buff",
	"CGROUP_DEVICE": "bpf_cgroup_dev_ctx", "SK_MSG": "sk_msg_md", "SK_REUSEPORT": "sk_reuseport_md", "FLOW_DISSECTOR": "__sk_buff",
	"CGROUP_SYSCTL": "bpf_sysctl", "SK_LOOKUP": "bpf_sk_lookup", "CGROUP_SOCK": "bpf_sock", "CGROUP_SOCKOPT": "bpf_sockopt", "CGROUP_SOCK_ADDR": "bpf_sock_addr",
}

// ContextBytes is how many bytes of a context are asked about.
const ContextBytes = 256

var isValidAccess = regexp.MustCompile(`\.is_valid_access\s*=\s*(\w+)`)

// accesses runs the functions *_is_valid_access for each type of programs and each access.
func (t *Tree) accesses() {
	c := &calculator{tree: t, parsed: make(map[string]*function)}
	for _, name := range context {
		if size := c.layout(name).size; size > 0 {
			t.Relations.add("size "+name, strconv.FormatInt(size, 10))
			for _, m := range c.layout(name).members {
				for at := m.offset; at < m.offset+m.size; at += m.each {
					t.Relations.add("field "+name, strconv.FormatInt(at, 10))
				}
			}
		}
	}
	for kind, prefix := range t.operations() {
		check := t.operation(isValidAccess, prefix+"_verifier_ops", prefix)
		if check == "" {
			continue
		}
		c.eachAttachment(kind, contextAttachments[kind], func(name string) {
			c.accessesOf(check, context[kind], 1, "reads "+name)
			c.accessesOf(check, context[kind], 2, "writes "+name)
		})
	}
	t.tookForTrue(c.unknown)
}

// accessesOf adds the accesses of one type (enum bpf_access_type) that a function accepts and that begin at a member of the context.
func (c *calculator) accessesOf(check, context string, access int64, relation string) {
	for size := int64(1); size <= 8; size *= 2 {
		for off := int64(0); off+size <= ContextBytes; off += size {
			if c.call(check, []int64{off, size, access, 1, 1}) != 0 && c.begins(context, off) {
				c.tree.Relations.add(relation, fmt.Sprintf("%d/%d", off, size))
			}
		}
	}
}

// eachAttachment calls f with the name of each type of attachment of programs that the tree has, "TRACING/TRACE_ITER", while c is about such programs.
// If a type of attachment is "", it makes no difference, and the name is the type of programs.
func (c *calculator) eachAttachment(kind string, attaches []string, f func(name string)) {
	for _, attach := range attaches {
		name := kind
		if attach != "" {
			name += "/" + attach
			if !c.tree.Relations["enumerator"]["BPF_"+attach] {
				continue
			}
		}
		c.kind, c.attach = "BPF_PROG_TYPE_"+kind, "BPF_"+attach
		f(name)
	}
}

// tookForTrue adds to t.Unknown.
func (t *Tree) tookForTrue(names map[string]bool) {
	t.Unknown = slices.AppendSeq(t.Unknown, maps.Keys(names))
	slices.Sort(t.Unknown)
	t.Unknown = slices.Compact(t.Unknown)
}

// begins reports whether a member of a struct begins where an access begins, or where the four bytes around a smaller one begin: the functions
// that translate accesses know no others.
func (c *calculator) begins(name string, off int64) bool {
	for _, m := range c.layout(name).members {
		for at := m.offset; at < m.offset+m.size; at += m.each {
			if at == off || at == off&^3 {
				return true
			}
		}
	}
	return false
}

// FilteredAttachments are the types of attachment for which filters of kfuncs are asked about.
var FilteredAttachments = map[string][]string{
	"TRACING": {"MODIFY_RETURN", "TRACE_FENTRY", "TRACE_FEXIT", "TRACE_ITER", "TRACE_RAW_TP", "TRACE_FSESSION"},
	"LSM":     {"LSM_MAC", "LSM_CGROUP"},
	"KPROBE":  {"", "TRACE_KPROBE_MULTI", "TRACE_KPROBE_SESSION", "TRACE_UPROBE_MULTI", "TRACE_UPROBE_SESSION"},
}

// filtered runs the filter of a set for programs of some types.
func (t *Tree) filtered(filter string, sets map[string]map[string]string, set string, types []string) {
	c := &calculator{tree: t, parsed: make(map[string]*function), sets: sets}
	for _, kind := range types {
		attaches := FilteredAttachments[kind]
		if kind == "STRUCT_OPS" {
			continue // it depends on what they are for
		} else if attaches == nil {
			attaches = []string{""}
		}
		c.eachAttachment(kind, attaches, func(name string) {
			for kfunc := range sets[set] {
				c.kfunc = kfunc
				if c.call(filter, []int64{1, 1}) != 0 {
					t.Relations.add("refuses "+name, kfunc)
				}
			}
		})
	}
	t.tookForTrue(c.unknown)
}

// function is a parsed function of C.
type function struct {
	parameters []string
	body       []*statement
}

// calculator runs functions that say whether a program may access bytes of its context, and filters of kfuncs. It understands what these consist of: switches with ranges,
// conditions, arithmetic, offsets and sizes of structs, and calls of each other. Truth is 1, and whatever else is not known is 1, too.
type calculator struct {
	tree      *Tree
	parsed    map[string]*function
	layouts   map[string]*layout
	attach    string
	kind      string                       // BPF_PROG_TYPE_TRACING
	kfunc     string                       // kfunc that a filter judges
	marks     *marks                       // nil except in functions *_btf_struct_access
	sets      map[string]map[string]string // sets of kfuncs that filters know
	variables map[string]int64
	inner     map[string]int64 // those of the function that was called last
	depth     int
	unknown   map[string]bool
}

func (c *calculator) parse(name string) *function {
	if f, ok := c.parsed[name]; ok {
		return f
	}
	c.parsed[name] = nil
	longest := "" // others are for kernels without something
	for _, text := range c.tree.defs.functions[name] {
		if len(text) > len(longest) {
			longest = text
		}
	}
	head, code, ok := strings.Cut(longest, "{")
	if !ok {
		return nil
	}
	f := new(function)
	for _, p := range strings.Split(strings.Trim(head, "() \n\t"), ",") {
		words := cTokens.FindAllString(p, -1)
		f.parameters = append(f.parameters, words[max(0, len(words)-1):]...)
	}
	p := parser{tokens: cTokens.FindAllString(code, -1)}
	f.body = p.block()
	c.parsed[name] = f
	return f
}

func (c *calculator) call(name string, args []int64) int64 {
	f := c.parse(name)
	if f == nil || c.depth > 20 {
		c.note(name + "()")
		return 1
	}
	outer := c.variables
	c.variables = make(map[string]int64)
	for i, p := range f.parameters {
		if i < len(args) {
			c.variables[p] = args[i]
		}
	}
	c.depth++
	value, end := c.run(f.body)
	for range 10 {
		label, jumps := strings.CutPrefix(end, "goto ")
		at := slices.IndexFunc(f.body, func(s *statement) bool { return s.kind == "label" && s.name == label })
		if !jumps || at < 0 {
			break
		}
		value, end = c.run(f.body[at:])
	}
	c.depth--
	c.variables, c.inner = outer, c.variables
	return value
}

func (c *calculator) note(name string) {
	if c.unknown == nil {
		c.unknown = make(map[string]bool)
	}
	c.unknown[name] = true
}

// run returns what statements return, and how they end: "return", "break", "goto LABEL" or "".
func (c *calculator) run(l []*statement) (value int64, end string) {
	for _, s := range l {
		switch s.kind {
		case "block":
			value, end = c.run(s.body)
		case "if":
			branch := s.body
			if c.value(s.expr) == 0 {
				branch = s.other
			}
			value, end = c.run(branch)
		case "switch":
			if value, end = c.choose(s); end == "break" {
				end = ""
			}
		case "return":
			return c.value(s.expr), "return"
		case "break":
			return 0, "break"
		case "goto":
			return 0, "goto " + s.name
		case "set":
			c.variables[s.name] = c.value(s.expr)
		}
		if end != "" {
			return value, end
		}
	}
	return 0, ""
}

// choose runs a switch from the case that fits.
func (c *calculator) choose(s *statement) (int64, string) {
	of, start := c.value(s.expr), -1
	for i, x := range s.body {
		if x.kind == "case" && x.expr == nil {
			start = i
		} else if x.kind == "case" {
			if lo, hi := c.span(x.expr); lo <= of && of <= hi {
				start = i
				break
			}
		}
	}
	if start < 0 {
		return 0, ""
	}
	return c.run(s.body[start:])
}

// span evaluates what a case is about: a value, or values with "..." between.
func (c *calculator) span(tokens []string) (lo, hi int64) {
	e := sum{calculator: c, parser: parser{tokens: tokens}}
	if name := tokens[0]; strings.HasPrefix(name, "bpf_ctx_range") && len(tokens) > 1 {
		e.next()
		e.next()
		of := e.until(",")
		args := e.until(")")
		from := args
		if i := slices.Index(args, ","); i >= 0 {
			from, args = args[:i], args[i+1:]
		}
		first, _ := c.member(of, from)
		last, size := c.member(of, args)
		return first, last + size - 1
	}
	lo = e.ternary()
	if c.marks != nil {
		c.marks.met[lo] = true
	}
	if e.peek() != "." {
		return lo, lo
	}
	e.at += 3
	return lo, e.ternary()
}

func (c *calculator) value(tokens []string) int64 {
	e := sum{calculator: c, parser: parser{tokens: tokens}}
	return e.ternary()
}

// member returns the offset and size of a member: "struct __sk_buff", "cb[0]".
func (c *calculator) member(of, path []string) (offset, size int64) {
	if c.marks != nil {
		return c.marks.mark(of, path)
	}
	name := of[len(of)-1]
	m, ok := c.layout(name).members[path[0]]
	if name == "sk_buff" && path[0] == "protocol" { // not of the interface: two bytes
		return 0, 2
	}
	if !ok {
		c.note(name + "." + path[0])
		return -1000, 1
	}
	if len(path) >= 4 && path[1] == "[" {
		n, _ := strconv.ParseInt(path[2], 0, 64)
		return m.offset + n*m.each, m.each
	}
	return m.offset, m.size
}

// sum is an expression that is being evaluated.
type sum struct {
	*calculator
	parser
}

func (e *sum) ternary() int64 {
	v := e.binary(0)
	if e.peek() != "?" {
		return v
	}
	e.next()
	yes := e.ternary()
	e.next() // :
	if no := e.ternary(); v == 0 {
		return no
	}
	return yes
}

// levels are the operators, from those that bind least.
var levels = [][]string{{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

func (e *sum) binary(level int) int64 {
	if level == len(levels) {
		return e.unary()
	}
	v := e.binary(level + 1)
	for slices.Contains(levels[level], e.peek()) {
		op := e.next()
		v = apply(op, v, e.binary(level+1))
	}
	return v
}

func apply(op string, v, w int64) int64 {
	truth := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	switch op {
	case "||":
		return truth(v != 0 || w != 0)
	case "&&":
		return truth(v != 0 && w != 0)
	case "|":
		return v | w
	case "^":
		return v ^ w
	case "&":
		return v & w
	case "==":
		return truth(v == w)
	case "!=":
		return truth(v != w)
	case "<":
		return truth(v < w)
	case ">":
		return truth(v > w)
	case "<=":
		return truth(v <= w)
	case ">=":
		return truth(v >= w)
	case "<<":
		return v << (w & 63)
	case ">>":
		return v >> (w & 63)
	case "+":
		return v + w
	case "-":
		return v - w
	case "*":
		return v * w
	}
	if w == 0 {
		return 0
	}
	if op == "/" {
		return v / w
	}
	return v % w
}

func (e *sum) unary() int64 {
	switch e.peek() {
	case "!":
		e.next()
		return apply("==", e.unary(), 0)
	case "-":
		e.next()
		return -e.unary()
	case "~":
		e.next()
		return ^e.unary()
	case "&", "*":
		e.next()
	}
	return e.primary()
}

func (e *sum) primary() int64 {
	t := e.next()
	if t == "(" {
		v := e.ternary()
		e.until(")")
		return v
	}
	if n, err := strconv.ParseInt(strings.TrimRight(t, "UL"), 0, 64); err == nil {
		return n
	}
	last := t
	for {
		switch e.peek() {
		case "->", ".":
			if e.peek() == "." && e.at+1 < len(e.tokens) && e.tokens[e.at+1] == "." {
				return e.name(t, last) // the end of a range
			}
			e.next()
			last = e.next()
		case "[":
			e.next()
			e.until("]")
		case "(":
			e.next()
			return e.function(last, e.until(")"))
		default:
			return e.name(t, last)
		}
	}
}

func (e *sum) function(name string, args []string) int64 {
	switch name {
	case "offsetof", "offsetofend", "sizeof_field", "FIELD_SIZEOF":
		i := slices.Index(args, ",")
		if i < 0 {
			return 0
		}
		offset, size := e.member(args[:i], args[i+1:])
		switch name {
		case "offsetof":
			return offset
		case "offsetofend":
			return offset + size
		}
		return size
	case "sizeof":
		if args[0] == "struct" && e.marks != nil {
			return markSize
		} else if args[0] == "struct" {
			return e.layout(args[1]).size
		}
		if size, ok := numbersOf[args[0]]; ok {
			return size
		}
		if slices.Contains(args, ".") || slices.Contains(args, "->") || args[len(args)-1] == "*" {
			e.note("sizeof " + strings.Join(args, ""))
		}
		return 8
	case "btf_id_set8_contains", "btf_id_set_contains":
		if _, ok := e.sets[args[min(1, len(args)-1)]][e.kfunc]; ok {
			return 1
		}
		return 0
	case "is_kprobe_session", "is_uprobe_session", "is_kprobe_multi", "is_uprobe_multi":
		return apply("==", hash(e.attach), hash("BPF_TRACE_"+strings.ToUpper(strings.TrimPrefix(name, "is_"))))
	case "is_trace_fsession":
		return apply("==", hash(e.attach), hash("BPF_TRACE_FSESSION"))
	case "btf_type_by_id":
		if args[len(args)-1] == "btf_id" {
			return hash(e.marks.pointee)
		}
		return e.value(args[slices.Index(args, ",")+1:])
	case "btf_find_by_name_kind":
		i := slices.IndexFunc(args, func(token string) bool { return strings.HasPrefix(token, `"`) })
		return hash(strings.Trim(args[max(i, 0)], `"`))
	case "btf_struct_access": // whether there is such a member
		return 0
	case "is_power_of_2":
		v := e.value(args)
		return apply("==", v&(v-1), 0)
	case "capable", "bpf_capable", "ns_capable", "perfmon_capable", "bpf_token_capable":
		return 1
	case "bpf_prog_is_dev_bound", "bpf_prog_is_offloaded", "WARN_ON_ONCE": // programs for network cards
		return 0
	case "bpf_ctx_wide_access_ok", "bpf_ctx_wide_store_ok": // macros
		rest := parser{tokens: args}
		off, size := e.value(rest.until(",")), int64(8)
		if name == "bpf_ctx_wide_access_ok" || slices.Index(args, "struct") > 3 {
			size = e.value(rest.until(","))
		}
		at, wide := e.member(rest.until(","), rest.until(","))
		return apply("&&", apply("==", size, 8)*apply(">=", off, at), apply("<=", off+8, at+wide)*apply("==", off%8, 0))
	}
	var values []int64
	rest := parser{tokens: args}
	for rest.at < len(args) {
		arg := rest.until(",")
		if len(arg) == 2 && arg[0] == "&" {
			arg = []string{"1"} // see written
		}
		values = append(values, e.value(arg))
	}
	value := e.call(name, values)
	e.written(name, args)
	return value
}

// written sets the variables whose addresses a function was given.
func (e *sum) written(name string, args []string) {
	f := e.parsed[name]
	if f == nil {
		return
	}
	rest := parser{tokens: args}
	for i := 0; rest.at < len(args) && i < len(f.parameters); i++ {
		if arg := rest.until(","); len(arg) == 2 && arg[0] == "&" {
			e.variables[arg[1]] = e.inner[f.parameters[i]]
		}
	}
}

func (e *sum) name(first, last string) int64 {
	switch last {
	case "expected_attach_type":
		return hash(e.attach)
	case "type":
		if first == "prog" {
			return hash(e.kind)
		}
	case "BPF_READ":
		return 1
	case "EACCES":
		return 13
	case "NOT_INIT", "SCALAR_VALUE": // success
		return 0
	case "BPF_WRITE":
		return 2
	case "true":
		return 1
	case "false", "NULL", "is_ldsx":
		return 0
	}
	if strings.HasPrefix(last, "BPF_") || strings.HasPrefix(last, "PTR_TO_") {
		return hash(last)
	}
	if v, ok := e.variables[last]; ok && first == last {
		return v
	}
	if to, ok := pointeeOf[last]; ok && e.marks != nil {
		return hash(to)
	}
	if e.variables[first] == 0 {
		e.note(first + "…" + last)
	}
	return 1
}

// hash is a number for the name of an enumerator.
func hash(name string) (h int64) {
	for _, c := range []byte(name) {
		h = (h*131 + int64(c)) & (1<<40 - 1)
	}
	return h + 1000
}

// layout is where a struct has its members.
type layout struct {
	size, align int64
	members     map[string]place
}

type place struct{ offset, size, each int64 }

// numbersOf are the sizes of types.
var numbersOf = map[string]int64{
	"__u8": 1, "__u16": 2, "__be16": 2, "__u32": 4, "__s32": 4, "__be32": 4, "__u64": 8, "__s64": 8,
	"u8": 1, "u16": 2, "u32": 4, "u64": 8, "int": 4, "char": 1,
}

func (c *calculator) layout(name string) *layout {
	if l, ok := c.layouts[name]; ok {
		return l
	}
	l := &layout{members: make(map[string]place)}
	if bodies := c.tree.defs.structs[name]; len(bodies) > 0 {
		c.place(l, bodies[0], false)
	}
	if c.layouts == nil {
		c.layouts = make(map[string]*layout)
	}
	c.layouts[name] = l
	return l
}

var (
	innerUnion = regexp.MustCompile(`^(union|struct)\s*(\{.*\})`)
	mdPointer  = regexp.MustCompile(`^__bpf_md_ptr\(.*,\s*(\w+)\)$`)
	bitField   = regexp.MustCompile(`^(\w+)\s*(\w*)\s*:\s*(\d+)$`)
	plain      = regexp.MustCompile(`^(?:const\s+)?(\w+)\s+(\w+)\s*(?:\[(\w+)\])?$`)
	starred    = regexp.MustCompile(`\*\s*(\w+)$`)
)

// place places the members of a struct or union.
func (c *calculator) place(l *layout, body string, union bool) {
	bits := int64(0) // bits of the members so far
	add := func(width, align int64) (offset int64) {
		at := bits
		if union {
			at = 0
		}
		at = (at + align*8 - 1) / (align * 8) * (align * 8)
		bits = max(bits, at+width)
		l.align = max(l.align, align)
		return at / 8
	}
	for _, m := range declarations(body) {
		if x := innerUnion.FindStringSubmatch(m); x != nil {
			inner := &layout{members: make(map[string]place)}
			c.place(inner, x[2], x[1] == "union")
			offset := add(inner.size*8, max(inner.align, 1))
			for name, p := range inner.members {
				p.offset += offset
				l.members[name] = p
			}
		} else if x := mdPointer.FindStringSubmatch(m); x != nil {
			l.members[x[1]] = place{add(64, 8), 8, 8}
		} else if x := bitField.FindStringSubmatch(m); x != nil {
			width, _ := strconv.ParseInt(x[3], 10, 64)
			unit := numbersOf[x[1]]
			if unit > 0 && bits/(unit*8) == (bits+width-1)/(unit*8) {
				bits += width // it does not cross a unit
			} else {
				add(width, max(unit, 1))
			}
		} else if x := starred.FindStringSubmatch(m); x != nil {
			l.members[x[1]] = place{add(64, 8), 8, 8}
		} else if x := plain.FindStringSubmatch(m); x != nil && numbersOf[x[1]] > 0 {
			each, n := numbersOf[x[1]], int64(1)
			if x[3] != "" {
				n, _ = strconv.ParseInt(x[3], 0, 64)
			}
			l.members[x[2]] = place{add(each*n*8, each), each * n, each}
		} else {
			c.note("member " + m)
		}
	}
	align := max(l.align, 1)
	l.size = (bits/8 + align - 1) / align * align
}

// declarations returns the members that a body declares, without those of inner structs.
func declarations(body string) (l []string) {
	body = strings.TrimSuffix(strings.TrimPrefix(body, "{"), "}")
	depth, start := 0, 0
	for i := range len(body) {
		switch body[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ';':
			if depth == 0 {
				if m := strings.Join(strings.Fields(body[start:i]), " "); m != "" {
					l = append(l, m)
				}
				start = i + 1
			}
		}
	}
	return l
}
