// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/btfgen/btfgen/pkg/archive"
)

// Made is an archive.Info as JSON. Hashes are hexadecimal. Fields are only ever added.
type Made struct {
	Tool        string       `json:"tool"`
	Shard       *MadeShard   `json:"shard,omitempty"`
	Relocations []MadeHash   `json:"relocations"`
	Objects     []MadeObject `json:"objects"`
}

// MadeShard is which part of a run an archive is, from 1.
type MadeShard struct {
	Index int `json:"index"`
	N     int `json:"n"`
}

// MadeHash is the hash of the relocations that an arch's kernels were made for.
type MadeHash struct {
	Arch   string `json:"arch,omitempty"` // every one that has no hash of its own if it is missing
	SHA256 string `json:"sha256_prefix"`  // its first digits
}

// MadeObject is an object.
type MadeObject struct {
	Name   string   `json:"name"`
	SHA256 string   `json:"sha256_prefix"` // its first digits
	Arches []string `json:"arches"`        // machines that it is for; any if there are none
}

// NewMade returns the JSON form of an Info.
func NewMade(info archive.Info) Made {
	m := Made{Tool: info.Tool, Relocations: []MadeHash{}, Objects: []MadeObject{}}
	if s := info.Shard; s != (archive.Shard{}) {
		m.Shard = &MadeShard{s.Index, s.N}
	}
	for _, r := range info.Relocations {
		m.Relocations = append(m.Relocations, MadeHash{r.Arch, hex.EncodeToString(r.Sum)})
	}
	for _, o := range info.Objects {
		m.Objects = append(m.Objects, MadeObject{o.Name, hex.EncodeToString(o.Sum), append([]string{}, o.Arches...)})
	}
	return m
}

// parseMade is the inverse of encoding a Made. Nothing becomes the zero Info.
func parseMade(data []byte) (info archive.Info, err error) {
	if len(data) == 0 {
		return info, nil
	}
	var m Made
	if err := json.Unmarshal(data, &m); err != nil {
		return info, fmt.Errorf("made: %w", err)
	}
	info.Tool = m.Tool
	if s := m.Shard; s != nil {
		info.Shard = archive.Shard{Index: s.Index, N: s.N}
	}
	for _, r := range m.Relocations {
		sum, err := hex.DecodeString(r.SHA256)
		if err != nil {
			return info, fmt.Errorf("made: relocations: %w", err)
		}
		info.Relocations = append(info.Relocations, archive.Relocations{Arch: r.Arch, Sum: sum})
	}
	for _, o := range m.Objects {
		sum, err := hex.DecodeString(o.SHA256)
		if err != nil {
			return info, fmt.Errorf("made: object %s: %w", o.Name, err)
		}
		info.Objects = append(info.Objects, archive.Object{Name: o.Name, Sum: sum, Arches: o.Arches})
	}
	return info, nil
}
