// SPDX-License-Identifier: Apache-2.0

package testinput

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
)

// question is the member, type or enumerator of a record.
type question struct {
	about     about
	sometimes bool      // some kernels lack it: only a guard may have it
	root      string    // the local type's name, with its flavor
	name      string    // name of an enumerator, or path of a member
	shape     byte      // only for members
	instead   *question // only for members: the one to read if the guard is false

	// In the local types.
	id     btf.TypeID
	access string
	value  int64 // offset of a member, value of an enumerator
	size   int64 // bytes, of a member or a type
}

// about is the sort of a question.
type about uint8

const (
	aboutMember about = iota
	aboutType
	aboutEnumerator
)

// largePlan is the distinct questions of an object.
type largePlan struct {
	questions []*question
	members   []*question // about members that every kernel has
	helper    *question   // whether the kernel has bpf_get_current_task_btf, or nil
	missing   int
}

// planLarge chooses n questions. Two thirds of them, including the first, are about
// members that every kernel has.
func planLarge(n int) *largePlan {
	p := new(largePlan)
	always, sometimes := largeMembers()
	types := alternate(aboutType, "", largeTypes.always, largeTypes.sometimes)
	helper := &question{about: aboutEnumerator, sometimes: true, root: "bpf_func_id", name: "BPF_FUNC_get_current_task_btf"}
	enumerators := append([]*question{helper}, alternate(aboutEnumerator, "bpf_map_type", largeEnumerators.always, largeEnumerators.sometimes)...)
	for i := range n {
		from := &always
		switch i % 20 {
		case 3, 7, 11, 15:
			from = &sometimes
		case 5:
			from = &types
		case 9:
			from = &enumerators
		case 13:
			from = nil
		}
		p.add(from)
	}
	if slices.Contains(p.questions, helper) {
		p.helper = helper
	}
	return p
}

// add takes the next question from a list. If the list is empty, it invents a member that
// no kernel has.
func (p *largePlan) add(from *[]*question) {
	var q *question
	if from != nil && len(*from) > 0 {
		q, *from = (*from)[0], (*from)[1:]
	} else {
		q = &question{sometimes: true, root: "task_struct___missing", name: "missing_" + strconv.Itoa(p.missing), shape: '8'}
		p.missing++
	}
	switch {
	case q.about == aboutMember && !q.sometimes:
		p.members = append(p.members, q)
	case q.about == aboutMember:
		q.instead = p.members[len(p.members)-1]
	}
	p.questions = append(p.questions, q)
}

// largeMembers returns questions about members, of the structs in turn.
func largeMembers() (always, sometimes []*question) {
	turns := func(list func(i int) (root, members string)) (out []*question) {
		for turn, more := 0, true; more; turn++ {
			more = false
			for i := range largeStructs {
				root, members := list(i)
				if m := strings.Fields(members); turn < len(m) {
					name, shape, _ := strings.Cut(m[turn], ":")
					out = append(out, &question{root: root, name: name, shape: shape[0]})
					more = true
				}
			}
		}
		return out
	}
	always = turns(func(i int) (string, string) { return largeStructs[i].name, largeStructs[i].always })
	sometimes = turns(func(i int) (string, string) { return largeStructs[i].name + "___new", largeStructs[i].sometimes })
	for _, q := range sometimes {
		q.sometimes = true
	}
	return always, sometimes
}

// alternate returns questions about types, or about enumerators of root, that
// every kernel and that only some have.
func alternate(what about, root, always, sometimes string) (out []*question) {
	a, s := strings.Fields(always), strings.Fields(sometimes)
	for i := range min(len(a), len(s)) {
		for _, name := range []string{a[i], s[i]} {
			q := &question{about: what, root: name, sometimes: name == s[i]}
			if what == aboutEnumerator {
				q.root, q.name = root, "BPF_MAP_TYPE_"+name
			}
			out = append(out, q)
		}
	}
	return out
}

// localTypes are the types that the code needs in addition to those of the questions.
type localTypes struct {
	program, function btf.TypeID // prototypes
}

// declare writes the local types of the questions, and notes their types and values.
func (p *largePlan) declare(b *btf.Builder) localTypes {
	scalars := map[byte]btf.TypeID{'p': b.Type("", btf.KindPtr, false, 0, 0)}
	for _, x := range []struct {
		shape byte
		name  string
	}{{'1', "unsigned char"}, {'2', "unsigned short"}, {'4', "unsigned int"}, {'8', "unsigned long long"}} {
		scalars[x.shape] = b.Type(x.name, btf.KindInt, false, 0, uint32(x.shape-'0'))
		b.Word(8 * uint32(x.shape-'0'))
	}
	integer := b.Type("int", btf.KindInt, false, 0, 4)
	b.Word(btf.IntSigned<<24 | 32)

	byRoot := make(map[string][]*question)
	var roots []string
	for _, q := range p.questions {
		if byRoot[q.root] == nil {
			roots = append(roots, q.root)
		}
		byRoot[q.root] = append(byRoot[q.root], q)
	}
	for _, root := range roots {
		switch qs := byRoot[root]; qs[0].about {
		case aboutMember:
			declareStruct(b, root, qs, scalars)
		case aboutType:
			qs[0].id, qs[0].access, qs[0].size = b.Type(root, btf.KindStruct, false, 1, 4), "0", 4
			b.Word(b.String("any"), uint32(scalars['4']), 0)
		case aboutEnumerator:
			id := b.Type(root, btf.KindEnum, false, len(qs), 4)
			for i, q := range qs {
				q.id, q.access, q.value = id, strconv.Itoa(i), int64(i)
				b.Word(b.String(q.name), uint32(i))
			}
		}
	}

	proto := func(param string, id btf.TypeID) btf.TypeID {
		t := b.Type("", btf.KindFuncProto, false, 1, uint32(integer))
		b.Word(b.String(param), uint32(id))
		return t
	}
	return localTypes{program: proto("ctx", scalars['p']), function: proto("base", scalars['8'])}
}

// localMember is a member of a local struct: an integer or a pointer, or an anonymous
// struct around the member of a question.
type localMember struct {
	name  string
	shape byte
	inner []*question
	id    btf.TypeID
	bytes int64
	at    int64 // offset, bytes
}

// arrange gives each question about a struct its own 8 bytes, in a member of a member if
// its path has two parts.
func arrange(qs []*question) (members []*localMember) {
	index := make(map[string]int)
	owner := make([]*localMember, len(qs))
	for n, q := range qs {
		outer, _, nested := strings.Cut(q.name, ".")
		i, ok := index[outer]
		if !ok {
			i = len(members)
			index[outer] = i
			members = append(members, &localMember{name: outer, shape: q.shape})
		}
		m := members[i]
		owner[n] = m
		q.access = fmt.Sprintf("0:%d", i)
		if nested {
			q.access += fmt.Sprintf(":%d", len(m.inner))
			m.inner = append(m.inner, q)
		}
		q.value = m.bytes
		m.bytes += 8
		if q.size = 8; q.shape != 'p' {
			q.size = int64(q.shape - '0')
		}
	}
	for i, m := range members[1:] {
		m.at = members[i].at + members[i].bytes
	}
	for n, q := range qs {
		q.value += owner[n].at
	}
	return members
}

// declareStruct writes a struct with only the members of questions.
func declareStruct(b *btf.Builder, root string, qs []*question, scalars map[byte]btf.TypeID) {
	members := arrange(qs)
	size := uint32(0)
	for _, m := range members {
		size += uint32(m.bytes)
		if m.inner == nil {
			m.id = scalars[m.shape]
			continue
		}
		m.id = b.Type("", btf.KindStruct, false, len(m.inner), uint32(m.bytes))
		for i, q := range m.inner {
			_, name, _ := strings.Cut(q.name, ".")
			b.Word(b.String(name), uint32(scalars[q.shape]), 64*uint32(i))
		}
	}
	id := b.Type(root, btf.KindStruct, false, len(members), size)
	for _, q := range qs {
		q.id = id
	}
	for _, m := range members {
		b.Word(b.String(m.name), uint32(m.id), 8*uint32(m.at))
	}
}
