// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Came returns the first release with a part of the kernel's interface, 0 if it is not known. A helper is named
// "bpf_loop".
func Came(name string) Release { return Interface()[name] }

// Interface returns the releases of [Came] for all parts of the kernel's interface.
var Interface = sync.OnceValue(func() map[string]Release {
	all := maps.Clone(the().came)
	for id := range helperTable() {
		if since := helperTable()[id].since; since != 0 {
			all[HelperName(int64(id))] = since
		}
	}
	return all
})

// Hook is what is known of a hook of LSM.
type Hook struct {
	Disabled  bool   // programs cannot be attached
	Attaches  Period // kernels on which they still can
	Sleepable bool   // programs that may sleep can be attached
	Sleeps    Period // kernels on which they can
	Boolean   bool   // it returns a boolean
	Untrusted bool   // verifiers do not trust the pointers that are its arguments
}

// HookNamed returns what is known of a hook of LSM.
func HookNamed(name string) Hook { return the().hooks[name] }

// Return is what programs of a type of attachment may return on the kernels that have a fact.
type Return struct {
	Fact
	Values
	Only bool // kernels without the fact take every value; else they take 0 and 1
}

// Returns returns what programs of a type of attachment, "BPF_LSM_MAC", may return, if kernels differ in it.
func Returns(attach string) (r Return, differ bool) {
	r, differ = the().returns[strings.TrimPrefix(attach, "BPF_")]
	return r, differ
}

// parseReturn reads "0..3", "only -4095..0".
func parseReturn(text string) (r Return, err error) {
	text, r.Only = strings.CutPrefix(text, "only ")
	if r.Values, err = parseValues(text); err != nil {
		err = fmt.Errorf("want LO..HI or only LO..HI")
	}
	return r, err
}

// Values are values that programs may return.
type Values struct{ Lo, Hi int64 }

// parseValues reads "0..3".
func parseValues(text string) (v Values, err error) {
	if _, err = fmt.Sscanf(text, "%d..%d", &v.Lo, &v.Hi); err != nil {
		err = fmt.Errorf("want LO..HI")
	}
	return v, err
}

// NotSleeping means all programs that may not sleep.
const NotSleeping = "not-sleeping"

// AnyType means programs of all types.
const AnyType = "any"

// KfuncCallers returns since when programs can call a kfunc, by type, where that is not since the kfunc came.
func KfuncCallers(name string) map[string]Period { return the().kfuncs[name] }

// KfuncRefuses reports whether no kernel lets programs with a type of attachment, "BPF_TRACE_ITER", call a kfunc. It is
// open if the loader can choose a type of attachment with which they can.
func KfuncRefuses(name, progType, attach string) (refuses, open bool) {
	only := the().only[name]
	if only == nil || progType == "" ||
		slices.Contains(only, progType) || slices.Contains(only, attached(progType, attach)) {
		return false, false
	}
	ofType := func(name string) bool { return strings.HasPrefix(name, progType+"/") }
	return true, attach == "" && slices.ContainsFunc(only, ofType)
}

// Kfuncs returns the names of the kfuncs that programs of some type can call later than others.
func Kfuncs() (l []string) {
	for name := range the().kfuncs {
		l = append(l, name)
	}
	return l
}

// CallsWithMap returns up to when programs can call a helper with a map of a type, or a pointer with a tag, by type of
// programs.
func CallsWithMap(helper, kind string) map[string]Period { return the().calls[helper+" "+kind] }

// The following functions return the fact of a kind about a subject, [Every] if kernels do not differ.

// Instruction is the fact that verifiers know an instruction.
func Instruction(name string) Fact { return the().named["instruction "+name] }

// Section is the fact that kernels load programs of a section.
func Section(prefix string) Fact { return the().named["section "+prefix] }

// GlobalArgument is the fact that global functions may have arguments with a tag.
func GlobalArgument(tag string) Fact { return the().named["global argument "+tag] }

// TailCalls is the fact that programs with functions may make tail calls on a machine.
func TailCalls(machine string) Fact {
	return the().named["tail calls of programs with functions on "+machine]
}

// KfuncCallsOn is the fact that programs can call kfuncs on a machine.
func KfuncCallsOn(machine string) Fact { return the().named["kfunc calls on "+machine] }

// Arenas is the fact that programs can use maps that are arenas on a machine.
func Arenas(machine string) Fact { return the().named["arenas on "+machine] }

// ProgramTypeBuilt is the fact that a kernel was built with a type of programs.
func ProgramTypeBuilt(progType string) Fact { return the().named["program type "+progType] }

// Trampolines is the fact that programs can be attached to functions on a machine.
func Trampolines(machine string) Fact { return the().named["trampolines on "+machine] }

// StructOps is the fact that struct_ops can be registered on a machine.
func StructOps(machine string) Fact { return the().named["struct_ops on "+machine] }

// ManyArguments is the fact that trampolines of a machine pass on more arguments than fit into registers.
func ManyArguments(machine string) Fact { return the().named["many arguments on "+machine] }

// PrivateStacksOf is the fact that functions of programs can have stacks of their own on another machine than x86_64.
func PrivateStacksOf(machine string) Fact { return the().named["private stacks on "+machine] }

// License is the fact that programs without a license compatible with the GPL can call a helper. An empty type stands
// for all types.
func License(helper, progType string) Fact {
	if progType != "" {
		helper += "/" + progType
	}
	return the().named["license "+strings.TrimPrefix(helper, "bpf_")]
}

// MapFlag is the fact that maps may have a flag.
func MapFlag(flag uint32) Fact { return the().named[fmt.Sprintf("map-flag %#x", flag)] }

// MapType is the fact that a kernel was built with a type of maps.
func MapType(name string) Fact { return the().named["map-type "+name] }

// SleepableMap is the fact that programs which may sleep can use maps of a type.
func SleepableMap(name string) Fact { return the().named["sleepable "+name] }

// MapCall is the fact that a helper takes maps of a type, or pointers with a tag.
func MapCall(helper, kind string) Fact { return the().named["call "+helper+" "+kind] }

// ContextField is the fact that programs may read a field of their context, by its struct and offset.
func ContextField(context string, off int64) Fact {
	return the().named[fmt.Sprintf("context %s+%d", context, off)]
}

// ContextFieldOf is the fact that programs of a type may access a field of their context.
func ContextFieldOf(progType, context string, off int64) Fact {
	return the().named[fmt.Sprintf("context %s/%s+%d", progType, context, off)]
}
