// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/sniff"
)

func TestSniff(t *testing.T) {
	zeros := make([]byte, 1024)
	for _, tt := range []struct {
		name string
		head []byte
		want sniff.Kind
	}{
		{"nothing", nil, sniff.Empty},
		{"zeros", zeros, sniff.Zero},
		{"text", []byte("#!/bin/sh\necho hello\n"), sniff.Unknown},
		{"short magic", []byte("\x9f\xeb"), sniff.Unknown},
		{"other version", []byte("\x9f\xeb\x02\x00"), sniff.Unknown},
		{"lzma by chance", []byte("]]]]]]]]]]]]]]]]"), sniff.Unknown},
		{"tar", tarOf(member{"x", nil}), sniff.Tar},
		{"tar with a bad checksum", append([]byte("y"), tarOf(member{"x", nil})[1:]...), sniff.Unknown},
		{"old tar", oldTar(), sniff.Tar},
		{"raw", blobLE, sniff.BTF},
		{"raw, big-endian", blobBE, sniff.BTF},
		{"zboot", zboot(compress("gz", noise(10))), sniff.Image},
		{"s390x needs more than a beginning", s390Image(nil)[:sniff.Len], sniff.Zero},
	} {
		if got := sniff.Of(tt.head[:min(len(tt.head), sniff.Len)]); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// oldTar returns a header from before ustar: no magic, and a checksum of six digits and a space.
func oldTar() []byte {
	b := make([]byte, 512)
	copy(b, "x.btf")
	copy(b[124:], "00000000000")
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], []byte{'0', byte('0' + sum>>9&7), byte('0' + sum>>6&7), byte('0' + sum>>3&7), byte('0' + sum&7), 0, ' '})
	copy(b[148:], "0")
	return b
}
