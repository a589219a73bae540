// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/testing/oracle"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestMutantsBpftool has libbpf itself judge a sample of mutants. It sees
// where fields are, not what they hold.
func TestMutantsBpftool(t *testing.T) {
	slow.Nightly(t)
	raceflag.SkipSerial(t)
	t.Parallel()
	b := &bpftool{T: t, tool: oracle.Need(t, "bpftool"), dir: t.TempDir()}
	names := []string{"x86_64/6.12.107"}
	if os.Getenv("BTFGEN_CORPUS") != "" {
		names = append(names, "debian/11/x86_64", "armhf")
	}
	var objects []verify.Object
	for i, o := range testinput.Objects(t) {
		if o.Order() == binary.LittleEndian {
			objects = append(objects, verify.Object(o))
			b.paths = append(b.paths, b.write(fmt.Sprintf("%d.o", i), o.Data))
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, k := range testinput.Kernels(t, names...) {
		p := newPipeline(t, k.Name, k.BTF, objects)
		all := b.paths
		b.paths = b.accepted(k.BTF, all)
		want, _ := b.decisions(k.BTF, b.paths...)
		b.mutate(p, append(without(), sample(p.mutants(), 1, rnd)...), want)
		b.paths = all
	}
	t.Logf("%d mutants judged by bpftool, %d changed a decision", b.judged, b.changed)
	if b.changed == 0 {
		t.Error("no mutant changed a decision")
	}
}

type bpftool struct {
	*testing.T
	tool, dir       string
	paths           []string // of objects that bpftool takes on the kernel
	judged, changed int
}

func (b *bpftool) write(name string, data []byte) string {
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// accepted returns the objects that bpftool takes. If it refuses some of them, it is asked about each half.
func (b *bpftool) accepted(btf []byte, paths []string) []string {
	n := len(paths)
	if _, ok := b.decisions(btf, paths...); ok {
		return paths
	} else if n == 1 {
		return nil
	}
	return slices.Concat(b.accepted(btf, paths[:n/2]), b.accepted(btf, paths[n/2:]))
}

// mutate reports mutants that the proof accepts although bpftool refuses them or
// decides differently.
func (b *bpftool) mutate(p *pipeline, l []mutation, want []string) {
	for i := range l {
		out := p.run(&l[i])
		if bytes.Equal(out, p.whole) {
			continue
		}
		b.judged++
		// bpftool also fails when it writes its output: it refuses a member of a
		// union that is not at its start.
		got, _ := b.decisions(out, b.paths...)
		if slices.Equal(got, want) {
			continue
		}
		b.changed++
		if p.prove(out) == nil {
			b.Errorf("%s: %s: the proof accepts what bpftool does not: %q", p.kernel.Name(), l[i].rule, firstChange(want, got))
		}
	}
}

func firstChange(want, got []string) []string {
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			return append([]string{w}, got[min(i, len(got)):min(i+1, len(got))]...)
		}
	}
	return nil
}

// decisions returns bpftool's result of each record of objects: whether there is a
// match, and the place of the field or the value of the enumerator. ok says that it
// accepts all.
func (b *bpftool) decisions(btf []byte, objects ...string) (l []string, ok bool) {
	res, err := oracle.Run(b.Context(), b.tool, b.write("in.btf", btf), filepath.Join(b.dir, "out.btf"), objects...)
	if errors.Is(err, context.DeadlineExceeded) && b.Context().Err() == nil {
		return nil, false // a mutant whose references lead in a circle: it follows them for ever
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range res.Records {
		var found []string
		for _, c := range r.Candidates {
			if c.Match {
				path := c.Path
				if r.Kind == relo.EnumvalExists.String() {
					path, _, _ = strings.Cut(path, " = ")
				}
				kind := strings.TrimSuffix(c.TypeKind, "64") // an enum64 does for an enum
				found = append(found, kind+" "+path+" @ "+c.Offset)
			}
		}
		slices.Sort(found)
		l = append(l, fmt.Sprintf("%s #%d %s %s%s: %s", r.Program, r.Index, r.Kind, r.Local.TypeName, r.Local.Path, strings.Join(slices.Compact(found), ", ")))
	}
	return l, res.ExitStatus == 0
}
