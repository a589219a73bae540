package archive

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

const testdata = "../../testdata"

// realKernels returns the kernels of testdata, minimized for the tools among
// its objects.
func realKernels(t testing.TB) []Kernel {
	t.Helper()
	kernels, err := realOnce()
	if err != nil {
		t.Fatal(err)
	}
	if len(kernels) < 5 {
		t.Fatalf("testdata has %d kernels", len(kernels))
	}
	return kernels
}

var realOnce = sync.OnceValues(func() (kernels []Kernel, err error) {
	mins := make(map[binary.ByteOrder]*minimize.Minimizer)
	for suffix, order := range map[string]binary.ByteOrder{"bpfel.o": binary.LittleEndian, "bpfeb.o": binary.BigEndian} {
		var objects []*relolog.Object
		for _, name := range []string{"biolat", "bitfields", "dups", "enums", "execsnoop", "filelife", "kinds", "match", "profile", "runqlat", "tcplife"} {
			data, err := os.ReadFile(filepath.Join(testdata, "bpf", name+"."+suffix))
			if err != nil {
				return nil, err
			}
			o, err := relolog.ParseObject(name, data)
			if err != nil {
				return nil, err
			}
			objects = append(objects, o)
		}
		set, err := relolog.NewSet(objects...)
		if err != nil {
			return nil, err
		}
		mins[order] = minimize.New(set, minimize.Options{})
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	root := filepath.Join(testdata, "vmlinux")
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".btf.zst") || strings.Contains(p, "modules") {
			return err
		}
		packed, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		raw, err := d.DecodeAll(packed, nil)
		if err != nil {
			return err
		}
		target, err := relolog.NewTarget(p, raw)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, strings.TrimSuffix(p, ".zst"))
		if err != nil {
			return err
		}
		k := Kernel{}
		if k.Key, err = kernel.ParseFileName(filepath.ToSlash(name)); err != nil {
			return err
		}
		k.BTF, err = mins[target.Order()].Minimize(target)
		kernels = append(kernels, k)
		return err
	})
	return kernels, err
})

// testInfo is what the archives of these tests say of themselves.
func testInfo() Info {
	info := Info{Tool: "test 1", Objects: []Object{NewObject("b.o", []byte("b")), NewObject("a.o", []byte("a"))}}
	info.Relocations[0] = 1
	return info
}

func mustWrite(t testing.TB, kernels []Kernel) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, testInfo(), kernels); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rewritten is the archive of some kernels without compression, which takes
// most of the time of Write.
func rewritten(t testing.TB, kernels []Kernel) *Archive {
	t.Helper()
	kernels, err := sortKernels(kernels)
	if err != nil {
		t.Fatal(err)
	}
	streams, _, err := encodeStreams(testInfo(), kernels)
	if err != nil {
		t.Fatal(err)
	}
	a, err := openPayload(append(head(streams), slices.Concat(streams[:]...)...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustOpen(t testing.TB, data []byte) *Archive {
	t.Helper()
	a, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustKey(t testing.TB, s string) kernel.Key {
	t.Helper()
	k, err := kernel.ParseKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
