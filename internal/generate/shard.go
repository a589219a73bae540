package generate

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
)

// Shard is one of N parts of a corpus, numbered from 1. The zero value is the
// whole corpus. A kernel's part follows from its key, so that several sources
// of one kernel are in the same part, and a kernel stays in its part when
// others come and go.
type Shard struct{ Index, N int }

// ParseShard reads "3/10".
func ParseShard(s string) (Shard, error) {
	a, b, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || i < 1 || n < i {
		return Shard{}, fmt.Errorf("shard %q: want I/N with 1 ≤ I ≤ N", s)
	}
	return Shard{i, n}, nil
}

// first reports whether it falls to s to report what belongs to no part.
func (s Shard) first() bool { return s.Index <= 1 }

// of returns the files in the part.
func (s Shard) of(files []*corpus.File) []*corpus.File {
	if s.N <= 1 {
		return files
	}
	var out []*corpus.File
	for _, f := range files {
		name := f.Path
		if f.Key.Known() {
			name = f.Key.Canonical().String()
		}
		h := fnv.New32a()
		h.Write([]byte(name))
		if int(h.Sum32()%uint32(s.N)) == s.Index-1 {
			out = append(out, f)
		}
	}
	return out
}
