// SPDX-License-Identifier: Apache-2.0

package btf

const (
	numKinds = NumKinds
	hdrWords = 3 // struct btf_type, 32-bit words
)
