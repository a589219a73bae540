// SPDX-License-Identifier: Apache-2.0

// Package limits has the limits on outside data: bytes, counts and steps. Everything that reads objects, kernels, archives, manifests or
// configuration uses them. Exceeding a limit is an error for that input; it never ends the program.
//
// Each comment says what is limited and, after the semicolon, the largest real value known. For objects and the engine these come
// from 88 objects of Debian, the tests' own, and one as large as the largest tracers', on 38 kernels of eleven releases. A test
// generates the lists of docs/limits.md from the comments, without those of work; values that begin with "bytes" have binary units there.
package limits

// Kernels: a part that exceeds a limit is skipped.
const (
	PartSize       = 256 << 20 // bytes of a BTF, ELF file or image, unpacked; 70 MB (stripped vmlinux)
	UnpackedRatio  = 100       // unpacked bytes per byte on disk, also of a chunk of a .btfc; 11 (CentOS 8)
	UnpackedSmall  = 32 << 20  // bytes of a small file, unpacked, and of all chunks of a .btfc that have a larger ratio; 2 MB
	UnpackedInAll  = 512 << 20 // bytes in memory at once, with ancestors and caches, more wait until others are done; 110 MB of a worker
	Nesting        = 10        // nested containers and compressions; 7
	ELFSections    = 1 << 16   // sections of a kernel or module; 93
	DistilledBase  = 16 << 20  // bytes of a module's .BTF.base; 1 kB
	DistilledNames = 256       // types of a .BTF.base with the same name; 1
	KconfigBytes   = 4 << 20   // bytes of a kernel's configuration; 120 kB
	SymbolBytes    = 32 << 20  // bytes of a kernel's symbols; 9 MB
	ExtraLine      = 64 << 10  // bytes of a line of either; 300
	Dictionary     = 128 << 20 // bytes of a decoder's dictionary; 128 MiB (zstd --ultra -22)
	VmlinuxSize    = 4 << 30   // bytes of a vmlinux read by pahole; 631 MB
	SpilledModules = 16 << 30  // bytes of a kernel's modules with DWARF; 5 GB
	XZMemory       = 64 << 20  // bytes for the xz program, in addition to the dictionary
	Paholes        = 8         // concurrent paholes
	PaholeMemory   = 8 << 30   // bytes that pahole may map; 0.8 GB
	PaholeSeconds  = 3600      // seconds for pahole; 40
)

// Work of reading kernels: what waits, is searched or is allocated; a part that exceeds a limit is skipped.
const (
	Modules      = 20_000  // modules waiting for their kernel; 6,000
	Links        = 1 << 18 // links that are other names of files; 500
	Extras       = 4       // configurations and symbols waiting for their kernels; 4
	Errors       = 100     // errors reported per file
	SelectedKeys = 1 << 16 // kernels remembered for messages about selectors; 5,000
	ImageTries   = 64      // places of an image searched for compressed data, and as many for LZMA
	Believed     = 8 << 20 // bytes allocated because of a header
)

// Corpora in one file: a kernel that exceeds a limit is skipped; the index is for the whole file.
const (
	CorpusIndex    = 64 << 20  // bytes of the unpacked index; 7 kB for 36 kernels
	CorpusKernels  = 1 << 18   // kernels
	CorpusPackages = 1 << 20   // packages that kernels come from
	CorpusDepth    = 128       // ancestors of a kernel; 50
	CorpusChain    = 512 << 20 // bytes of a kernel's ancestors in memory; 40 MB (CentOS 8)
	CorpusState    = 16        // times its unpacked bytes that a chunk takes in memory; 4 (CentOS 8)
	CorpusSmall    = 512 << 10 // bytes that a chunk takes in addition; 8 kB
)

// Work of matching, minimizing and proving: types, names and comparisons for one kernel, which is skipped.
const (
	Modifiers   = 32      // modifiers and typedefs in a row, as in libbpf; 4
	NameBytes   = 4 << 10 // bytes of a name in BTF, longer ones match nothing; 74 (Linux allows 512)
	Candidates  = 1 << 14 // types with one essential name; 476 (CentOS 8)
	Outcomes    = 1 << 21 // questions times candidates; 104,362
	Comparisons = 1 << 27 // members, parameters and types compared; 7.6 million
	MatchSteps  = 1 << 20 // members, parameters and types compared for one match; 553
	Pairs       = 1 << 16 // pairs of types in a match of cilium/ebpf; 24
	Decisions   = 1 << 27 // records times candidates; 9.4 million
	TypesInRow  = 1 << 8  // types in a row without a struct, for cilium/ebpf; 13

	// cilium/ebpf recurses with 2.4 kB of stack per type, and Go limits a stack to 512 MiB; 32-bit machines have half of both.
	TypePath = 100_000 << (^uint(0) >> 63) // types on the longest path, for cilium/ebpf; 166,747 (CentOS 8), else 5,480

	SignatureBytes = 16 << 20 // bytes of signatures of an object's types; 23.5 kB
	Types          = 1 << 18  // types of minimized BTF before merging; 19,289
	Members        = 1 << 20  // members and enumerators of these; 32,433
	OutputNames    = 32 << 20 // bytes of their names; 297 kB
	Marks          = 1 << 25  // steps of marking; 638,845
	KeptDepth      = 1 << 9   // nested types of --keep; 30
)

// Objects: one that exceeds a limit is refused.
const (
	FileBytes    = 1 << 30  // bytes of a file searched for objects; 494 kB
	ObjectFiles  = 1 << 16  // files searched for objects; 1,200 (kernel's own tests)
	InitDepth    = 5        // nested folders that init searches for objects, deeper ones are skipped; 3
	SourceBytes  = 64 << 20 // bytes of a source or build file that init reads; 2.4 MB
	Sections     = 1 << 13  // sections; 508
	Symbols      = 1 << 18  // symbols; 552
	Functions    = 1 << 16  // functions; 550
	Programs     = 1 << 13  // programs; 250
	Instructions = 1 << 20  // slots of code; 172,328
	Relocations  = 1 << 20  // ELF relocations; 750
	SectionBytes = 64 << 20 // bytes of a section; 907 kB
)

// Work of reading objects: names, members, functions and steps; an object beyond is refused.
const (
	SectionNames  = 64 << 20 // bytes of names of sections, also of a kernel; 8 kB
	ObjectNames   = 32 << 20 // bytes of names of symbols, variables, functions, lines; 1.4 MB
	Externals     = 256      // kfuncs, variables and type IDs reported by generate; 6
	PathBytes     = 4 << 10  // bytes of a source path, longer ones are not reported; 68
	Inflated      = 64 << 20 // bytes of sections that are not in the file; 0
	LoaderTypes   = 1 << 17  // types read with cilium/ebpf, more are unknown; 5,000
	MemberNesting = 4        // nested anonymous structs when recognizing machines and options; 2
	MemberLooks   = 100_000  // members looked at for that; 272
	AccessSteps   = 1 << 24  // instructions searched for reads of contexts; 11,033
	Called        = 1 << 20  // functions of each program, summed; 1,450
	CalledInsns   = 1 << 26  // slots of these; 450,842
	CalledRecords = 1 << 22  // relocation records of these; 92,270
	ParseSteps    = 1 << 26  // other steps of reading; 34,752
)

// Work of checking one object on one kernel: instructions and states; the verdict beyond is unknown.
const (
	ExploreSteps   = 1_000_000 // instructions executed per program; 250,000
	ConstantStates = 4         // states kept where paths meet with other constants, beyond these are dropped; 4
	States         = 8         // states kept where paths meet, others are merged; 8
	PreciseStates  = 64        // states kept in a second exploration and where a function returns; 64
	StateBytes     = 32 << 20  // bytes of states; 1.2 MB
	ExploreWork    = 1 << 26   // instructions and values compared per program, 5 ns each; 175,435
	ObjectWork     = 1 << 27   // instructions and values compared per object; 352,594
	Findings       = 1 << 17   // findings on code; 10,660
	Patterns       = 1 << 8    // patterns of attached functions, more are unknown; 0
	PatternBytes   = 512       // bytes of a pattern, longer ones are unknown; 0 (Linux allows 511 in a name)
	PatternSteps   = 1 << 26   // bytes of functions compared with patterns, on a kernel; 0
	ExternSteps    = 1 << 12   // types compared per extern, beyond they differ; 5
)

// Booted kernels (check --boot): a kernel that exceeds a limit is not booted; output beyond it is cut.
const (
	BootConfig      = 4 << 20   // bytes of a configuration or of modinfo; 290 kB
	BootModules     = 64        // modules loaded; 8
	BootModuleBytes = 64 << 20  // bytes of one; 12 MB (amdgpu)
	GuestMemory     = 1024      // MiB of the machine; 400
	GuestBoots      = 8         // boots of a kernel, each without the program that stopped the one before; 1
	GuestFile       = 256 << 20 // bytes of a program or file for the machine; 40 MB (btfgen)
	GuestLine       = 64 << 10  // bytes of a line of output; 8 kB
	GuestBytes      = 64 << 20  // bytes of output; 1 MB
	GuestLog        = 4 << 10   // bytes of a verifier log, from its end
	GuestOutput     = 1 << 20   // bytes of output of --command; 16 kB
	GuestConsole    = 8 << 10   // bytes of kernel messages, from their end
)

// Fetched kernels (corpus fetch): a catalogue or series that exceeds a limit is not read.
const (
	CatalogueBytes = 1 << 20  // bytes of a catalogue; 17 kB
	ProgramOutput  = 64 << 20 // bytes that apt or dnf prints; 3 MB (Ubuntu)
	ProgramWord    = 4 << 10  // bytes of a name for a program; 60
)

// Artifacts in registries (corpus push and pull): the command fails.
const (
	ArtifactManifest = 4 << 20  // bytes of a manifest; 4 kB for 5 series
	ArtifactLayers   = 1 << 12  // layers; 5
	ArtifactLayer    = 8 << 30  // bytes of a layer; 17 MB for 16 kernels
	RegistrySeconds  = 60       // seconds until a registry answers, or for the next part of a layer; 1
	RegistryBytes    = 64 << 10 // bytes of a layer in such a part; 17 MB
	RegistryRequest  = 120      // seconds for a manifest, with the tokens that it needs; 1
	RegistryTries    = 5        // downloads of a layer, if the last one brought such a part, or broke after at least a byte; 1
)

// Files of earlier runs: the command fails.
const (
	ConfigBytes    = 256 << 10 // bytes of btfgen.yaml; 2 kB
	ManifestBytes  = 64 << 20  // bytes of a manifest; 99 kB for 33 kernels
	ReportBytes    = 128 << 20 // bytes of a report; 743 kB for 33 kernels
	EarlierObjects = 1 << 17   // JSON objects in a manifest or report; 13,000
	BundleBytes    = 256 << 20 // bytes of the BTFs of a directory or tar; 419 kB for 33 kernels
)
