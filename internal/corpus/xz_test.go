package corpus

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestXZMemory reads, with one Scratch and by the xz program, files that leave
// different bytes in its memory, and one that does not fit.
func TestXZMemory(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("no xz program")
	}
	zeros := make([]byte, 1<<20) // where the program would seek rather than write
	withZeros := append(append(bytes.Clone(blobBE), zeros...), "end"...)
	files := map[string]string{}
	for name, members := range map[string][]member{
		"debian/12/x86_64/1.btf.tar.xz": {{"1.btf", append(bytes.Clone(blobLE), bytes.Repeat([]byte("x"), 2<<20)...)}},
		"debian/12/x86_64/2.btf.tar.xz": {{"2.btf", withZeros}},
		"debian/12/x86_64/3.btf.tar.xz": {{"3.btf", blobLE}, {"z", make([]byte, xzMemory)}, {"4.btf", withZeros}},
		"debian/12/x86_64/5.btf.tar.xz": {{"5.btf", withZeros}},
	} {
		files[name] = string(compress("xz", tarOf(members...)))
		if len(files[name]) > smallXZ {
			t.Fatalf("%s has %d bytes", name, len(files[name]))
		}
	}
	dir := tree(t, files)
	_, want, _ := readAll(t, Options{XZ: XZGo}, dir)
	_, got, errs := readAll(t, Options{XZ: XZProgram}, dir)
	if len(errs) > 0 || len(got) != 5 || len(want) != 5 {
		t.Fatalf("%d kernels, %d without the program, errors %v", len(got), len(want), errs)
	}
	for i := range got {
		if !bytes.Equal(got[i].btf, want[i].btf) {
			t.Errorf("%s: bytes differ", filepath.Base(got[i].Path))
		}
	}
}
