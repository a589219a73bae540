// SPDX-License-Identifier: Apache-2.0

package bpfobj

// Error says why an object, or a file that may contain objects, cannot be used.
type Error struct {
	Object string // its name, or the path of the file
	Err    error  // does not repeat the name
}

func (e *Error) Error() string { return e.Object + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }
