// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command go-tracer is a small but complete tracer. It prints every program that is
// executed. It also runs on kernels without BTF, because it embeds their minimized
// BTF.
//
// README.md has the command that made tracer.btfa.
package main

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/archive/btfspec"
)

//go:embed bpf/exec.bpf.o
var object []byte

//go:embed tracer.btfa
var embedded []byte

// event is struct event of bpf/exec.bpf.c.
type event struct {
	PID, PPID uint32
	Comm      [16]byte
}

func main() {
	opts := archive.FindOptions{Object: object} // fails if the archive was made for another one
	flag.StringVar(&opts.File, "btf", "", "read the kernel's types from `FILE`")
	flag.StringVar(&opts.Host.Root, "root", "", "`DIR` is the host's root directory, for containers")
	flag.StringVar(&opts.Host.OSRelease, "os-release", "", "`FILE` is the host's os-release")
	flag.BoolVar(&opts.IgnoreKernel, "ignore-kernel-btf", false, "behave as on a kernel without BTF")
	count := flag.Int("count", 0, "stop after `N` events")
	flag.Parse()
	if err := run(opts, *count); err != nil {
		fmt.Fprintln(os.Stderr, "go-tracer:", err)
		os.Exit(1)
	}
}

func run(opts archive.FindOptions, count int) (err error) {
	if opts.Archive, err = archive.Open(embedded); err != nil {
		return err
	}
	types, err := archive.Find(opts)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "types from: %s %s%s\n", types.Source, types.Path, from(types))

	// Kernels before 5.11 count maps as locked memory, which has a low limit.
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	kernelTypes, err := btfspec.Load(types)
	if err != nil {
		return err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return err
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{KernelTypes: kernelTypes},
	})
	if err != nil {
		return err
	}
	defer coll.Close()
	tp, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_exec", Program: coll.Programs["handle_exec"]})
	if err != nil {
		return err
	}
	defer tp.Close()
	return follow(coll.Maps["events"], count)
}

func from(t *archive.Types) string {
	if t.Source != archive.FromArchive {
		return ""
	}
	return fmt.Sprintf("%s (%s: %s)", t.Match.Key, t.Match.Rule, t.Match.Reason)
}

// follow prints count events, or all until an interrupt if count is 0.
func follow(events *ebpf.Map, count int) error {
	r, err := ringbuf.NewReader(events)
	if err != nil {
		return err
	}
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	go func() {
		<-interrupt
		r.Close()
	}()
	fmt.Fprintln(os.Stderr, "ready")
	for n := 0; count == 0 || n < count; n++ {
		rec, err := r.Read()
		if errors.Is(err, ringbuf.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		var e event
		if err := binary.Read(bytes.NewReader(rec.RawSample), binary.NativeEndian, &e); err != nil {
			return err
		}
		comm, _, _ := bytes.Cut(e.Comm[:], []byte{0})
		fmt.Printf("%d %d %s\n", e.PID, e.PPID, comm)
	}
	return r.Close()
}
