// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// kind is a kind of facts.
type kind struct {
	name, title, table, basis string
	compared                  []Release
}

// kinds is kinds.txt.
var kinds = sync.OnceValue(func() []kind {
	all, err := readKinds(readFile("kinds.txt"))
	if err != nil {
		panic(err)
	}
	return all
})

func readKinds(text string) (all []kind, err error) {
	l, err := entries("kinds.txt", text)
	if err != nil {
		return nil, err
	}
	for i := range l {
		k := kind{name: l[i].name}
		text := func(to *string) func(string) error { return func(value string) error { *to = value; return nil } }
		err := l[i].read(map[string]func(string) error{
			"title": text(&k.title), "table": text(&k.table), "rest on": text(&k.basis),
			"compared with": func(value string) error {
				for word := range strings.FieldsSeq(value) {
					r, err := parseRelease(word)
					if err != nil {
						return err
					}
					k.compared = append(k.compared, r)
				}
				return nil
			},
		})
		if err != nil {
			return nil, err
		}
		if len(k.compared) == 0 || !slices.IsSorted(k.compared) {
			return nil, l[i].wrap(l[i].line, fmt.Errorf("want ascending releases to compare with"))
		}
		all = append(all, k)
	}
	return all, nil
}

// newest returns the newest release with which facts of a kind were compared.
func newest(name string) Release {
	l := kinds()
	k := l[slices.IndexFunc(l, func(k kind) bool { return k.name == name })]
	return k.compared[len(k.compared)-1]
}

// HelpersRead is the newest release with which the callers of helpers were compared.
func HelpersRead() Release { return newest("helpers") }

// KfuncsRead is the newest release with which the types of programs that can never call a kfunc were compared.
func KfuncsRead() Release { return newest("kfunc sets") }

// HooksRead is the newest release with which hooks of LSM were compared.
func HooksRead() Release { return newest("hooks") }

// RecordsRead is the newest release with which records of events of system calls were compared.
func RecordsRead() Release { return newest("records of system calls") }

// ContextsRead is the newest release with which it was compared which bytes of their context programs may access.
func ContextsRead() Release { return newest("contexts") }
