// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btfa"
)

// The streams of a kernel. Each holds one sort of thing, because like compresses well next to like.
const (
	streamHead         = iota
	streamRest                             // of the blob: what is neither types nor strings
	streamText                             // names that no ancestor has, without what they share with the one before
	streamShared                           // how many bytes that is
	streamTypeRuns                         // the order of types
	streamTypeStarts                       //
	streamTypeFar                          //
	streamStringRuns                       // the order of strings
	streamStringStarts                     //
	streamStringFar                        //
	streamKinds                            // of new contents
	streamCounts                           // of their elements
	streamOffsets                          // of members
	streamSizes                            // of structs and unions
	streamValues                           // of enumerators
	streamNumbers                          // other numbers
	streamNameFar                          // names, far away: the lowest 8 bits, the next 8, and the others
	streamNames        = streamNameFar + 3 // numClasses streams of what names are
	streamNameLow      = streamNames + int(numClasses)
	streamRefFar       = streamNameLow + int(numClasses) // references, far away
	streamRefs         = streamRefFar + 3
	streamRefLow       = streamRefs + int(numClasses)
	numStreams         = streamRefLow + int(numClasses)
)

// stringStreams are those of the order of strings.
var stringStreams = []int{streamStringRuns, streamStringStarts, streamStringFar}

// streamTexts say in the plural what the bytes are spent on.
var streamTexts = func() (t [numStreams]string) {
	copy(t[:], []string{"head", "rest", "text", "text", "order of types", "order of types", "order of types", "order of strings",
		"order of strings", "order of strings", "kinds", "counts", "offsets", "sizes", "values", "numbers"})
	for i := streamNameFar; i < numStreams; i++ {
		if t[i] = "names"; i >= streamRefFar {
			t[i] = "references"
		}
	}
	return t
}()

// streams are what a kernel is told in.
type streams [numStreams][]byte

// parts returns what the streams are written as: their lengths, and each of them.
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

// end says what is wrong with streams that should have been read whole.
func end(s *[numStreams]btfa.Cursor) error {
	for i := range s {
		if s[i].End(); s[i].Err != nil {
			return fmt.Errorf("%s: %w", streamTexts[i], s[i].Err)
		}
	}
	return nil
}
