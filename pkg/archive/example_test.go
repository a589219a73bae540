// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// tracer is the archive that the example embeds.
const tracer = "../../examples/go-tracer/tracer.btfa"

// The start of a tracer. The host is a Debian 12 here; the zero Options describe the
// running machine.
func ExampleFind() {
	embedded, err := os.ReadFile(tracer) // a tracer has a //go:embed variable
	if err != nil {
		log.Fatal(err)
	}
	a, err := archive.Open(embedded)
	if err != nil {
		log.Fatal(err)
	}
	types, err := archive.Find(archive.FindOptions{
		Archive:      a,
		IgnoreKernel: true,
		Host: kernel.HostOptions{
			OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-47-amd64", Arch: "x86_64",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes of BTF from the %s: %s\n", len(types.BTF), types.Source, types.Match.Reason)
	// Output: 191 bytes of BTF from the archive: the archive has this kernel
}

// Without BTF for the host the error has a reason, and often advice.
func ExampleFind_miss() {
	a, err := archive.OpenFile(tracer)
	if err != nil {
		log.Fatal(err)
	}
	_, err = archive.Find(archive.FindOptions{
		Archive:      a,
		IgnoreKernel: true,
		Host: kernel.HostOptions{
			OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-9-amd64", Arch: "x86_64",
		},
	})
	var miss *archive.NoMatchError
	if errors.As(err, &miss) {
		fmt.Println(err)
		fmt.Println("the nearest is", miss.Match.Above)
	}
	// Output:
	// kernel debian/12/x86_64/6.1.0-9-amd64 has no BTF, and the archive has none for it: no kernel 6.1.0-9-amd64 for x86_64; the nearest are debian/11/x86_64/5.10.0-30-amd64 and debian/12/x86_64/6.1.0-47-amd64
	// the nearest is debian/12/x86_64/6.1.0-47-amd64
}

// A kernel of another distribution matches if it has the same release and architecture.
func ExampleArchive_Lookup() {
	a, err := archive.OpenFile(tracer)
	if err != nil {
		log.Fatal(err)
	}
	m := a.Lookup(kernel.Key{ID: "devuan", VersionID: "5", Arch: "amd64", Release: "6.1.0-47-amd64"}, 0)
	fmt.Println(m.Rule, m.Key)
	fmt.Println(m.Reason)
	btf, err := a.BTF(m.Key)
	fmt.Println(len(btf), err)
	// Output:
	// release debian/12/x86_64/6.1.0-47-amd64
	// not under devuan 5, but debian 12 has this release and arch
	// 191 <nil>
}

// libbpf and libbpfgo take the path of a file.
func ExampleTypes_File() {
	a, err := archive.OpenFile(tracer)
	if err != nil {
		log.Fatal(err)
	}
	types, err := archive.Find(archive.FindOptions{
		Archive:      a,
		IgnoreKernel: true,
		Host: kernel.HostOptions{
			OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-47-amd64", Arch: "x86_64",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	f, err := types.File()
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	// Load objects here, with f.Path() as btf_custom_path.
	fi, err := os.Stat(f.Path())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(fi.Size(), "bytes")
	// Output: 191 bytes
}
