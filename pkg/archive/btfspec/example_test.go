// SPDX-License-Identifier: Apache-2.0

package btfspec_test

import (
	"fmt"
	"log"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/archive/btfspec"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func ExampleLoad() {
	a, err := archive.OpenFile("../../../examples/go-tracer/tracer.btfa")
	if err != nil {
		log.Fatal(err)
	}
	types, err := archive.Find(archive.FindOptions{
		Archive:      a,
		IgnoreKernel: true,
		Host: kernel.HostOptions{
			OSRelease: "../../kernel/testdata/os-release/debian", Release: "6.1.0-47-amd64", Arch: "x86_64",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	spec, err := btfspec.Load(types)
	if err != nil {
		log.Fatal(err)
	}
	var task *btf.Struct
	if err := spec.TypeByName("task_struct", &task); err != nil {
		log.Fatal(err)
	}
	for _, m := range task.Members {
		fmt.Println(m.Name, m.Offset.Bytes())
	}
	// Output:
	// tgid 2420
	// real_parent 2432
	// comm 2976
}
