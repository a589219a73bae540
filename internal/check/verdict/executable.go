// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// executableOf returns the name of the executable that embeds an object, as the object's name has it before the "!", or "".
func executableOf(object string) string {
	i := strings.LastIndexByte(object, '!')
	if i < 0 || strings.Contains(object[i:], "/") {
		return ""
	}
	return object[:i]
}

// executableOf returns the name of the executable that embeds all objects of a row, or "".
func (r *Report) executableOf(row *ObjectRow) string {
	if row.Variants == nil {
		return executableOf(row.Object)
	}
	objects := slices.Concat(row.Variants...)
	name := executableOf(r.Objects[objects[0]].Object)
	for _, i := range objects {
		if executableOf(r.Objects[i].Object) != name {
			return ""
		}
	}
	return name
}

// executables returns a row for each executable with several objects, which works where all of them do, or one of variants.
func (r *Report) executables() (rows []ObjectRow) {
	all := r.objectsOrVariants()
	parts := make(map[string]int)
	for _, u := range all {
		parts[r.executableOf(u)]++
	}
	for _, u := range all {
		name := r.executableOf(u)
		if name == "" || parts[name] == 1 {
			continue
		}
		at := slices.IndexFunc(rows, func(x ObjectRow) bool { return x.Object == name })
		if at < 0 {
			rows = append(rows, ObjectRow{Object: name, Status: slices.Clone(u.Status), Load: slices.Clone(u.Load)})
			at = len(rows) - 1
		}
		row := &rows[at]
		row.Programs, row.Decides = append(row.Programs, u.Programs...), append(row.Decides, u.Decides...)
		for k := range u.Status {
			row.Status[k], row.Load[k] = both(row.Status[k], u.Status[k]), both(row.Load[k], u.Load[k])
		}
	}
	return rows
}

// both returns the verdict on two objects that are needed. An object that is not loaded, or for other machines, is not needed.
func both(a, b rule.Status) rule.Status {
	switch {
	case a.Judged() && b.Judged():
		return max(a, b)
	case a.Judged():
		return a
	case b.Judged():
		return b
	}
	return min(a, b)
}
