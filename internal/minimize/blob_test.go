// SPDX-License-Identifier: Apache-2.0

package minimize

// blob returns the BTF of a result.
func blob(r *Result, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return r.BTF, nil
}

// Blob is for the external tests.
var Blob = blob
