// SPDX-License-Identifier: Apache-2.0

package relolog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/pkg/relo"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// testFile returns the content of a file of test data, decompressed if it is
// compressed.
func testFile(path string) []byte {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", filepath.FromSlash(path)))
	if err != nil {
		log.Fatal(err)
	}
	if filepath.Ext(path) != ".zst" {
		return data
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer dec.Close()
	if data, err = dec.DecodeAll(data, nil); err != nil {
		log.Fatal(err)
	}
	return data
}

// The log of an object against a kernel, one entry for each relocation.
func Example() {
	object, err := relolog.ParseObject("execsnoop.bpf.o", testFile("bpf/execsnoop.bpfel.o"))
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := relolog.NewTarget(context.Background(), "6.1.0-47-amd64", testFile("vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst"))
	if err != nil {
		log.Fatal(err)
	}
	l, err := relolog.Run(context.Background(), object, kernel)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range l.Entries[:4] {
		fmt.Printf("%s #%d: %s %s.%s: %d → %d, %s\n", e.Program, e.Index, e.Kind, e.Local.Type, e.Local.Path, e.Old, *e.New, e.Result)
	}
	// Output:
	// handle_exec #0: byte_off struct trace_event_raw_sched_process_exec.pid: 12 → 12, resolved
	// handle_exec #1: byte_off struct task_struct.real_parent: 32 → 2432, resolved
	// handle_exec #2: byte_off struct task_struct.tgid: 28 → 2420, resolved
	// handle_exec #3: byte_off struct task_struct.cred: 56 → 2960, resolved
}

// On which kernels an object would be loaded with poisoned instructions.
func ExampleRun() {
	object, err := relolog.ParseObject("biolat.bpf.o", testFile("bpf/biolat.bpfel.o"))
	if err != nil {
		log.Fatal(err)
	}
	for _, path := range []string{
		"vmlinux/debian/11/x86_64/5.10.0-30-amd64.btf.zst",
		"vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst",
	} {
		kernel, err := relolog.NewTarget(context.Background(), filepath.Base(path), testFile(path))
		if err != nil {
			log.Fatal(err)
		}
		l, err := relolog.Run(context.Background(), object, kernel)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range l.Entries {
			if e.Result == relo.Poisoned {
				fmt.Printf("%s: %s.%s: %s\n", l.Kernel, e.Local.Type, e.Local.Path, e.Reason)
			}
		}
	}
	// Output:
	// 5.10.0-30-amd64.btf.zst: struct request_queue.disk: field-missing
	// 6.1.0-47-amd64.btf.zst: struct request___rq_disk.rq_disk: field-missing
}

// The candidates of one relocation in their JSON form, which is also that of
// "btfgen relolog --json".
func ExampleEntry() {
	object, err := relolog.ParseObject("kinds.bpf.o", testFile("bpf/kinds.bpfel.o"))
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := relolog.NewTarget(context.Background(), "debian/12/x86_64/6.1.0-47-amd64", testFile("vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst"))
	if err != nil {
		log.Fatal(err)
	}
	l, err := relolog.Run(context.Background(), object, kernel)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range l.Entries {
		if e.Program != "no_match" {
			continue
		}
		line, err := json.MarshalIndent(e.Candidates, "", "  ")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Result, string(line))
	}
	// Output:
	// absent [
	//   {
	//     "type_id": 1008,
	//     "type": "struct path",
	//     "module": "",
	//     "spec": "",
	//     "path": "",
	//     "match": false,
	//     "reason": {
	//       "code": "candidate-type-name",
	//       "local": "struct dentry",
	//       "target": "struct vfsmount"
	//     }
	//   }
	// ]
}
