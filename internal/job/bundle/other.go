// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
)

// Other returns an error that says what a file is in place of an archive, by its first bytes. It is nil for a directory and for what it
// does not know. It matches ErrNotBundle.
func Other(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, sniff.Len))
	if err != nil {
		return nil
	}
	what := ""
	switch sniff.Of(head) {
	case sniff.BTFC:
		return notBundle{fmt.Errorf("kernels, not an archive ('btfgen generate --btf %s' makes one for your objects)", name)}
	case sniff.Empty:
		what = "empty"
	case sniff.BTF:
		what = "BTF of one kernel"
	case sniff.ELF:
		if what = "an ELF file"; embedded.MayBeObject(head) {
			what = "a BPF object"
		}
	case sniff.Unknown:
		if what = "text"; !isText(head) {
			return nil
		}
	default:
		return nil
	}
	return notBundle{fmt.Errorf("not a %s archive, but %s", NativeSuffix, what)}
}

// isText reports whether the beginning of a file is text: UTF-8 without control characters other than white space.
func isText(head []byte) bool {
	for n := 0; n < utf8.UTFMax && len(head) > n; n++ { // the last character may be cut
		if utf8.Valid(head[:len(head)-n]) {
			return bytes.IndexFunc(head, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' }) < 0
		}
	}
	return false
}
