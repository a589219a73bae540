// SPDX-License-Identifier: Apache-2.0

// Command btfa-dictionary writes lib/c/btfa_dictionary.h from internal/btfa/dictionary:
//
//	go run ./scripts/btfa-dictionary
//
// The dictionary is part of the .btfa format, so it does not change: a file that was
// compressed with one dictionary cannot be read with another.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
)

func main() {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		log.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("/* SPDX-License-Identifier: Apache-2.0 */\n" +
		"/* The dictionary of the .btfa format, as a zstd frame. Made by scripts/btfa-dictionary; do not edit. */\n")
	fmt.Fprintf(&b, "enum { DICTIONARY_SIZE = %d }; /* bytes, decompressed */\n\nstatic const uint8_t dictionary_frame[] = {\n", len(btfa.Dictionary))
	for line := range slices.Chunk(w.EncodeAll(btfa.Dictionary, nil), 24) {
		b.WriteByte('\t')
		for i, x := range line {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d,", x)
		}
		b.WriteByte('\n')
	}
	b.WriteString("};\n")
	if err := os.WriteFile("lib/c/btfa_dictionary.h", b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
