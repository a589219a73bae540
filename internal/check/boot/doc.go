// SPDX-License-Identifier: Apache-2.0

// Package boot boots kernels under qemu and loads BPF objects there, to compare what package check predicts with what a
// kernel does.
//
// It needs no files of a distribution: btfgen itself is the guest's only program, which the kernel starts as process 1.
// The host ([Boot]) packs it into an initial RAM file system with a [Job]. The guest ([Guest]) reports on the serial
// line, one [Event] per line as JSON, between the kernel's messages:
//
//	[    1.91] Run /init as init process
//	@btfgen {"kind":"hello","name":"6.12.107+deb13-cloud-amd64"}
//	@btfgen {"kind":"program","name":"on_exec","attach":"attached"}
//	@btfgen {"kind":"program","name":"on_open","errno":22,"error":"program on_open: …","log":"…"}
//	@btfgen {"kind":"end"}
//
// The host does not trust the guest: it bounds the lines, their number and the time, and takes any other line for a
// message of the kernel.
//
// The guest loads with cilium/ebpf and separates what differs between loaders. libbpf creates all maps of an object and
// resolves all its strong externs before it loads a program; cilium/ebpf can load one program with what it needs. They
// decide some CO-RE relocations differently, and cilium/ebpf does not read some externs. So the guest creates the maps
// alone and loads each program twice: as cilium/ebpf does, and with externs and relocations resolved as libbpf does.
//
// A kernel without BTF gets its types from a file. With an archive, the guest loads each program again with the types that the archive
// has for the kernel, and compares the instructions in the kernel.
//
// A [Trial] compares the results with the predictions, and a [Table] counts them.
package boot

import "encoding/json"

// Word is the only argument of the guest's first process.
const Word = "__guest"

// Job is what a guest does. Files are numbered in directories of the initial RAM file system.
type Job struct {
	Objects int               `json:"objects"`           // number of objects to load
	Modules int               `json:"modules"`           // number of modules to load first, in order
	Types   int               `json:"types"`             // number of files of BTF that loaders add to the kernel's
	BTF     bool              `json:"btf,omitempty"`     // the kernel has no BTF, and a file has its types
	Archive bool              `json:"archive,omitempty"` // a file has the archive's types for the kernel: load with these, too
	Targets map[string]string `json:"targets,omitempty"`

	// Skip has programs not to load, by object. An object without other programs is not read.
	Skip map[int][]string `json:"skip,omitempty"`

	// Command is run instead of loading, in a directory with its files. Its first word names one of them. Env is added to
	// its environment.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
}

// Event is one report of a guest.
type Event struct {
	Kind   string `json:"kind"`
	Object int    `json:"object,omitempty"` // index of the object or module
	Name   string `json:"name,omitempty"`

	// Error is empty on success. Log is the end of the verifier's log. Errno is 0 if the error is not the kernel's.
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`
	Log   string `json:"log,omitempty"`

	// Attach is [Attached], why a program was not attached, or "" if that was not tried.
	Attach string `json:"attach,omitempty"`
	// Alone is "loads" if cilium/ebpf loads the program by itself, else why not. For an object it is why cilium/ebpf does
	// not read it; its programs have none then.
	Alone string `json:"alone,omitempty"`
	// Archive is [Same] if the program loads alike with the archive's types, else the difference; "" without an archive.
	Archive string `json:"archive,omitempty"`
	// Extern reports that the program lacks a strong extern, so libbpf loads nothing of the object.
	Extern bool `json:"extern,omitempty"`

	Output string `json:"output,omitempty"` // part of what the command prints
	Status int    `json:"status,omitempty"` // exit status of the command
}

// Kinds of events.
const (
	Hello   = "hello"   // the first event; Name is the kernel's release
	Module  = "module"  // a module was loaded, or not
	Object  = "object"  // the maps of an object were created, or not
	Program = "program" // a program was loaded, or not
	Output  = "output"  // the command printed something
	Exit    = "exit"    // the command ended
	End     = "end"     // the last event
)

// Attached is Event.Attach of a program that was attached.
const Attached = "attached"

// Same is Event.Archive of a program that is the same with the archive's types.
const Same = "same"

// mark begins the line of an event.
const mark = "@btfgen "

// parse reads a line of the console, without its end. It reports false if the line is not an event.
func parse(line []byte) (e Event, ok bool) {
	if len(line) < len(mark) || string(line[:len(mark)]) != mark {
		return e, false
	}
	return e, json.Unmarshal(line[len(mark):], &e) == nil
}

// format is the inverse of parse.
func (e *Event) format() string {
	b, _ := json.Marshal(e)
	return mark + string(b)
}
