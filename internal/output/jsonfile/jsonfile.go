// SPDX-License-Identifier: Apache-2.0

// Package jsonfile reads JSON files of earlier runs, which are not trusted.
package jsonfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/btfgen/btfgen/internal/limits"
)

// Read reads the file at path, of up to limit bytes, as encoding/json does. Its memory is in proportion to the limit, since the number
// of objects is limited, too. Errors name path and what is expected.
func Read(ctx context.Context, path string, limit int64, what string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && int64(len(text)) > limit:
		return fmt.Errorf("%s: too large: has more than %d MiB", path, limit>>20)
	case err == nil && bytes.Count(text, []byte("{")) > limits.EarlierObjects:
		return fmt.Errorf("%s: too large: has more than %d objects", path, limits.EarlierObjects)
	case err == nil:
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: not %s: %w", path, what, err)
	}
	return nil
}
