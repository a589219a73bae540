// SPDX-License-Identifier: Apache-2.0

package limits

// What is looked at to tell the machine of a kernel or an object, and options of a kernel, by the members of
// structs. A member that is further away counts as missing.
const (
	// MemberNesting bounds how deep anonymous structs nest. Real: 2.
	MemberNesting = 4

	// MemberLooks bounds the members, as a struct can contain itself many times over.
	// Real: 272.
	MemberLooks = 100_000
)
