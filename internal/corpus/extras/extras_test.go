// SPDX-License-Identifier: Apache-2.0

package extras

import (
	"bufio"
	"bytes"
	"testing"
)

// FuzzExtras checks that extras are not larger than their input, and that reading them again gives the same.
func FuzzExtras(f *testing.F) {
	f.Add([]byte("# Linux/x86 6.1.90 Kernel Configuration\n# CONFIG_KPROBES is not set\nCONFIG_HZ=250\n"))
	f.Add([]byte("ffffffff81000000 T _stext\n0000000000000000 D jiffies\nffffffffc0000000 t nf_it\t[nf]\n"))
	f.Add([]byte("ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		type read func(*bufio.Reader) ([]byte, error)
		for what, read := range map[string]read{"config": ReadConfig, "symbols": ReadSymbols} {
			in := func(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }
			kept, err := read(in(data))
			if err != nil || kept == nil {
				continue
			}
			if len(kept) > len(data)+1 {
				t.Errorf("%s: %d bytes kept of %d", what, len(kept), len(data))
			}
			if again, err := read(in(kept)); err != nil || !bytes.Equal(again, kept) {
				t.Errorf("%s: %q, and again %q, %v", what, kept, again, err)
			}
		}
	})
}
