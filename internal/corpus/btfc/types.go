// SPDX-License-Identifier: Apache-2.0

package btfc

import "slices"

// typesReader makes the list of types of a decoder's state. In a state for a query that has only the types at the front.
type typesReader struct {
	*decoder
	kinds       []byte // of the new contents that are left
	front, back uint32 // the numbers of the next ones
}

// readTypes reads the order of types.
func (d *decoder) readTypes(kinds []byte) error {
	p, st, n := d.parent, d.st, 0
	for _, u := range st.units {
		n += u.types
	}
	late := 0
	for _, kind := range kinds {
		late += int(kind&backKind) / backKind
	}
	room := n
	d.fresh = slices.Grow(d.fresh, len(kinds)-late)
	if d.query == nil {
		d.late = slices.Grow(d.late, late)
	} else {
		room = min(n, len(p.types)+len(kinds)-late)
	}
	st.types, st.entities = make([]uint32, 0, room), make([]uint32, 0, room)
	o := newOrderReader(d.in[streamTypes:streamStrings], p.front.n, 0)
	r := typesReader{d, kinds, uint32(p.contents.n), uint32(p.contents.n + len(kinds) - late)}
	for st.front.n < n && !o.failed {
		kind, first, end := o.run(n - st.front.n)
		if kind == runCopy {
			r.copy(first, end)
			continue
		}
		if end-first > len(r.kinds) || kind == runChanged && !r.changed(first, end) {
			return errWrong
		}
		if kind == runNext {
			r.next(end)
		}
	}
	if o.err() == nil && len(r.kinds) > 0 {
		return errWrong
	}
	d.list = st.entities
	if d.query == nil {
		d.list = make([]uint32, 0, st.front.set)
		for i, e := range st.entities {
			if st.front.has(i) {
				d.list = append(d.list, e)
			}
		}
	}
	return o.err()
}

// copy adds types first to end of all of the parent.
func (r *typesReader) copy(first, end int) {
	p, st := r.parent, r.st
	st.front.copy(&p.front, first, end)
	if r.query != nil {
		first, end = p.front.rank(first), p.front.rank(end)
	}
	st.types = append(st.types, p.types[first:end]...)
	st.entities = append(st.entities, p.entities[first:end]...)
}

// changed adds new contents for the entities of types first to end of all of the parent. It reports false for one at the front whose
// entity is at the back there.
func (r *typesReader) changed(first, end int) bool {
	p := r.parent
	for i := first; i < end; i++ {
		front := r.kinds[0]&backKind == 0
		if front && !p.front.has(i) {
			return false
		}
		switch at := i; {
		case r.query == nil:
			r.add(p.entities[at], p.types[at])
		case front:
			at = p.front.rank(i)
			r.add(p.entities[at], p.types[at])
		default:
			r.add(0, noContent)
		}
	}
	return true
}

// next adds n new entities.
func (r *typesReader) next(n int) {
	for range n {
		r.st.numEnts++
		r.add(r.st.numEnts, noContent)
	}
}

// add adds a new content.
func (r *typesReader) add(entity, old uint32) {
	st := r.st
	front := r.kinds[0]&backKind == 0
	r.kinds = r.kinds[1:]
	st.front.add(front)
	content := r.front
	switch {
	case front:
		r.fresh = append(r.fresh, fresh{uint32(st.front.set), old})
		r.front++
	case r.query == nil:
		r.late = append(r.late, fresh{uint32(st.front.n), old})
		content = r.back
		r.back++
	default:
		return
	}
	st.types, st.entities = append(st.types, content), append(st.entities, entity)
}
