// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relo"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Minimize the BTF of a kernel for one object, and list the relocations that the
// kernel does not resolve.
func Example() {
	ctx := context.Background()
	data, err := os.ReadFile("../../testdata/bpf/biolat.bpfel.o")
	if err != nil {
		log.Fatal(err)
	}
	object, err := relolog.ParseObject("biolat.bpf.o", data)
	if err != nil {
		log.Fatal(err)
	}
	compressed, err := os.ReadFile("../../testdata/vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	if err != nil {
		log.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer dec.Close()
	vmlinux, err := dec.DecodeAll(compressed, nil)
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := relolog.NewTarget(ctx, "6.1.0-47-amd64", vmlinux)
	if err != nil {
		log.Fatal(err)
	}
	keep, err := minimize.ParseKeep("enum:pid_type", "enum:no_such_enum")
	if err != nil {
		log.Fatal(err)
	}
	res, err := minimize.New([]*relolog.Object{object}, minimize.Options{Keep: keep}).Minimize(ctx, kernel)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("less than 1 kB:", len(res.BTF) < 1000)
	fmt.Println("unmatched:", res.Unmatched)
	for _, d := range res.Decisions {
		if d.Result == relo.Poisoned {
			fmt.Println(d.Object, d.Relocation)
		}
	}
	// Output:
	// less than 1 kB: true
	// unmatched: [enum:no_such_enum]
	// biolat.bpf.o byte_off struct request___rq_disk.rq_disk
}
