// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
)

// Kernels with at least this many declared structs, and a quarter as many as defined ones, were built with CONFIG_DEBUG_INFO_REDUCED. That
// keeps a struct's members only in a source file with the name of its header. The kernels of the corpus, eleven releases, declare at most
// 1.8 structs for 100 that they define.
const (
	manyDeclared  = 100
	mostlyDefined = 4
)

// usable returns an error if BTF has no types that programs could use. Of a part of a kernel only what it has is judged.
//
// Every kernel that has struct task_struct defines it, since init_task is one, and functions of every kernel have parameters with types.
func usable(b *btf.BTF, part bool) error {
	const taskStruct = "task_struct"
	declared, defined, functions := b.Count(btf.KindFwd), b.Count(btf.KindStruct), b.Count(btf.KindFunc)
	task, whole := false, false // it is declared, defined
	for id := range b.WithName(taskStruct) {
		t := b.Type(id)
		task = task || t.Kind() == btf.KindFwd
		if whole = t.Kind() == btf.KindStruct; whole {
			break
		}
	}
	const reduced = "as with CONFIG_DEBUG_INFO_REDUCED"
	switch {
	case task && !whole:
		return fmt.Errorf("no usable types: struct %s is only declared, %s", taskStruct, reduced)
	case part:
		return nil
	case declared >= manyDeclared && declared > defined/mostlyDefined:
		return fmt.Errorf("no usable types: %d structs are only declared and %d defined, %s", declared, defined, reduced)
	case functions > 0 && functions+b.Count(btf.KindFuncProto) == b.NumTypes()-int(b.FirstID()):
		return errors.New("no usable types: functions and no other types, as with gcc -g1")
	}
	return nil
}
