// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// marks are the options of debug kernels and the members that show them. See the package comment.
var marks = []struct{ option, strct, member string }{
	{"DEBUG_SPINLOCK", "raw_spinlock", "magic"},
	{"LOCKDEP", "lockdep_map", ""}, // any
	{"DEBUG_MUTEXES", "mutex", "magic"},
	{"KASAN", "task_struct", "kasan_depth"},
	{"KCSAN", "task_struct", "kcsan_ctx"},
	{"KMSAN", "task_struct", "kmsan_ctx"},
	{"KCOV", "task_struct", "kcov_mode"},
}

// debugOptions returns the options of debug kernels that show in the structs found.
func debugOptions(b *btf.BTF, found map[string]btf.Type) (options []string) {
	for _, m := range marks {
		t := found[m.strct]
		if m.member == "" && t.Vlen() > 0 || m.member != "" && b.HasMember(&t, m.member) {
			options = append(options, m.option)
		}
	}
	if _, ok := found["kasan_global"]; ok {
		if at := slices.Index(options, "KASAN"); at >= 0 {
			options[at] = "KASAN_GENERIC"
		}
	}
	return options
}
