// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"

	"github.com/btfgen/btfgen/internal/btf"
)

// coder reads or writes the words of contents, or learns from them.
type coder interface {
	// name codes a name that comes after two others.
	name(stream int, prev, before uint32, v *uint32)
	// ref codes a reference after two names, and returns its entity.
	ref(stream int, name, before uint32, v *uint32) (entity uint32)
	// number codes a number. Offsets and values are coded as differences from the one before.
	number(stream int, before uint32, v *uint32)
}

// codeContent codes the words of a content, except for its kind and number of elements. last is the last name of a type.
func codeContent(c coder, w []uint32, last *uint32) {
	k := kindOf(w)
	l := &layouts[k]
	if l.named {
		c.name(streamTypeNames, uint32(k), *last, &w[0])
	}
	if w[0] != 0 {
		*last = w[0]
	}
	ref := uint32(0) // the last reference, as an entity
	switch {
	case l.third == btf.Ref:
		ref = c.ref(streamTypeRefs, uint32(k), *last, &w[2])
	case l.third == btf.Size && k.IsComposite():
		c.number(streamSizes, 0, &w[2])
	case l.third == btf.Size:
		c.number(streamNumbers, 0, &w[2])
	}
	if len(w) == 3 {
		return
	}
	for i, word := range k.Shape().Extra {
		if word == btf.Ref {
			c.ref(streamElemRefs, uint32(k), uint32(i), &w[3+i])
		} else {
			c.number(streamNumbers, 0, &w[3+i])
		}
	}
	prev, before, number := w[0], uint32(k), uint32(0)
	for x, n := w[l.first:], int(l.words); len(x) > 0; x = x[n:] {
		if k == btf.KindDatasec {
			c.ref(streamElemRefs, uint32(k), 0, &x[0])
			c.number(streamValues, number, &x[1])
			c.number(streamNumbers, 0, &x[2])
			number = x[1] + x[2]
			continue
		}
		c.name(streamElemNames, prev, before, &x[0])
		switch {
		case l.ref:
			ref = c.ref(streamElemRefs, cmp.Or(x[0], ref), prev, &x[1])
			if k.IsComposite() {
				c.number(streamOffsets, number, &x[2])
				number = x[2]
			}
		default: // an enum
			c.number(streamValues, number, &x[1])
			number = x[1]
			if n == 3 {
				c.number(streamNumbers, 0, &x[2])
			}
		}
		prev, before = x[0], prev
	}
}

// guesses predict the names and references of contents: the one that came last in a context, by a hash of that. Both are empty at the
// beginning of a payload.
type guesses struct {
	names, refs [guessSize]uint32
	last        uint32 // the last name of a type
}

const (
	guessBits = 16
	guessSize = 1 << guessBits
)

// slot returns the index of a context in a table of guesses.
func slot(a, b uint32) uint32 {
	return (a*0x9e3779b1 + b*0x85ebca77 + 0x27d4eb2f) * 0xc2b2ae3d >> (32 - guessBits)
}

// learn makes guesses from the content that an entity has in the parent, for the new one that comes next. It ignores elements without
// names.
func (g *guesses) learn(w []uint32) {
	if layouts[kindOf(w)].names == 0 {
		w = w[:3]
	}
	last := g.last
	codeContent((*learner)(g), w, &last)
}

// learner is a coder that notes names and references as guesses.
type learner guesses

func (l *learner) name(_ int, prev, before uint32, v *uint32) { l.names[slot(prev, before)] = *v }

func (l *learner) ref(_ int, name, before uint32, v *uint32) uint32 {
	l.refs[slot(name, before)] = *v
	return *v
}

func (*learner) number(int, uint32, *uint32) {}
