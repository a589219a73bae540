// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/corpus"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// A pipeline does what 'btfgen generate --btf vmlinux/ --select … -o biolat.btfa
// biolat.bpf.o' does.
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
	minimizer := minimize.New([]*relolog.Object{object}, minimize.Options{})
	var kernels []archive.Kernel
	opts := corpus.Options{Select: []string{"debian<13,x86_64"}, Modules: "none"}
	for k, err := range corpus.Kernels(ctx, []string{"../../testdata/vmlinux"}, opts) {
		if err != nil {
			log.Fatal(err)
		}
		res, err := minimizer.Minimize(ctx, k.Target)
		if err != nil {
			log.Fatal(err)
		}
		kernels = append(kernels, archive.Kernel{Key: k.Key, BTF: res.BTF})
	}
	hash := relolog.Hash(object)
	var file bytes.Buffer
	err = archive.Write(ctx, &file, archive.Info{
		Tool:        "my-pipeline 1.0",
		Objects:     []archive.Object{archive.NewObject(object.Name(), data, object.Machines()...)},
		Relocations: []archive.Relocations{{Sum: hash[:]}},
	}, kernels)
	if err != nil {
		log.Fatal(err)
	}
	a, err := archive.Open(file.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range a.Keys() {
		fmt.Println(k)
	}
	// Output:
	// debian/11/x86_64/5.10.0-30-amd64
	// debian/12/x86_64/6.1.0-47-amd64
}
