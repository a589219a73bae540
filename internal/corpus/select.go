package corpus

import "github.com/btfgen/btfgen/pkg/archive"

// Selector matches kernels by their key.
type Selector struct{}

// Match says whether the kernel is selected.
func (s Selector) Match(k archive.Key) bool { return true }
