// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
)

// executableOf returns the name of the executable that embeds an object, as the object's name has it before the "!", or "".
func executableOf(object string) string {
	i := strings.LastIndexByte(object, '!')
	if i < 0 || strings.Contains(object[i:], "/") {
		return ""
	}
	return object[:i]
}

// executables returns a row for each executable with several objects, which works where all of them do.
func (r *Report) executables() (rows []ObjectRow) {
	objects := make(map[string]int)
	for i := range r.Objects {
		objects[executableOf(r.Objects[i].Object)]++
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		name := executableOf(o.Object)
		if name == "" || objects[name] == 1 {
			continue
		}
		at := slices.IndexFunc(rows, func(x ObjectRow) bool { return x.Object == name })
		if at < 0 {
			rows = append(rows, ObjectRow{Object: name, Status: slices.Clone(o.Status), Load: slices.Clone(o.Load)})
			at = len(rows) - 1
		}
		row := &rows[at]
		row.Programs, row.Decides = append(row.Programs, o.Programs...), append(row.Decides, o.Decides...)
		for k := range o.Status {
			row.Status[k], row.Load[k] = both(row.Status[k], o.Status[k]), both(row.Load[k], o.Load[k])
		}
	}
	return rows
}

// both returns the verdict on two objects that are needed. An object for other machines is not needed.
func both(a, b Status) Status {
	if a == Other || b != Other && b > a {
		return b
	}
	return a
}

// Whole returns the rows of executables with several objects and of the other objects, in order.
func (r *Report) Whole() (rows []*ObjectRow) {
	for i := range r.Objects {
		name := executableOf(r.Objects[i].Object)
		x := slices.IndexFunc(r.Executables, func(o ObjectRow) bool { return o.Object == name })
		switch {
		case x < 0:
			rows = append(rows, &r.Objects[i])
		case !slices.Contains(rows, &r.Executables[x]):
			rows = append(rows, &r.Executables[x])
		}
	}
	return rows
}
