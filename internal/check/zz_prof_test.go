package check

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
)

func TestZZProf(t *testing.T) {
	var objs []*Object
	files, _ := filepath.Glob(os.Getenv("ZZOBJ"))
	for _, f := range files {
		data, _ := os.ReadFile(f)
		o, err := Parse(t.Context(), filepath.Base(f), data)
		if err != nil {
			t.Fatal(err)
		}
		objs = append(objs, o)
	}
	c, err := corpus.Open(t.Context(), []string{os.Getenv("ZZBTF")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), Config{Objects: objs, Corpus: c, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("total alloc %d MB, sys %d MB", m.TotalAlloc>>20, m.Sys>>20)
}
