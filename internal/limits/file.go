// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of up to max bytes. It stops there: the file may be a device or a pipe that does not end. Errors name path.
func ReadFile(path string, max int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s: %w", path, &Exceeded{max, "bytes"})
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
