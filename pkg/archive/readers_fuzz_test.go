// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
)

// payloads returns the seeds for fuzzing. Large ones are for other tests: a fuzzer reads all seeds before it begins.
func payloads(t testing.TB) (all [][]byte) {
	for _, kernels := range [][]archive.Kernel{nil, testminimized.Kernels(t)[:1], testminimized.Kernels(t)} {
		payload, err := btfa.Unpack(mustWrite(t, kernels)[btfa.HeaderLen:])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, payload)
	}
	for _, p := range hostile(t) {
		if len(p.payload) < 1<<16 {
			all = append(all, p.payload)
		}
	}
	return all
}

// FuzzC compares the readers on payloads.
func FuzzC(f *testing.F) {
	raceflag.SkipSerial(f)
	for _, p := range payloads(f) {
		f.Add(p)
	}
	c := readers.Start(f, readers.C)
	pack := packer(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		c.Compare(t, pack(payload))
	})
}

// FuzzCFile compares the readers on files. It corrects the checksum of files that decompress.
func FuzzCFile(f *testing.F) {
	f.Add(mustWrite(f, testminimized.Kernels(f)))
	f.Add(mustWrite(f, nil))
	f.Add([]byte(btfa.Magic))
	c := readers.Start(f, readers.C)
	pack := packer(f)
	d, err := zstd.NewReader(nil, zstd.IgnoreChecksum(true), zstd.WithDecoderMaxMemory(btfa.MaxPayload))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		c.Compare(t, file)
		if len(file) < btfa.HeaderLen+4 {
			return
		}
		if payload, err := d.DecodeAll(file[btfa.HeaderLen:], nil); err == nil {
			packed := pack(payload)
			sum := binary.LittleEndian.Uint32(packed[len(packed)-4:])
			c.Compare(t, binary.LittleEndian.AppendUint32(file[:len(file)-4:len(file)-4], sum))
		}
	})
}

// TestReadersPayloads compares the readers on payloads with a few changes, whose checksums are right.
func TestReadersPayloads(t *testing.T) {
	slow.Skip(t)
	all := payloads(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		random, opened := rand.New(rand.NewPCG(5, 6)), 0
		const n = 1000
		for range n {
			p := slices.Clone(all[random.IntN(len(all))])
			for range 1 + random.IntN(3) {
				if at := random.IntN(len(p) + 1); at < len(p) && random.IntN(4) > 0 {
					p[at] ^= 1 << random.IntN(8)
				} else {
					p = slices.Insert(p, at, byte(random.IntN(256)))
				}
			}
			if c.Compare(t, raw(t, p)) {
				opened++
			}
		}
		t.Logf("compared %d payloads, of which %d open", n, opened)
	})
}

// packer returns a function like raw.
func packer(f *testing.F) func(payload []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		f.Fatal(err)
	}
	return func(payload []byte) []byte {
		return w.EncodeAll(payload, append([]byte(btfa.Magic), btfa.Version))
	}
}

// TestLibFuzzer runs libFuzzer on the C reader with sanitizers for a short time, or for
// BTFGEN_LIBFUZZER seconds.
func TestLibFuzzer(t *testing.T) {
	slow.Nightly(t)
	raceflag.SkipSerial(t)
	work := t.TempDir()
	fuzzer, seeds := filepath.Join(work, "fuzz"), filepath.Join(work, "seeds")
	args := []string{"-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", "-o", fuzzer,
		filepath.Join(readers.Source(), "test", "fuzz.c"), "-lzstd"}
	if out, err := exec.Command("clang-19", args...).CombinedOutput(); err != nil {
		t.Skipf("needs clang-19, libclang-rt-19-dev and libzstd-dev: %v\n%s", err, out)
	}
	if err := os.Mkdir(seeds, 0o777); err != nil {
		t.Fatal(err)
	}
	inputs := [][]byte{append([]byte{0}, mustWrite(t, testminimized.Kernels(t))...)}
	for _, p := range payloads(t) {
		inputs = append(inputs, append([]byte{1}, p...))
	}
	files, err := filepath.Glob("../kernel/testdata/os-release/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no os-release files (%v)", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, append([]byte{2}, text...))
	}
	objects, err := filepath.Glob("../../testdata/bpf/*.o")
	if err != nil || len(objects) == 0 {
		t.Fatalf("no objects (%v)", err)
	}
	for _, f := range objects {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, append([]byte{3}, data...))
	}
	for i, b := range inputs {
		if err := os.WriteFile(filepath.Join(seeds, fmt.Sprint(i)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(fuzzer, "-runs=20000", "-max_len=65536", "-rss_limit_mb=1024", seeds)
	if s := os.Getenv("BTFGEN_LIBFUZZER"); s != "" {
		run.Args[1] = "-max_total_time=" + s
	}
	run.Dir = work
	out, err := run.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(lines[len(lines)-1])
}
