// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"regexp"
	"slices"
	"strings"
)

// interpreter runs the functions *_func_proto of a tree: which helper a program gets. It understands what these consist of: switches,
// conditions on the types of program and attachment, and calls of each other.
type interpreter struct {
	defs      *definitions
	parsed    map[string][]*statement
	attach    string // BPF_TRACE_FENTRY
	kind      string // BPF_PROG_TYPE_TRACING
	helper    string // BPF_FUNC_get_attach_cookie
	variables map[string]string
	depth     int
	Unknown   map[string]bool // functions and members that are taken for true
}

// statement is a statement of C. Those that do nothing here have no kind.
type statement struct {
	kind  string // if, switch, case, return, break, block, set, goto, label
	expr  []string
	name  string // the variable that is set, or the label
	body  []*statement
	other []*statement // else
}

// null is what functions return for a helper that programs cannot call.
const null = "NULL"

var cTokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\w+|->|==|!=|&&|\|\||<=|>=|<<|>>|[^\s\w]`)

// parser reads statements from tokens.
type parser struct {
	tokens []string
	at     int
}

func (p *parser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

func (p *parser) next() string {
	t := p.peek()
	p.at++
	return t
}

// until returns the tokens up to one of some at depth 0, which it skips.
func (p *parser) until(ends ...string) []string {
	start, depth := p.at, 0
	for p.at < len(p.tokens) {
		t := p.next()
		switch {
		case depth == 0 && slices.Contains(ends, t):
			return p.tokens[start : p.at-1]
		case t == "(" || t == "[" || t == "{":
			depth++
		case t == ")" || t == "]" || t == "}":
			depth--
		}
	}
	return p.tokens[start:]
}

func (p *parser) block() (l []*statement) {
	for p.peek() != "}" && p.at < len(p.tokens) {
		l = append(l, p.statement())
	}
	p.next()
	return l
}

func (p *parser) statement() *statement {
	switch t := p.next(); t {
	case "{":
		return &statement{kind: "block", body: p.block()}
	case "if":
		p.next()
		s := &statement{kind: "if", expr: p.until(")")}
		s.body = []*statement{p.statement()}
		if p.peek() == "else" {
			p.next()
			s.other = []*statement{p.statement()}
		}
		return s
	case "switch":
		p.next()
		s := &statement{kind: "switch", expr: p.until(")")}
		if p.peek() == "{" {
			p.next()
		}
		s.body = p.block()
		return s
	case "case":
		return &statement{kind: "case", expr: p.until(":")}
	case "default":
		p.next()
		return &statement{kind: "case"}
	case "return":
		return &statement{kind: "return", expr: p.until(";")}
	case "break":
		p.next()
		return &statement{kind: "break"}
	case "goto":
		return &statement{kind: "goto", name: p.until(";")[0]}
	default:
		if p.peek() == ":" {
			p.next()
			return &statement{kind: "label", name: t}
		}
		p.at--
		expr := p.until(";")
		for i, t := range expr {
			if t == "=" && i > 0 {
				return &statement{kind: "set", name: expr[i-1], expr: expr[i+1:]}
			}
		}
		return &statement{}
	}
}

// call runs a function of the tree for the helper.
func (x *interpreter) call(name string) string {
	if _, ok := x.parsed[name]; !ok {
		x.parsed[name] = nil
		code := "" // the longest: others are for kernels without something
		for _, body := range x.defs.functions[name] {
			if _, c, ok := strings.Cut(body, "{"); ok && len(c) > len(code) {
				code = c
			}
		}
		p := parser{tokens: cTokens.FindAllString(code, -1)}
		x.parsed[name] = p.block()
	}
	const most = 20
	if x.depth > most || x.parsed[name] == nil {
		return null
	}
	outer := x.variables
	x.variables = make(map[string]string)
	x.depth++
	value, _ := x.run(x.parsed[name])
	x.depth--
	x.variables = outer
	return value
}

// run returns what statements return, and how they end: "return", "break" or "".
func (x *interpreter) run(l []*statement) (value, end string) {
	for _, s := range l {
		switch s.kind {
		case "block":
			value, end = x.run(s.body)
		case "if":
			branch := s.body
			if !truth(x.value(s.expr)) {
				branch = s.other
			}
			value, end = x.run(branch)
		case "switch":
			if value, end = x.choose(s); end == "break" {
				end = ""
			}
		case "return":
			return x.value(s.expr), "return"
		case "break":
			return "", "break"
		case "set":
			x.variables[s.name] = x.value(s.expr)
		}
		if end != "" {
			return value, end
		}
	}
	return null, ""
}

// choose runs a switch from the case that fits.
func (x *interpreter) choose(s *statement) (string, string) {
	of, start := x.value(s.expr), -1
	for i, c := range s.body {
		if c.kind == "case" && c.expr != nil && x.value(c.expr) == of {
			start = i
			break
		} else if c.kind == "case" && c.expr == nil {
			start = i
		}
	}
	if start < 0 {
		return null, ""
	}
	return x.run(s.body[start:])
}

func truth(value string) bool { return value != null && value != "0" }

func number(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// value evaluates an expression.
func (x *interpreter) value(tokens []string) string {
	e := expression{interpreter: x, parser: parser{tokens: tokens}}
	return e.ternary()
}

// expression is an expression that is being evaluated.
type expression struct {
	*interpreter
	parser
}

func (e *expression) ternary() string {
	v := e.or()
	if e.peek() != "?" {
		return v
	}
	e.next()
	yes := e.ternary()
	e.next() // :
	if no := e.ternary(); !truth(v) {
		return no
	}
	return yes
}

func (e *expression) or() string {
	v := e.and()
	for e.peek() == "||" {
		e.next()
		w := e.and()
		v = number(truth(v) || truth(w))
	}
	return v
}

func (e *expression) and() string {
	v := e.compare()
	for e.peek() == "&&" {
		e.next()
		w := e.compare()
		v = number(truth(v) && truth(w))
	}
	return v
}

func (e *expression) compare() string {
	v := e.unary()
	switch e.peek() {
	case "==":
		e.next()
		return number(v == e.unary())
	case "!=":
		e.next()
		return number(v != e.unary())
	case "<", ">", "<=", ">=", "&":
		e.next()
		e.unary()
		return "0"
	}
	return v
}

func (e *expression) unary() string {
	switch e.peek() {
	case "!":
		e.next()
		return number(!truth(e.unary()))
	case "&": // the address of a helper's prototype
		e.next()
		e.next()
		return "pointer"
	case "-":
		e.next()
		return "-" + e.unary()
	}
	return e.primary()
}

// refused are functions that are false for a program with all capabilities, and without lockdown.
var refused = []string{"security_locked_down", "is_kprobe_multi", "is_kprobe_session", "is_uprobe_multi", "is_uprobe_session", "is_trampoline_multi"}

// granted are functions and members that are true for such a program. Of programs that may sleep and others one is enough.
var granted = []string{"capable", "bpf_capable", "perfmon_capable", "bpf_token_capable", "btf_id_set_contains", "sleepable", "has_current_bpf_ctx",
	"prog_args_trace", "bpf_lsm_is_sleepable_hook", "attach_btf_id", "bpf_prog_is_sleepable"}

func (e *expression) primary() string {
	t := e.next()
	if t == "(" {
		v := e.ternary()
		e.next()
		return v
	}
	name := t
	for {
		switch e.peek() {
		case "->", ".":
			e.next()
			name = e.next()
		case "[":
			e.next()
			e.until("]")
		case "(":
			e.next()
			e.until(")")
			return e.function(name)
		default:
			return e.name(t, name)
		}
	}
}

func (e *expression) function(name string) string {
	switch {
	case slices.Contains(refused, name):
		return "0"
	case slices.Contains(granted, name):
		return "1"
	case name == "bpf_prog_has_trampoline":
		return number(slices.Contains([]string{"BPF_TRACE_FENTRY", "BPF_TRACE_FEXIT", "BPF_MODIFY_RETURN", "BPF_LSM_MAC", "BPF_TRACE_FSESSION"}, e.attach) && (e.kind == "BPF_PROG_TYPE_TRACING" || e.kind == "BPF_PROG_TYPE_LSM"))
	case name == "bpf_iter_get_func_proto":
		return null // it depends on what the program iterates over
	case strings.HasSuffix(name, "func_proto"):
		return e.call(name)
	case strings.HasSuffix(name, "_proto"):
		return "pointer"
	}
	e.Unknown[name+"()"] = true
	return "1"
}

func (e *expression) name(first, last string) string {
	switch {
	case last == "func_id":
		return e.helper
	case last == "expected_attach_type":
		return e.attach
	case last == "type" && first == "prog":
		return e.kind
	case last == null, strings.HasPrefix(last, "BPF_"), len(last) > 0 && last[0] >= '0' && last[0] <= '9':
		return last
	}
	if v, ok := e.variables[last]; ok && first == last {
		return v
	}
	if !slices.Contains(granted, last) && !strings.HasSuffix(last, "_proto") {
		e.Unknown[first+"…"+last] = true
	}
	return "1"
}
