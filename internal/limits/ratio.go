// SPDX-License-Identifier: Apache-2.0

package limits

import "fmt"

// Unpacked limits the bytes that the process holds of what it unpacks: kernels, the ancestors that they are encoded against, and caches of
// these.
var Unpacked = NewMemory(UnpackedInAll)

// Ratio limits what the chunks of a file unpack to, before they are unpacked. A chunk may claim UnpackedRatio times its size, and those
// that claim more may together claim UnpackedSmall bytes. The zero value is for a new file.
type Ratio struct{ small int64 }

// Allow returns ErrRatio if a chunk of so many packed bytes may not unpack to size bytes.
func (r *Ratio) Allow(packed, size int64) error {
	if size <= UnpackedRatio*packed {
		return nil
	}
	if r.small+size > UnpackedSmall {
		return ErrRatio
	}
	r.small += size
	return nil
}

// ErrRatio is returned for what unpacks to too much for its size.
var ErrRatio = fmt.Errorf("unpacks to more than %d times its size", UnpackedRatio)
