// SPDX-License-Identifier: Apache-2.0

// Package limits says what may be spent on outside data: bytes, counts and
// steps, in all and for each byte of input. Everything that reads objects,
// kernels, archives, manifests or configuration draws on it. What exceeds a limit
// is reported with the limit's name; it never ends the program. Each constant
// says what it bounds and how far the largest real input stays below it.
package limits
