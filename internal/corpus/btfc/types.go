// SPDX-License-Identifier: Apache-2.0

package btfc

import "slices"

// A chunk has two orders of types. That at the front lists the types there. That at the back lists all types, and says where those at
// the front stand among the others.

// typesReader makes a list of the types of a decoder's state.
type typesReader struct {
	list   *typeList
	fresh  []fresh // the types with new contents
	next   uint32  // the number of the next new content
	left   int     // new contents. If there were too few, it is negative
	entity uint32  // the last one
}

// add adds a type with a new content. old is the content that its entity has in the parent.
func (r *typesReader) add(entity, old uint32) {
	r.list.add(r.next, entity)
	r.fresh = append(r.fresh, fresh{uint32(r.list.len()), old})
	r.next++
	r.left--
}

// new adds a new entity.
func (r *typesReader) new() {
	r.entity++
	r.add(r.entity, noContent)
}

// readFront reads the order of the types at the front. So many have new contents.
func (d *decoder) readFront(contents int) error {
	p, st, n := &d.parent.front, d.st, 0
	for _, u := range st.units {
		n += u.front
	}
	st.front.grow(min(n, p.len()+contents))
	o := newOrderReader(d.in[streamTypes:streamStrings], p.len())
	r := typesReader{&st.front, slices.Grow(d.fresh, contents), uint32(d.parent.contents.count), contents, st.numEnts}
	for st.front.len() < n && !o.failed {
		kind, first, end := o.run(n - st.front.len())
		switch kind {
		case runCopy:
			st.front.append(p, first, end)
		case runChanged:
			for i := first; i < end; i++ {
				r.add(p.entities[i], p.contents[i])
			}
		case runNext:
			for range end {
				r.new()
			}
		default:
			return errRun
		}
	}
	d.fresh, st.numEnts, d.list = r.fresh, r.entity, st.front.entities
	if o.err() == nil && r.left != 0 {
		return errWrong
	}
	return o.err()
}

// readAll reads the order of all types. So many have new contents at the back.
func (d *decoder) readAll(contents int) error {
	p, st, n := d.parent, d.st, 0
	for _, u := range st.units {
		n += u.types
	}
	if n > p.contents.count+len(d.fresh)+contents {
		return errWrong
	}
	st.all.grow(n)
	st.atFront = make([]bool, n)
	placed := 0 // types at the front
	o := newOrderReader(d.back[streamTypes:streamStrings], p.all.len())
	r := typesReader{&st.all, slices.Grow(d.late, contents), uint32(p.contents.count + len(d.fresh)), contents, st.numEnts}
	for st.all.len() < n && !o.failed {
		kind, first, end := o.run(n - st.all.len())
		for i := first; i < end; i++ {
			switch {
			case kind == runFront || kind < runNext && p.atFront[i]:
				if placed++; placed > st.front.len() {
					return errWrong
				}
				st.atFront[st.all.len()] = true
				st.all.add(st.front.contents[placed-1], st.front.entities[placed-1])
			case kind == runCopy:
				st.all.add(p.all.contents[i], p.all.entities[i])
			case kind == runChanged:
				r.add(p.all.entities[i], p.all.contents[i])
			default:
				r.new()
			}
		}
	}
	d.late, st.numEnts = r.fresh, r.entity
	if o.err() == nil && (r.left != 0 || placed < st.front.len()) {
		return errWrong
	}
	return o.err()
}
