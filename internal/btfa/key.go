// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"errors"
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// KeyText is the form of a key that kernels are sorted by and stored as.
func KeyText(k kernel.Key) string {
	return k.ID + "/" + k.VersionID + "/" + k.Arch + "/" + k.Release
}

var errKey = errors.New("not a key")

// ParseKey is the inverse of KeyText. It refuses what CheckKey refuses.
func ParseKey(s string) (kernel.Key, error) {
	var k kernel.Key
	for _, p := range [...]*string{&k.ID, &k.VersionID, &k.Arch} {
		var ok bool
		if *p, s, ok = strings.Cut(s, "/"); !ok {
			return kernel.Key{}, errKey
		}
	}
	if k.Release = s; strings.Contains(s, "/") {
		return kernel.Key{}, errKey
	}
	return k, CheckKey(k)
}

// CheckKey returns an error if a kernel cannot be stored under the key, or if no host would find it there.
func CheckKey(k kernel.Key) error {
	if k.Release == "" {
		return fmt.Errorf("kernel %s: no release", k)
	}
	if k.Arch == "" {
		return fmt.Errorf("kernel %s: no arch, so that no host finds it", k)
	}
	if err := k.Validate(); err != nil {
		return fmt.Errorf("kernel %s: %w", k, err)
	}
	return nil
}
