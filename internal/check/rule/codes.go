// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// Code names a kind of finding. A code begins with its family; those of relocations are package relo's, or have no family.
type Code = relo.Code

// The codes of findings. internal/report/codes has a sentence for each.
const (
	// Relocations.
	EbpfGoRefuses  Code = "ebpf-go-refuses"   // Cause
	EbpfGoModuleID Code = "ebpf-go-module-id" // a type ID of a module
	EbpfGoNoMatch  Code = "ebpf-go-no-match"  // ebpf-go takes another type than libbpf
	TypesSupplied  Code = "types-from-loader" // no kernel of the run has the type
	ModuleNeeded   Code = "module-needed"     // Names: the modules; for relocations, kfuncs, ksyms and attach targets

	HelperMissing   Code = "helper-missing"
	HelperForbidden Code = "helper-forbidden" // Name: the type of programs
	HelperSleeps    Code = "helper-sleeps"    // Name: the section
	HelperPoisoned  Code = "helper-poisoned"
	HelperUnset     Code = "helper-setting-missing" // Name: the setting
	HelperSetting   Code = "helper-setting-unknown" // Name: the setting
	HelperLicense   Code = "helper-license"         // Name: the license
	HelperMap       Code = "helper-map"             // Name: the type of the map; Since

	KfuncMissing   Code = "kfunc-missing"
	KfuncNoBTF     Code = "kfunc-btf-missing"
	KfuncModule    Code = "kfunc-module-btf" // Names: the module, "" for any
	KfuncPrototype Code = "kfunc-prototype"  // Name: the kernel's type
	KfuncUntagged  Code = "kfunc-not-one"
	KfuncForbidden Code = "kfunc-forbidden" // Name: the type of programs
	KfuncSleeps    Code = "kfunc-sleeps"    // Name: the section
	KfuncLicense   Code = "kfunc-license"   // Name: the license

	FeatureMissing Code = "feature-missing" // Since

	InsnUnsupported Code = "instruction-unsupported" // Since

	KsymMissing     Code = "ksym-missing"
	KsymType        Code = "ksym-type" // Name: the kernel's type
	KsymUnlisted    Code = "ksym-unlisted"
	KsymUnset       Code = "ksym-setting-missing" // Name: the setting
	KsymUndeclared  Code = "ksym-undeclared"
	KsymVariant     Code = "ksym-variant" // Name: the compiler's variant
	KsymLeftOut     Code = "ksym-left-out"
	KsymNoSymbol    Code = "ksym-no-symbol"
	KsymMaybeModule Code = "ksym-maybe-module"
	KsymModule      Code = "ksym-module-btf" // Names: the module, "" for any

	KconfigUnknown  Code = "kconfig-unknown"
	KconfigUnset    Code = "kconfig-unset"
	KconfigType     Code = "kconfig-type"         // Name: the value
	KconfigEbpfGo   Code = "kconfig-ebpf-go-type" // Size: the size that ebpf-go wants, 0 for any
	KconfigNoLookup Code = "kconfig-ebpf-go-lookup"

	MapTypeMissing   Code = "map-type-missing"         // Name: the map
	MapTypeUnset     Code = "map-type-setting-missing" // Name: the map
	StructOpsMissing Code = "struct-ops-missing"
	StructOpsModule  Code = "struct-ops-module-btf" // Names: the module, "" for any
	StructOpsMember  Code = "struct-ops-member"

	MapFlagUnknown Code = "map-def-flag-unknown" // Count: the flag
	MapKeySize     Code = "map-def-key-size"     // Size; or Max
	MapValueSize   Code = "map-def-value-size"   // Size
	MapInner       Code = "map-def-inner"
	MapInnerName   Code = "map-def-inner-name" // Name: the name
	MapInnerLock   Code = "map-def-inner-lock"
	MapSection     Code = "map-def-section"
	MapPinning     Code = "map-def-pinning"      // Count: the value, 0 for an inner map
	MapSizes       Code = "map-def-sizes"        // Size: bytes of the values
	MapNoSizes     Code = "map-def-no-sizes"     // a perf event array, which needs sizes of 4
	MapRingSize    Code = "map-def-ringbuf-size" // Size; Max: bytes of a page if these decide
	MapNoEntries   Code = "map-def-no-entries"

	ObjectUnread   Code = "object-unread"
	ObjectWeakMap  Code = "object-weak-map"       // Name
	ObjectTypedVar Code = "object-typed-variable" // Name
	ObjectWeakVar  Code = "object-weak-variable"  // Name
	ObjectStatic   Code = "object-static-function"
	ObjectTooLarge Code = "object-too-large"
	ObjectArena    Code = "object-arena-data"  // Name: the section
	ObjectAya      Code = "object-aya-section" // Name
	ObjectAyaExt   Code = "object-aya-extern"  // Name: the section
	ObjectAyaMaps  Code = "object-aya-maps"    // Name: the section

	ProgTypeMissing   Code = "prog-type-missing"
	ProgTypeLicense   Code = "prog-type-license" // Name: the license
	AttachTypeMissing Code = "attach-type-missing"
	LinkTypeMissing   Code = "link-type-missing"
	LinkTypeTCX       Code = "link-type-tcx"

	AttachTargetMissing          Code = "attach-target-missing"
	AttachTargetKprobes          Code = "attach-target-kprobes"
	AttachTargetUnlisted         Code = "attach-target-unlisted"
	AttachTargetPattern          Code = "attach-target-pattern"         // no function of the BTF matches
	AttachTargetNoMatch          Code = "attach-target-pattern-missing" // no function of the kernel matches
	AttachTargetEach             Code = "attach-target-pattern-each"    // each function that matches has to take the program
	AttachTargetMaybeMatch       Code = "attach-target-pattern-module"
	AttachTargetModule           Code = "attach-target-module-btf" // Names: the module, "" for any
	AttachTargetAya              Code = "attach-target-aya-module" // Names: the module
	AttachTargetTwice            Code = "attach-target-ambiguous"  // Count
	AttachTargetEbpfGo           Code = "attach-target-ebpf-go"
	AttachTargetSame             Code = "attach-target-same-name" // Count
	AttachTargetVariant          Code = "attach-target-variant"   // Name: the compiler's variant
	AttachTargetLeftOut          Code = "attach-target-left-out"
	AttachTargetNoSymbol         Code = "attach-target-no-symbol"
	AttachTargetMaybeModule      Code = "attach-target-maybe-module"
	AttachTargetPatterns         Code = "attach-target-patterns" // Max
	AttachTargetLoader           Code = "attach-target-from-loader"
	AttachTargetNowhere          Code = "attach-target-nowhere" // no kernel of the run has it
	AttachTargetReplaced         Code = "attach-target-replaced"
	AttachTargetNoFunctions      Code = "attach-target-functions"
	AttachTargetTracepoints      Code = "attach-target-tracepoints"
	AttachTargetTracepoint       Code = "attach-target-tracepoint"
	AttachTargetTrampoline       Code = "attach-target-trampoline" // Name: the machine; Since
	AttachTargetRegisters        Code = "attach-target-registers"  // Count, Max, Name: the machine; Since
	AttachTargetStruct           Code = "attach-target-struct"     // Count: the argument's number; Since
	AttachTargetPrototype        Code = "attach-target-prototype"  // Name: the prototype
	AttachTargetSleeps           Code = "attach-target-sleeps"
	AttachTargetSleepsTracepoint Code = "attach-target-sleeps-tracepoint"
	AttachTargetSleepsUnset      Code = "attach-target-sleeps-setting" // Name: the setting
	AttachTargetHook             Code = "attach-target-hook-disabled"
	AttachTargetHookSleeps       Code = "attach-target-hook-sleeps" // Since, Until
	AttachTargetSyscall          Code = "attach-target-syscall"     // Name: the machine
	AttachTargetSyscallBTF       Code = "attach-target-syscall-unlisted"
	AttachTargetDenied           Code = "attach-target-denied"
	AttachTargetNoReturn         Code = "attach-target-noreturn"
	AttachTargetNoTrace          Code = "attach-target-notrace"
	AttachTargetBlacklist        Code = "attach-target-blacklisted"
	AttachTargetTracer           Code = "attach-target-tracer"  // Name: the setting
	AttachTargetLSMOff           Code = "attach-target-lsm-off" // Name: the modules of LSM that the kernel starts
	AttachTargetWritable         Code = "attach-target-writable"
	AttachTargetInjection        Code = "attach-target-error-injection"

	ContextNoArgument    Code = "context-no-argument"   // Name: the function; Count
	ContextArgument      Code = "context-argument-type" // Name: the type; Since
	ContextNumber        Code = "context-number"
	ContextNull          Code = "context-null"
	ContextError         Code = "context-error"
	ContextUntrusted     Code = "context-untrusted"     // Name: the member
	ContextLicense       Code = "context-license"       // Name: the license
	ContextTagged        Code = "context-tagged"        // Name: the memory
	ContextBeyond        Code = "context-beyond-struct" // Offset; Name: the type
	ContextRegisters     Code = "context-registers"     // Since
	ContextUprobe        Code = "context-registers-uprobe"
	ContextMoved         Code = "context-moved" // Since
	ContextWrite         Code = "context-write"
	ContextOutside       Code = "context-outside"         // Offset; Count to Max
	ContextPart          Code = "context-part"            // Offset, Size; Name: the struct
	ContextPartOfPointer Code = "context-part-of-pointer" // Size
	ContextSpilled       Code = "context-spilled"
	ContextRecord        Code = "context-beyond-record"    // Offset, Size
	ContextArguments     Code = "context-beyond-arguments" // Offset, Size
	ContextForbidden     Code = "context-forbidden"        // Offset; Name: the type of programs; Since

	MemoryStack Code = "memory-stack" // Count, Size, Max; Since

	ReturnRange Code = "return-range" // Name: the section; Offset, Max: the least and the greatest value

	ChangedArgument Code = "changed-argument"       // Name, Other, Where
	ChangedField    Code = "changed-field"          // Name, Other, Where, Offset; Max: the offset of Other
	ChangedSyscall  Code = "changed-syscall-record" // Name, Other, Offset; Max: the offset of Other
	ChangedBitfield Code = "changed-bitfield"       // Offset, Size: the bytes that the program reads

	AnalysisNoHelpers   Code = "analysis-helpers"
	AnalysisSection     Code = "analysis-section"
	AnalysisRelocations Code = "analysis-relocations" // Max
	AnalysisFindings    Code = "analysis-findings"    // Max
	AnalysisMachine     Code = "analysis-machine"     // Name: the object's machines
	AnalysisByteOrder   Code = "analysis-byte-order"
	AnalysisWhen        Code = "analysis-when"
	AnalysisUnloaded    Code = "analysis-not-loaded"

	UnjudgedBounds Code = "unjudged-bounds" // Count: the accesses
	UnjudgedWork   Code = "unjudged-work"   // Count: the functions with loops; Size: the instructions

	SectionUnknown       Code = "section-ebpf-go" // Name: the section that ebpf-go takes it for
	SectionNewer         Code = "section-libbpf"
	RunningKernelBTF     Code = "running-kernel-btf"
	RunningKernelNone    Code = "running-kernel-no-btf" // Name: the setting, name in BTF or option that decides
	RunningKernelUnknown Code = "running-kernel-unknown"
	RunningKernelSymbol  Code = "running-kernel-symbol"
	RunningKernelTypeID  Code = "running-kernel-type-id"
)

// Family is a group of codes, which begin with its name; those of relocations have no such beginning.
type Family string

// The families of codes.
const (
	FamilyCORE      Family = "core"
	FamilyModule    Family = "module"
	FamilyHelper    Family = "helper"
	FamilyKfunc     Family = "kfunc"
	FamilyInsn      Family = "instruction"
	FamilyFeature   Family = "feature"
	FamilyKsym      Family = "ksym"
	FamilyKconfig   Family = "kconfig"
	FamilyMapType   Family = "map-type"
	FamilyMapDef    Family = "map-def"
	FamilyStructOps Family = "struct-ops"
	FamilyObject    Family = "object"
	FamilyProg      Family = "prog-type"
	FamilyAttach    Family = "attach-type"
	FamilyLink      Family = "link-type"
	FamilyTarget    Family = "attach-target"
	FamilyContext   Family = "context"
	FamilyMemory    Family = "memory"
	FamilyReturn    Family = "return"
	FamilyChanged   Family = "changed"
	FamilyAnalysis  Family = "analysis"
	FamilyUnjudged  Family = "unjudged"
	FamilyRunning   Family = "running-kernel"
)

var families = []Family{
	FamilyModule, FamilyHelper, FamilyKfunc, FamilyInsn, FamilyFeature, FamilyKsym, FamilyKconfig, FamilyMapType,
	FamilyMapDef, FamilyStructOps, FamilyObject, FamilyProg, FamilyAttach, FamilyLink, FamilyTarget, FamilyContext,
	FamilyMemory, FamilyReturn, FamilyChanged, FamilyAnalysis, FamilyUnjudged, FamilyRunning,
}

// Families returns all families.
func Families() []Family { return append(slices.Clone(families), FamilyCORE) }

// FamilyOf returns the family of a code.
func FamilyOf(c Code) Family {
	for _, f := range families {
		if rest, ok := strings.CutPrefix(string(c), string(f)); ok && strings.HasPrefix(rest, "-") {
			return f
		}
	}
	return FamilyCORE
}
