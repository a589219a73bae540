package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Info says who made an archive of what.
type Info struct {
	Tool        string            // name and version of the program that wrote it
	Objects     []Object          // that the BTFs were minimized for, sorted by name
	Relocations [sha256.Size]byte // hash of the distinct relocations of all objects; zero if unknown
}

// Object is a BPF object that an archive serves.
type Object struct {
	Name string
	// Sum begins the sha256 of the object's file. Archives keep 8 bytes of it.
	Sum []byte
}

// Is reports whether data is the object, by its hash.
func (o Object) Is(data []byte) bool {
	sum := sha256.Sum256(data)
	return len(o.Sum) > 0 && bytes.HasPrefix(sum[:], o.Sum)
}

// String returns "name (sha256 0123456789abcdef…)".
func (o Object) String() string { return o.Name + " (sha256 " + hex.EncodeToString(o.Sum) + "…)" }

// Kernel is a kernel and its minimized BTF.
type Kernel struct {
	Key kernel.Key
	BTF []byte
}
