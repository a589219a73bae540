// SPDX-License-Identifier: Apache-2.0

package rawbtf

import "github.com/btfgen/btfgen/internal/btfenc"

const (
	numKinds = btfenc.NumKinds
	hdrWords = 3 // struct btf_type, 32-bit words
)
