// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btfa"
)

// The streams of a payload. Each holds one sort of value, because similar values next to each other compress well.
const (
	streamHead         = iota
	streamRest                                      // of the BTF: all but types and strings
	streamText                                      // new names, without the prefixes that they share with the name before
	streamShared                                    // lengths of these prefixes
	streamTypes                                     // order of types
	streamStrings      = streamTypes + orderStreams // order of strings
	streamKinds        = streamStrings + orderStreams + iota - 6
	streamCounts       // of elements
	streamOffsets      // of members
	streamSizes        // of structs and unions
	streamValues       // of enumerators
	streamNumbers      // other numbers
	streamTypeNames    // names of types
	streamElemNames    // names of elements
	streamNameNumbers  // large numbers of names
	streamTypeRefs     // references of types
	streamElemRefs     // references of elements
	streamRefDistances // large distances of references
	streamRefRanks     // large ranks of references
	numStreams
)

// streamTexts describes the streams.
var streamTexts = [numStreams]string{
	"head", "rest", "text", "text", "order of types", "order of types", "order of strings", "order of strings",
	"kinds", "counts", "offsets", "sizes", "values", "numbers", "names", "names", "names",
	"references", "references", "references", "references",
}

// streams are the streams of a payload that is being encoded.
type streams [numStreams][]byte

// parts returns the parts of the payload: the lengths of the streams, and the streams.
func (s *streams) parts() [][]byte {
	var lens []byte
	parts := make([][]byte, 1, 1+numStreams)
	for _, x := range s {
		lens = binary.AppendUvarint(lens, uint64(len(x)))
		parts = append(parts, x)
	}
	parts[0] = lens
	return parts
}

var errStreams = errors.New("streams do not add up")

// split is the inverse of parts.
func split(payload []byte) (s [numStreams]btfa.Cursor, err error) {
	c := btfa.NewCursor(payload)
	var lens [numStreams]uint64
	for i := range lens {
		lens[i] = c.Uvarint()
	}
	if c.Err != nil {
		return s, c.Err
	}
	for i, n := range lens {
		if n > uint64(c.Len()) {
			return s, errStreams
		}
		s[i] = btfa.NewCursor(c.Bytes(int(n)))
	}
	if c.Len() > 0 {
		return s, errStreams
	}
	return s, nil
}

// end returns an error if a stream has failed or has bytes left.
func end(s []btfa.Cursor, first int) error {
	for i := range s {
		if s[i].End(); s[i].Err != nil {
			return fmt.Errorf("%s: %w", streamTexts[first+i], s[i].Err)
		}
	}
	return nil
}
