// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// A pipeline in Go minimizes the BTF of some kernels for an object, and writes an
// archive.
func ExampleWrite() {
	ctx := context.Background()
	data, err := os.ReadFile("../../testdata/bpf/biolat.bpfel.o")
	if err != nil {
		log.Fatal(err)
	}
	object, err := relolog.ParseObject("biolat.bpf.o", data)
	if err != nil {
		log.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer dec.Close()

	minimizer := minimize.New([]*relolog.Object{object}, minimize.Options{})
	var kernels []archive.Kernel
	for _, name := range []string{"debian/11/x86_64/5.10.0-30-amd64", "debian/12/x86_64/6.1.0-47-amd64"} {
		key, err := kernel.ParseKey(name)
		if err != nil {
			log.Fatal(err)
		}
		compressed, err := os.ReadFile("../../testdata/vmlinux/" + key.FileName() + ".zst")
		if err != nil {
			log.Fatal(err)
		}
		vmlinux, err := dec.DecodeAll(compressed, nil)
		if err != nil {
			log.Fatal(err)
		}
		target, err := relolog.NewTarget(ctx, name, vmlinux)
		if err != nil {
			log.Fatal(err)
		}
		res, err := minimizer.Minimize(ctx, target)
		if err != nil {
			log.Fatal(err)
		}
		kernels = append(kernels, archive.Kernel{Key: key, BTF: res.BTF})
	}
	hash := relolog.Hash(object)
	info := archive.Info{
		Tool:        "my-pipeline 1.0",
		Objects:     []archive.Object{archive.NewObject(object.Name(), data, object.Machines()...)},
		Relocations: []archive.Relocations{{Sum: hash[:]}},
	}
	var file bytes.Buffer
	if err := archive.Write(ctx, &file, info, kernels); err != nil {
		log.Fatal(err)
	}

	a, err := archive.Open(file.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("less than 1 kB:", file.Len() < 1000)
	fmt.Println(a.Info().Objects[0].Name, a.Covers(archive.NewObject("", data)) == nil)
	for _, k := range a.Keys() {
		fmt.Println(k)
	}
	// Output:
	// less than 1 kB: true
	// biolat.bpf.o true
	// debian/11/x86_64/5.10.0-30-amd64
	// debian/12/x86_64/6.1.0-47-amd64
}
