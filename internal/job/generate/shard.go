// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/archive"
)

// ParseShard reads "3/10". "1/1" is the zero Shard, the whole.
func ParseShard(s string) (archive.Shard, error) {
	a, b, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || i < 1 || n < i || n > btfa.MaxShards {
		return archive.Shard{}, fmt.Errorf("want I/N with 1 ≤ I ≤ N ≤ %d", btfa.MaxShards)
	}
	if n == 1 {
		return archive.Shard{}, nil
	}
	return archive.Shard{Index: i, N: n}, nil
}

// first reports whether s is the shard that reports what belongs to no shard.
func first(s archive.Shard) bool { return s.Index <= 1 }

// inShard returns the files in a shard. It depends on a kernel's key alone: all sources of a kernel are in the same shard,
// and a kernel stays in its shard when others come and go.
func inShard(s archive.Shard, files []*corpus.File) []*corpus.File {
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
