// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"testing/fstest"

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
	types, err := archive.Find(archive.Options{
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
	_, err = archive.Find(archive.Options{
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
	// kernel debian/12/x86_64/6.1.0-9-amd64 has no BTF, and the archive has none for it: no kernel 6.1.0-9-amd64 for x86_64
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
	// not under devuan 5, but another distribution has this release and arch
	// 191 <nil>
}

// A tree that is embedded with //go:embed btfs has btfs as its first level, which fs.Sub
// removes.
func ExampleOpenTree() {
	embedded := fstest.MapFS{ // a tracer has an embed.FS
		"debian/12/x86_64/6.1.0-47-amd64.btf":     {Data: []byte("BTF of one kernel")},
		"ubuntu/22.04/arm64/5.15.0-1-generic.btf": {Data: []byte("BTF of another")},
	}
	t, err := archive.OpenTree(embedded)
	if err != nil {
		log.Fatal(err)
	}
	m := t.Lookup(kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "6.1.0-47-amd64"}, 0)
	btf, err := t.BTF(m.Key)
	fmt.Printf("%s: %s, %v\n", m.Key, btf, err)
	// Output: debian/12/x86_64/6.1.0-47-amd64: BTF of one kernel, <nil>
}

// libbpf and libbpfgo take the path of a file.
func ExampleTypes_File() {
	a, err := archive.OpenFile(tracer)
	if err != nil {
		log.Fatal(err)
	}
	types, err := archive.Find(archive.Options{
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
