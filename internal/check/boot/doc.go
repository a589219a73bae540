// SPDX-License-Identifier: Apache-2.0

// Package boot boots kernels under qemu and has them load BPF objects, to hold what package check predicts against what
// a kernel does.
//
// Nothing of a distribution is needed: the guest's only program is btfgen itself, which the kernel starts as its first
// process. The host ([Boot]) puts it into an initial RAM file system together with a [Job], and the guest ([Guest]) tells on the serial
// line what comes of it, a line of JSON for each [Event], between the kernel's messages:
//
//	[    1.91] Run /init as init process
//	@btfgen {"kind":"hello","name":"6.12.107+deb13-cloud-amd64"}
//	@btfgen {"kind":"program","name":"on_exec","attach":"attached"}
//	@btfgen {"kind":"program","name":"on_open","errno":22,"error":"program on_open: …","log":"…"}
//	@btfgen {"kind":"end"}
//
// The host believes none of it: lines, their number and the time are bounded, and what is no event is a message of the
// kernel's.
//
// The guest loads with cilium/ebpf. It takes apart what loaders do differently: libbpf makes all maps of an object
// and looks up all its strong externs before it loads any program, cilium/ebpf can load a program with what that one needs;
// some CO-RE relocations they decide differently, and some externs cilium/ebpf does not read. So the maps are made once by themselves, and each
// program is loaded with its own, once as cilium/ebpf does it, and once with externs resolved as libbpf does and relocated by package
// engine, which decides as libbpf does.
package boot

import (
	"encoding/json"
	"fmt"
)

// Word is the only argument of the guest's first process.
const Word = "__guest"

// Job is what a guest does. Files are numbered in the initial RAM file system's directories.
type Job struct {
	Objects int               `json:"objects"` // to load
	Modules int               `json:"modules"` // to load before, in order
	Types   int               `json:"types"`   // files of BTF that loaders add to the kernel's
	Targets map[string]string `json:"targets,omitempty"`

	// Command is run in place of loading, in a directory with the files that it needs. Its first word names one of them. Env is what
	// it has in its environment besides PATH and the like.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
}

// Event is something that a guest tells.
type Event struct {
	Kind   string `json:"kind"`             // one of those below
	Object int    `json:"object,omitempty"` // index of the object that it is about
	Name   string `json:"name,omitempty"`   // of what it is about

	// Error is empty where a kernel took what it was given; Log is the end of the verifier's, Errno 0 where it was not the
	// kernel that refused.
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`
	Log   string `json:"log,omitempty"`

	// Of a program: Attach is "attached", or why it was not; empty if that was not tried. Alone is "loads", or why cilium/ebpf does not
	// load it by itself; of an object, why it does not read it, and then its programs have none. Extern says that it lacks a strong extern, without which libbpf loads nothing of the object.
	Attach string `json:"attach,omitempty"`
	Alone  string `json:"alone,omitempty"`
	Extern bool   `json:"extern,omitempty"`

	// Output is a part of what the command prints, Status what it ends with.
	Output string `json:"output,omitempty"`
	Status int    `json:"status,omitempty"`
}

// Kinds of events.
const (
	Hello   = "hello"   // the first one; Name is the kernel's release
	Module  = "module"  // a module was loaded, or not
	Object  = "object"  // the maps of an object were made, or not
	Program = "program" // a program was loaded, or not
	Output  = "output"  // the command has printed something
	Exit    = "exit"    // the command has ended
	End     = "end"     // the last one
)

// Attached is Event.Attach of a program that was attached.
const Attached = "attached"

// mark is what lines of events begin with.
const mark = "@btfgen "

// parse reads a line of the console, without its end. It reports false for what is no event.
func parse(line []byte) (e Event, ok bool) {
	if len(line) < len(mark) || string(line[:len(mark)]) != mark {
		return e, false
	}
	return e, json.Unmarshal(line[len(mark):], &e) == nil
}

// format is the inverse of parse.
func (e *Event) format() string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("an event that JSON does not take: %v", err)) // which it is not made of
	}
	return mark + string(b)
}
