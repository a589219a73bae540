// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
)

// The rules are written about types as C has them. This is as much of C's
// declarations as they need, turned into BTF: structs, unions, enums,
// typedefs, pointers, arrays, functions, bitfields, modifiers. Several types
// may have one name; a reference means the last one before it, or else the
// first after it. The declarations at the top get the type IDs 1, 2, … in their
// order. What C lacks:
//
//	enum64 e { A = 1 << 40 };              an enum of 8 bytes
//	struct s { … } __size(16);             bytes, of an enum too
//	int a __at(24);                        bit offset of a member
//	__int(name, bytes, bits, offset, enc); an integer type; enc is signed, char, schar, bool, or 0
//	__tag(name)                            a type tag, where a modifier stands
//	__x(3, int a%;)                        int a0; int a1; int a2; %+ is one more than %

// ctype is a type on its way to BTF.
type ctype struct {
	kind    btf.Kind
	name    string
	flag    bool
	defined bool   // by a declaration, not by a reference alone
	sizing  bool   // its layout is under way
	size    uint32 // bytes, of what has a size
	word    uint32 // of an int
	ref     *ctype // pointee, element, result, …; nil is void
	nelems  uint32
	members []*cmember // or parameters
	enum    []cenum
	id      btf.TypeID
}

// cmember is a member or a parameter.
type cmember struct {
	name     string
	typ      *ctype
	off      uint32 // bits
	bits     uint32 // of a bitfield
	isBits   bool
	explicit bool // off was given
}

type cenum struct {
	name  string
	value int64
}

// cparser reads declarations. Its methods panic with a cerror.
type cparser struct {
	tokens []string
	tags   map[string]*ctype // "struct s"
	names  map[string]*ctype // typedefs and integers
	top    []*ctype
}

type cerror string

var (
	ctoken  = regexp.MustCompile(`//[^\n]*|/\*(?s:.*?)\*/|[A-Za-z_]\w*|0[xX][0-9a-fA-F]+|\d+|<<|\.\.\.|[^\s]`)
	crepeat = regexp.MustCompile(`__x\((\d+), ((?:[^()]|\([^()]*\))*)\)`)
)

// crepeats expands __x.
func crepeats(src string) string {
	return crepeat.ReplaceAllStringFunc(src, func(s string) string {
		m := crepeat.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.NewReplacer("%+", strconv.Itoa(i+1), "%", strconv.Itoa(i)).Replace(m[2]))
		}
		return b.String()
	})
}

// parseC returns the types that src declares, numbered in order.
func parseC(src string) (types []*ctype, err error) {
	p := &cparser{tags: make(map[string]*ctype), names: make(map[string]*ctype)}
	for _, tok := range ctoken.FindAllString(crepeats(src), -1) {
		if !strings.HasPrefix(tok, "//") && !strings.HasPrefix(tok, "/*") {
			p.tokens = append(p.tokens, tok)
		}
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case cerror:
			err = fmt.Errorf("%s, before %q", string(e), p.tokens[:min(5, len(p.tokens))])
		default:
			panic(e)
		}
	}()
	for len(p.tokens) > 0 {
		p.declaration()
	}
	for _, t := range p.top {
		types = numbered(types, t)
	}
	for i := 0; i < len(types); i++ { // types grows
		t := types[i]
		types = numbered(types, t.ref)
		for _, m := range t.members {
			types = numbered(types, m.typ)
		}
	}
	if p.names["unsigned int"] != nil { // the index type of arrays
		types = numbered(types, p.names["unsigned int"])
	}
	ptr := uint32(8)
	for _, t := range types {
		if t.kind == btf.KindInt && t.name == "long" {
			ptr = t.size
		}
	}
	for _, t := range types {
		t.layout(ptr)
	}
	return types, nil
}

// numbered adds a type, unless it has an ID already.
func numbered(types []*ctype, t *ctype) []*ctype {
	if t != nil && t.id == 0 {
		types = append(types, t)
		t.id = btf.TypeID(len(types))
	}
	return types
}

func (p *cparser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *cparser) next() string {
	if len(p.tokens) == 0 {
		panic(cerror("unexpected end"))
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *cparser) accept(t string) bool {
	ok := p.peek() == t
	if ok {
		p.tokens = p.tokens[1:]
	}
	return ok
}

func (p *cparser) expect(t string) {
	if !p.accept(t) {
		panic(cerror("no " + t))
	}
}

func (p *cparser) isName() bool {
	s := p.peek()
	return s != "" && (s[0] == '_' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
}

func (p *cparser) number() int64 {
	neg := p.accept("-")
	n, err := strconv.ParseUint(p.next(), 0, 64)
	if err != nil {
		panic(cerror(err.Error()))
	}
	if p.accept("<<") {
		n <<= p.number()
	}
	if neg {
		return -int64(n)
	}
	return int64(n)
}

// argument reads "(n)".
func (p *cparser) argument() uint32 {
	p.expect("(")
	n := p.number()
	p.expect(")")
	return uint32(n)
}

func (p *cparser) declaration() {
	switch {
	case p.accept("__int"):
		p.integer()
	case p.accept("typedef"):
		typ, name := p.declarator(p.specifier())
		t := &ctype{kind: btf.KindTypedef, name: name, ref: typ}
		p.names[name] = t
		p.top = append(p.top, t)
	default:
		if t := p.specifier(); p.peek() != ";" {
			typ, name := p.declarator(t)
			if typ == nil || typ.kind != btf.KindFuncProto {
				panic(cerror("a variable"))
			}
			p.top = append(p.top, &ctype{kind: btf.KindFunc, name: name, ref: typ})
		} else if !t.defined { // struct s;
			t.defined = true
			p.top = append(p.top, t)
		} else if !slices.Contains(p.top, t) {
			p.top = append(p.top, t)
		}
	}
	p.expect(";")
}

func (p *cparser) integer() {
	p.expect("(")
	var words []string
	for p.peek() != "," {
		words = append(words, p.next())
	}
	t := &ctype{kind: btf.KindInt, name: strings.Join(words, " ")}
	p.expect(",")
	t.size = uint32(p.number())
	p.expect(",")
	bits := uint32(p.number())
	p.expect(",")
	off := uint32(p.number())
	p.expect(",")
	enc, ok := map[string]uint32{"0": 0, "signed": btf.IntSigned, "char": btf.IntChar, "schar": btf.IntSigned | btf.IntChar, "bool": btf.IntBool}[p.next()]
	if !ok {
		panic(cerror("no encoding"))
	}
	p.expect(")")
	t.word = enc<<24 | off<<16 | bits
	p.names[t.name] = t
	p.top = append(p.top, t)
}

var cmods = map[string]btf.Kind{
	"const": btf.KindConst, "volatile": btf.KindVolatile, "restrict": btf.KindRestrict, "__tag": btf.KindTypeTag,
}

// mods reads modifiers.
func (p *cparser) mods() (mods []*ctype) {
	for cmods[p.peek()] != 0 {
		m := &ctype{kind: cmods[p.next()]}
		if m.kind == btf.KindTypeTag {
			p.expect("(")
			m.name = p.next()
			p.expect(")")
		}
		mods = append(mods, m)
	}
	return mods
}

func modified(t *ctype, mods []*ctype) *ctype {
	for i := len(mods) - 1; i >= 0; i-- {
		mods[i].ref = t
		t = mods[i]
	}
	return t
}

var cwords = []string{"signed", "unsigned", "_Bool", "char", "short", "int", "long", "float", "double", "void"}

// specifier reads what stands before the declarators.
func (p *cparser) specifier() *ctype {
	mods := p.mods()
	var t *ctype
	switch p.peek() {
	case "struct":
		t = p.composite(p.next(), btf.KindStruct)
	case "union":
		t = p.composite(p.next(), btf.KindUnion)
	case "enum":
		t = p.enum(p.next(), btf.KindEnum)
	case "enum64":
		t = p.enum(p.next(), btf.KindEnum64)
	default:
		t = p.named()
	}
	return modified(t, append(mods, p.mods()...))
}

// named reads a typedef's name, or words like unsigned int, each spelling of
// which is a type.
func (p *cparser) named() *ctype {
	var words []string
	for slices.Contains(cwords, p.peek()) {
		words = append(words, p.next())
	}
	name := strings.Join(words, " ")
	if name == "" {
		name = p.next()
	}
	if name == "void" {
		return nil
	}
	if t := p.names[name]; t != nil {
		return t
	}
	if words == nil {
		panic(cerror(name + " is no type"))
	}
	t := &ctype{kind: btf.KindInt, name: name, size: 4}
	has := func(w string) bool { return slices.Contains(words, w) }
	switch {
	case has("float"):
		t.kind = btf.KindFloat
	case has("double"):
		t.kind, t.size = btf.KindFloat, 8
	case has("char"), has("_Bool"):
		t.size = 1
	case has("short"):
		t.size = 2
	case has("long"):
		t.size = 8
	}
	switch t.word = t.size * 8; {
	case has("_Bool"):
		t.word |= btf.IntBool << 24
	case !has("unsigned"):
		t.word |= btf.IntSigned << 24
	}
	p.names[name] = t
	return t
}

// tagged reads a tag and returns the type that a reference to it, or a
// definition, is about.
func (p *cparser) tagged(word string, fwd *ctype) *ctype {
	tag := ""
	if p.isName() && p.peek() != "__size" {
		tag = p.next()
	}
	old := p.tags[word+" "+tag]
	again := p.peek() == "{" || p.peek() == ";"
	if tag == "" || old == nil || again && old.defined {
		fwd.name = tag
		p.tags[word+" "+tag] = fwd
		return fwd
	}
	return old
}

func (p *cparser) composite(word string, kind btf.Kind) *ctype {
	t := p.tagged(word, &ctype{kind: btf.KindFwd, flag: kind == btf.KindUnion})
	if !p.accept("{") {
		return t
	}
	t.kind, t.flag, t.defined = kind, false, true
	for !p.accept("}") {
		spec := p.specifier()
		if p.accept(";") {
			t.members = append(t.members, &cmember{typ: spec})
			continue
		}
		for {
			m := &cmember{}
			m.typ, m.name = p.declarator(spec)
			if p.accept(":") {
				m.isBits, m.bits = true, uint32(p.number())
				t.flag = true
			}
			if p.accept("__at") {
				m.explicit, m.off = true, p.argument()
			}
			t.members = append(t.members, m)
			if !p.accept(",") {
				break
			}
		}
		p.expect(";")
	}
	if p.accept("__size") {
		t.size = p.argument()
	} else {
		t.size = math.MaxUint32 // layout says
	}
	return t
}

func (p *cparser) enum(word string, kind btf.Kind) *ctype {
	t := p.tagged(word, &ctype{kind: kind, size: 4})
	if !p.accept("{") {
		return t
	}
	t.kind, t.defined = kind, true
	if kind == btf.KindEnum64 {
		t.size = 8
	}
	value := int64(0)
	for !p.accept("}") {
		e := cenum{name: p.next()}
		if p.accept("=") {
			value = p.number()
		}
		e.value = value
		t.flag = t.flag || value < 0
		value++
		t.enum = append(t.enum, e)
		p.accept(",")
	}
	if p.accept("__size") {
		t.size = p.argument()
	}
	return t
}

// declarator reads a name with the pointers, arrays and parameters about it,
// and returns the type of the name.
func (p *cparser) declarator(t *ctype) (*ctype, string) {
	for p.accept("*") {
		t = modified(&ctype{kind: btf.KindPtr, ref: t}, p.mods())
	}
	var inner []string // of (*name)
	name := ""
	switch {
	case p.peek() == "(" && len(p.tokens) > 1 && p.tokens[1] == "*":
		depth := 0
		for {
			tok := p.next()
			inner = append(inner, tok)
			if tok == "(" {
				depth++
			} else if tok == ")" {
				if depth--; depth == 0 {
					break
				}
			}
		}
	case p.isName() && p.peek() != "__at":
		name = p.next()
	}
	t = p.suffix(t)
	if inner == nil {
		return t, name
	}
	rest := p.tokens
	p.tokens = inner[1 : len(inner)-1]
	t, name = p.declarator(t)
	p.tokens = rest
	return t, name
}

// suffix reads the arrays or the parameters that follow a name.
func (p *cparser) suffix(t *ctype) *ctype {
	switch {
	case p.accept("["):
		n := uint32(0)
		if p.peek() != "]" {
			n = uint32(p.number())
		}
		p.expect("]")
		if p.names["unsigned int"] == nil {
			rest := p.tokens
			p.tokens = []string{"unsigned", "int"}
			p.named()
			p.tokens = rest
		}
		return &ctype{kind: btf.KindArray, ref: p.suffix(t), nelems: n}
	case p.accept("("):
		f := &ctype{kind: btf.KindFuncProto, ref: t}
		for !p.accept(")") {
			m := &cmember{}
			if !p.accept("...") {
				m.typ, m.name = p.declarator(p.specifier())
			}
			if m.typ != nil || m.name != "" || p.peek() != ")" || len(f.members) > 0 { // not (void)
				f.members = append(f.members, m)
			}
			p.accept(",")
		}
		return f
	}
	return t
}
