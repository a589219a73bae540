// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestSignaturesOfMutatedScenarios does with testdata/rules what
// TestSignaturesOfMutants does with real objects. Every rule has a scenario for each
// answer.
func TestSignaturesOfMutatedScenarios(t *testing.T) {
	raceflag.SkipSerial(t)
	const mutations, seed = 1000, 1 // of each scenario
	made, distinguished, matches := 0, 0, 0
	for _, r := range readRules(t) {
		if r.name == "limit-budget" { // a second for each
			continue
		}
		qs, ms, err := MutateQuestions([][]byte{r.elf}, mutations, seed)
		if err != nil {
			t.Fatal(err)
		}
		differences, n := qs.Compare(r.kernel)
		for _, d := range differences {
			t.Errorf("%s: %s", r.name, d)
		}
		made += ms.Made
		distinguished += ms.Distinguished
		matches += n
	}
	t.Logf("seed %d: %d mutations, of which %d have another signature; %d matches", seed, made, distinguished, matches)
	if made == distinguished || matches == 0 {
		t.Error("nothing was compared")
	}
}

// Relocations with equal signatures must have equal outcomes on every candidate.
// TestEqualSignatures checks the relocations of real objects, and
// TestSignaturesOfMutants relocations that differ from them in one place.

// Questions are specs whose outcomes are all computed, also if their signatures are equal.
type Questions struct {
	questions []question
	same      []int // the first question with this signature
	origin    []string
	names     []string
	index     *btf.Names
	numbers   map[string]int
}

func newQuestions() *Questions { return &Questions{numbers: make(map[string]int)} }

// add adds a spec that depends on the kernel. same is the index of the question to
// compare it with, or its own index.
func (qs *Questions) add(s *spec, same int, origin string) {
	name := s.name()
	n, ok := qs.numbers[name]
	if !ok {
		n = len(qs.names)
		qs.numbers[name] = n
		qs.names = append(qs.names, name)
	}
	q := question{spec: s, name: n, rootKind: s.rootKind()}
	for k := range relo.TypeMatches + 1 {
		if sortOf(k) == sortOf(s.kind) && k != relo.LocalTypeID {
			q.kinds |= 1 << k
		}
	}
	qs.questions = append(qs.questions, q)
	qs.same = append(qs.same, same)
	qs.origin = append(qs.origin, origin)
	qs.index = nil
}

// QuestionsOf returns the questions of some objects.
func QuestionsOf(objects ...*Object) *Questions {
	qs := newQuestions()
	first := make(map[string]int)
	for _, o := range objects {
		for _, s := range o.specs {
			if !s.dependsOnKernel() {
				continue
			}
			key := questionKey(s)
			n, ok := first[key]
			if !ok {
				n = len(qs.questions)
				first[key] = n
			}
			qs.add(s, n, o.name)
		}
	}
	return qs
}

func questionKey(s *spec) string {
	return string(s.signature(&signer{btf: s.btf, end: limits.SignatureBytes}, []byte{sortOf(s.kind)}))
}

// Len returns the number of questions, and how many of them have the signature of an
// earlier one.
func (qs *Questions) Len() (all, pairs int) {
	for i, n := range qs.same {
		if i != n {
			pairs++
		}
	}
	return len(qs.same), pairs
}

// Compare computes the outcomes of every question on a kernel. It returns the
// differences between questions with equal signatures, and the number of matches.
func (qs *Questions) Compare(k *Target) (differences []string, matches int) {
	if qs.index == nil {
		qs.index = btf.NewNames(qs.names)
	}
	var tb Table
	var f Filler
	if err := f.begin(context.Background(), &tb, &Set{questions: qs.questions, names: qs.names, index: qs.index}, k); err != nil {
		return []string{err.Error()}, 0
	}
	f.m.meter = limits.NewMeter(context.Background(), math.MaxInt64, "")
	f.cilium.meter = f.m.meter
	first := make([][]byte, len(qs.questions))
	var got []byte
	for i := range qs.questions {
		q := &qs.questions[i]
		got = got[:0]
		err := f.row(i, func(m *Found) {
			matches++
			for _, n := range m.Needs {
				got = binary.LittleEndian.AppendUint64(append(got, byte(n.What)), uint64(n.Type)<<32|uint64(n.Idx))
			}
		})
		if err != nil {
			return []string{err.Error()}, matches
		}
		for j := range tb.candidates(i) {
			out := tb.outcome(i, j)
			got = tb.appendOutcome(append(got, 0xff), q, &out)
		}
		if n := qs.same[i]; n == i {
			first[i] = bytes.Clone(got)
		} else if !bytes.Equal(first[n], got) {
			differences = append(differences, fmt.Sprintf("%s (%s) has the signature of %s (%s), but other outcomes",
				q.spec, qs.origin[i], qs.questions[n].spec, qs.origin[n]))
		}
	}
	return differences, matches
}

// records are the types of a BTF blob as 32-bit words. A name is an index into names.
type records struct {
	order binary.ByteOrder
	words [][]uint32 // by type ID
	names []string   // the first is empty
}

// role is the meaning of a word of a record.
type role string

const (
	roleName   role = "name"
	roleInfo   role = "kind and flag"
	roleCount  role = "number of members, enumerators or parameters"
	roleSize   role = "size"
	roleType   role = "type"
	roleInt    role = "encoding of an integer"
	roleNelems role = "number of elements"
	roleOffset role = "offset of a member"
	roleValue  role = "value"
	roleOther  role = "other"
)

// itemRoles are the roles of the words that follow struct btf_type, once or vlen times.
var itemRoles = map[btf.Kind][]role{
	btf.KindInt:       {roleInt},
	btf.KindArray:     {roleType, roleType, roleNelems},
	btf.KindStruct:    {roleName, roleType, roleOffset},
	btf.KindUnion:     {roleName, roleType, roleOffset},
	btf.KindEnum:      {roleName, roleValue},
	btf.KindEnum64:    {roleName, roleValue, roleValue},
	btf.KindFuncProto: {roleName, roleType},
	btf.KindVar:       {roleOther},
	btf.KindDatasec:   {roleType, roleOther, roleOther},
	btf.KindDeclTag:   {roleOther},
}

func recordKind(words []uint32) btf.Kind { return btf.Kind(words[1] >> 24 & 0x1f) }

// roleOf returns the role of word i of a record.
func roleOf(words []uint32, i int) role {
	k := recordKind(words)
	switch i {
	case 0:
		return roleName
	case 1:
		return roleInfo
	case 2:
		switch k {
		case btf.KindInt, btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64, btf.KindFloat, btf.KindDatasec:
			return roleSize
		case btf.KindArray, btf.KindFwd:
			return roleOther
		}
		return roleType
	}
	r := itemRoles[k]
	return r[(i-3)%len(r)]
}

// readRecords reads the types of a BPF object.
func readRecords(object []byte) (*records, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	raw, err := f.Section(".BTF").Data()
	if err != nil {
		return nil, err
	}
	own, err := btf.New(raw, nil)
	if err != nil {
		return nil, err
	}
	u32 := func(at uint32) uint32 { return f.ByteOrder.Uint32(raw[at:]) }
	hdr := u32(4)
	r := &records{order: f.ByteOrder, words: [][]uint32{nil}, names: []string{""}}
	index := map[string]uint32{"": 0}
	at := hdr + u32(8)
	for id := 1; id < own.NumTypes(); id++ {
		t := own.Type(btf.TypeID(id))
		n := len(itemRoles[t.Kind()])
		switch t.Kind() {
		case btf.KindInt, btf.KindArray, btf.KindVar, btf.KindDeclTag:
		default:
			n *= int(t.Vlen())
		}
		words := make([]uint32, 3+n)
		for i := range words {
			words[i] = u32(at)
			at += 4
		}
		for i, w := range words {
			if roleOf(words, i) == roleName {
				name := string(own.Name(w))
				if _, ok := index[name]; !ok {
					index[name] = r.addName(name)
				}
				words[i] = index[name]
			}
		}
		r.words = append(r.words, words)
	}
	return r, nil
}

// reach returns a record and all records that it refers to, directly or not, with
// new IDs. The record itself has ID 1.
func (r *records) reach(root btf.TypeID) *records {
	out := &records{order: r.order, words: [][]uint32{nil}, names: slices.Clone(r.names)}
	ids := map[uint32]uint32{0: 0, uint32(root): 1}
	queue := []uint32{uint32(root)}
	for i := 0; i < len(queue); i++ { // queue grows
		words := slices.Clone(r.words[queue[i]])
		for j, w := range words {
			if roleOf(words, j) != roleType {
				continue
			}
			if _, ok := ids[w]; !ok {
				queue = append(queue, w)
				ids[w] = uint32(len(queue))
			}
			words[j] = ids[w]
		}
		out.words = append(out.words, words)
	}
	return out
}

func (r *records) addName(s string) uint32 {
	r.names = append(r.names, s)
	return uint32(len(r.names) - 1)
}

// load returns the records as BTF, or an error if they are not valid BTF.
func (r *records) load() (*btf.BTF, error) {
	b := btf.NewBuilder(r.order)
	for _, words := range r.words[1:] {
		b.Type(r.names[words[0]], recordKind(words), words[1]>>31 != 0, int(words[1]&0xffff), words[2])
		for i := 3; i < len(words); i++ {
			if roleOf(words, i) == roleName {
				b.Word(b.String(r.names[words[i]]))
			} else {
				b.Word(words[i])
			}
		}
	}
	return btf.New(b.Bytes(), nil)
}

// mutation changes one word of one record, or the number of its items.
type mutation struct {
	id   int
	word int // or -1: one item less, -2: one more
	to   uint32
	name string // instead of to, of a name
	role role
}

func (m *mutation) String() string {
	return fmt.Sprintf("type %d, word %d: %d %q", m.id, m.word, m.to, m.name)
}

// mutations returns ways to change every word of every record.
func (r *records) mutations(rnd *rand.Rand) (out []mutation) {
	for id := 1; id < len(r.words); id++ {
		words := r.words[id]
		for i, w := range words {
			role := roleOf(words, i)
			add := func(vs ...uint32) {
				for _, v := range vs {
					out = append(out, mutation{id, i, v, "", role})
				}
			}
			switch role {
			case roleName:
				name := r.names[w]
				for _, to := range []string{"", name + "x", name + "___m", r.names[rnd.IntN(len(r.names))]} {
					out = append(out, mutation{id, i, 0, to, role})
				}
			case roleInfo:
				add(w ^ 1<<31)
				for _, k := range likeKinds(recordKind(words)) {
					add(w&^(0x1f<<24) | uint32(k)<<24)
				}
			case roleType:
				add(0, rnd.Uint32N(uint32(len(r.words))), rnd.Uint32N(uint32(len(r.words))))
			case roleInt: // the encoding, the bit offset, and the number of bits
				add(w^1<<24, w^1<<25, w^1<<26, w^1<<16, w^3)
			default:
				add(0, w+1, w*2, w^8)
			}
		}
		if n := len(itemRoles[recordKind(words)]); n > 0 && len(words) > 3 && words[1]&0xffff > 0 {
			out = append(out, mutation{id, -1, 0, "", roleCount}, mutation{id, -2, 0, "", roleCount})
		}
	}
	return out
}

// likeKinds returns the kinds with records of the same form.
func likeKinds(k btf.Kind) []btf.Kind {
	for _, l := range [][]btf.Kind{
		{btf.KindStruct, btf.KindUnion},
		{btf.KindPtr, btf.KindTypedef, btf.KindConst, btf.KindVolatile, btf.KindTypeTag},
		{btf.KindFwd, btf.KindFloat},
		{btf.KindEnum, btf.KindFuncProto},
	} {
		if slices.Contains(l, k) {
			return l
		}
	}
	return nil
}

// mutated returns a copy of r with a mutation. It shares unchanged words with r.
func (r *records) mutated(m *mutation) *records {
	out := &records{order: r.order, words: slices.Clone(r.words), names: slices.Clip(r.names)}
	words := slices.Clone(r.words[m.id])
	switch n := len(itemRoles[recordKind(words)]); {
	case m.word == -1:
		words = words[:len(words)-n]
		words[1]--
	case m.word == -2:
		words = append(words, words[3:3+n]...)
		words[1]++
	case m.role == roleName:
		words[m.word] = out.addName(m.name)
	default:
		words[m.word] = m.to
	}
	out.words[m.id] = words
	return out
}

// Mutants counts mutations.
type Mutants struct {
	Possible, Made int
	Classes        int // combinations of relocation, kind of type and role of the word

	Damaged       int // the relocation is no longer valid, or does not depend on the kernel
	Distinguished int // the signature differs
	Alike         int // the signature is the same, so the outcomes must be
}

// mutant is a relocation and a mutation of a type that it depends on.
type mutant struct {
	*spec
	recs *records
	mutation
}

// MutateQuestions returns relocations of BPF objects together with mutants that have
// the same signature: one word of one type that the relocation depends on differs. It
// makes at most n mutations, chosen at random and spread evenly over the classes.
func MutateQuestions(objects [][]byte, n int, seed uint64) (*Questions, *Mutants, error) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	possible, classes, err := mutants(objects, rnd)
	if err != nil {
		return nil, nil, err
	}
	ms := &Mutants{Classes: len(classes)}
	for _, key := range classes {
		l := possible[key]
		ms.Possible += len(l)
		rnd.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
	}
	qs := newQuestions()
	first := make(map[*spec]int)
	for more := true; more && ms.Made < n; {
		more = false
		for _, key := range classes {
			l := possible[key]
			if len(l) == 0 || ms.Made == n {
				continue
			}
			m := l[0]
			possible[key], more = l[1:], true
			ms.Made++
			s := m.parse()
			switch {
			case s == nil || !s.dependsOnKernel():
				ms.Damaged++
			case questionKey(s) != questionKey(m.spec):
				ms.Distinguished++
			default:
				ms.Alike++
				if _, ok := first[m.spec]; !ok {
					first[m.spec] = len(qs.questions)
					qs.add(m.spec, len(qs.questions), "the original")
				}
				qs.add(s, first[m.spec], key+": "+m.mutation.String())
			}
		}
	}
	return qs, ms, nil
}

// mutants returns all mutations of the distinct relocations of some objects by class,
// and the classes in the order of their first mutation.
func mutants(objects [][]byte, rnd *rand.Rand) (all map[string][]mutant, classes []string, err error) {
	all = make(map[string][]mutant)
	seen := make(map[string]bool)
	for _, data := range objects {
		o, err := ParseObject("object", data)
		if err != nil {
			return nil, nil, err
		}
		types, err := readRecords(data)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range o.specs {
			if !s.dependsOnKernel() || seen[questionKey(s)] {
				continue
			}
			seen[questionKey(s)] = true
			recs := types.reach(s.root)
			for _, m := range recs.mutations(rnd) {
				key := fmt.Sprintf("%s, %s: %s", sortNames[sortOf(s.kind)], recordKind(recs.words[m.id]), m.role)
				if all[key] == nil {
					classes = append(classes, key)
				}
				all[key] = append(all[key], mutant{s, recs, m})
			}
		}
	}
	return all, classes, nil
}

var sortNames = map[byte]string{'f': "field", 't': "type", 'm': "type_matches", 'e': "enumerator"}

// parse returns the relocation with the mutated types, or nil if these are not valid BTF.
func (m *mutant) parse() *spec {
	btf, err := m.recs.mutated(&m.mutation).load()
	if err != nil {
		return nil
	}
	return parseSpec(btf, m.spec.kind, 1, m.spec.access)
}
