// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/workers"
)

// mappedFile returns a corpus of one file of BTF that is large enough to be mapped.
func mappedFile(t *testing.T) (c *Corpus, path string, raw []byte) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs mmap")
	}
	name := "debian/12/x86_64/6.1.0-47-amd64.btf"
	raw = append(bytes.Clone(blobLE), make([]byte, mapMin)...)
	path = filepath.Join(tree(t, map[string]string{name: string(raw)}), name)
	c, err := Open(context.Background(), []string{path}, Options{Map: true})
	if err != nil {
		t.Fatal(err)
	}
	return c, path, raw
}

func TestMapped(t *testing.T) {
	c, _, raw := mappedFile(t)
	for range 2 {
		n, a := 0, new(assembler)
		a.yield = func(k *Kernel) error {
			if n++; !bytes.Equal(k.BTF, raw) {
				t.Error("mapped bytes differ from the file's")
			}
			if len(a.maps) != 1 {
				t.Errorf("%d files are mapped", len(a.maps))
			}
			return nil
		}
		mem := decompress.NewArena(t.Context())
		err := c.Files[0].assemble(t.Context(), mem, a)
		mem.Release()
		if err != nil || n != 1 || len(a.maps) != 0 {
			t.Errorf("%d kernels, error %v, %d files still mapped", n, err, len(a.maps))
		}
	}
}

// TestMappedChanged truncates a file, or gives it other content, while it is mapped.
func TestMappedChanged(t *testing.T) {
	for what, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"rewritten": func(path string) error { return os.Chtimes(path, time.Now(), time.Unix(1, 0)) },
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", blobLE, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		for _, jobs := range []int{1, 3} {
			c, path, raw := mappedFile(t)
			err := c.Files[0].Read(context.Background(), func(k *Kernel) error {
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				workers.Together(jobs, func() {
					sum := 0
					for _, b := range k.BTF { // ends here if there is nothing behind it any more
						sum += int(b)
					}
					_ = k.BTF[sum%2+len(raw)] // as checks of what has changed since would
				})
				return nil
			})
			if want := path + ": btf: changed while it was read"; err == nil || err.Error() != want {
				t.Errorf("%s, %d workers: error %v, want %s", what, jobs, err, want)
			}
		}
	}
}

// TestMappedPanics makes sure that a defect is not taken for a changed file.
func TestMappedPanics(t *testing.T) {
	c, path, raw := mappedFile(t)
	a := &assembler{yield: func(k *Kernel) error {
		_ = k.BTF[len(raw)]
		return nil
	}}
	err := c.Files[0].caught(t.Context(), func(ctx context.Context, mem *decompress.Arena) error { return c.Files[0].assemble(ctx, mem, a) })
	if err == nil || !strings.HasPrefix(err.Error(), path+": defect of btfgen: ") || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("error %v", err)
	}
	if len(a.maps) != 0 {
		t.Error("file is still mapped")
	}
}

// TestPanics makes sure that a defect that shows on one kernel costs that kernel only.
func TestPanics(t *testing.T) {
	packed := tarOf(
		member{"debian/12/x86_64/6.1.btf", blobLE}, member{"debian/12/x86_64/6.2.btf", blobLE}, member{"debian/12/x86_64/6.3.btf", blobLE})
	c, err := Open(context.Background(), []string{tree(t, map[string]string{"all.tar": string(packed)})}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = c.Files[0].Read(context.Background(), func(k *Kernel) error {
		if got = append(got, k.Key.Release); len(got) == 2 {
			panic("trouble")
		}
		return nil
	})
	if len(got) != 3 {
		t.Errorf("kernels %q", got)
	}
	all := skip.Errors(err)
	if len(all) != 1 || !strings.HasSuffix(all[0].Path, "all.tar!debian/12/x86_64/6.2.btf") || all[0].Reason() != "defect of btfgen: trouble" {
		t.Errorf("errors %v", err)
	}
}
