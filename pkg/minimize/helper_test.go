// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testinput"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// objectFile is an object in a file of its own.
type objectFile struct {
	path string
	obj  *relolog.Object
}

func objectFiles(tb testing.TB) []objectFile {
	tb.Helper()
	dir := tb.TempDir()
	var out []objectFile
	for i, o := range testinput.Objects(tb) {
		f := objectFile{filepath.Join(dir, fmt.Sprintf("%d.o", i)), o.Object}
		if err := os.WriteFile(f.path, o.Data, 0o644); err != nil {
			tb.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func objects(tb testing.TB) []*relolog.Object {
	tb.Helper()
	var out []*relolog.Object
	for _, o := range testinput.Objects(tb) {
		out = append(out, o.Object)
	}
	return out
}

// isDefect reports whether an error of Minimize is one of this package.
func isDefect(err error) bool { return errors.Is(err, minimize.ErrProof) }

// eachKernel calls fn for each kernel of testdata/vmlinux and of the corpus
// that the environment names.
func eachKernel(tb testing.TB, fn func(name string, btf []byte)) {
	tb.Helper()
	testinput.Each(tb, testinput.Varied(tb), func(it *corpus.Kernel) { fn(it.Name, it.BTF) })
}
