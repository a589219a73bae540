// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns an encoder that escapes what [Text] would, so that JSON can be looked at on a terminal.
// It reads back as it was, but for bytes that are not UTF-8, which JSON cannot have.
func JSON(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(jsonWriter{w})
	enc.SetEscapeHTML(false)
	return enc
}

// ones has a 1 in each byte: adding it to bytes up to 0x7f sets the top bit of
// those that are 0x7f.
const ones = 0x0101010101010101

// jsonWriter gets whole values, in which only strings have such characters.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	var out []byte
	from := 0 // what is not in out yet
	for i := 0; i < len(p); {
		// Nearly all is ASCII, of which the encoder has escaped all but DEL.
		if len(p)-i >= 8 {
			if w := binary.LittleEndian.Uint64(p[i:]); (w|(w+ones))&(ones<<7) == 0 {
				i += 8
				continue
			}
		}
		r, n := rune(p[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(p[i:])
		}
		if r != '\n' && !strconv.IsPrint(r) {
			out = append(out, p[from:i]...)
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return j.w.Write(p)
	}
	if _, err := j.w.Write(append(out, p[from:]...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
