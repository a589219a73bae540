package corpus

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestRealTmp(t *testing.T) {
	for _, src := range []string{os.Getenv("BTFGEN_CORPUS"), "/tmp/w/btf", "/sys/kernel/btf"} {
		t0 := time.Now()
		c, err := Open(context.Background(), []string{src}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(src, len(c.Files), c.Skipped, c.Ignored, c.Size(), time.Since(t0))
		var s Scratch
		for _, f := range c.Files {
			t0 := time.Now()
			err := f.Read(context.Background(), &s, func(it *Item) error {
				t.Log(it.Name, it.Key, it.Path, it.Arch, len(it.BTF), len(it.Modules), it.SourceSize)
				return nil
			})
			t.Log(f.Paths(), err, time.Since(t0))
		}
	}
}
