// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/btfgen/btfgen/pkg/archive"
)

// Made is the JSON form of an archive.Info. Fields are only added.
type Made struct {
	Tool        string       `json:"tool"`
	Shard       *MadeShard   `json:"shard,omitempty"`
	Relocations []MadeHash   `json:"relocations"`
	Objects     []MadeObject `json:"objects"`
}

// MadeShard is the part of a run that an archive has. Index counts from 1.
type MadeShard struct {
	Index int `json:"index"`
	N     int `json:"n"`
}

// MadeHash is the hash of the relocations for the kernels of an arch.
type MadeHash struct {
	Arch   string `json:"arch,omitempty"` // empty for all that have no hash of their own
	SHA256 Hex    `json:"sha256_prefix"`
}

// MadeObject is an object.
type MadeObject struct {
	Name        string   `json:"name"`
	SHA256      Hex      `json:"sha256_prefix"`
	Arches      []string `json:"arches"`                // none means any machine
	Fingerprint Hex      `json:"fingerprint,omitempty"` // of its relocations
}

// Hex is bytes that JSON has in hexadecimal.
type Hex []byte

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.AppendDecode(nil, text)
	return err
}

// NewMade returns the JSON form of an Info.
func NewMade(info archive.Info) Made {
	m := Made{Tool: info.Tool, Relocations: []MadeHash{}, Objects: []MadeObject{}}
	if s := info.Shard; s != (archive.Shard{}) {
		m.Shard = &MadeShard{s.Index, s.N}
	}
	for _, r := range info.Relocations {
		m.Relocations = append(m.Relocations, MadeHash{r.Arch, r.Sum})
	}
	for _, o := range info.Objects {
		m.Objects = append(m.Objects, MadeObject{o.Name, o.Sum, append([]string{}, o.Arches...), o.Fingerprint})
	}
	return m
}

// parseMade parses the JSON form of an Info. Empty data is the zero Info.
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
		info.Relocations = append(info.Relocations, archive.Relocations{Arch: r.Arch, Sum: r.SHA256})
	}
	for _, o := range m.Objects {
		info.Objects = append(info.Objects, archive.Object{Name: o.Name, Sum: o.SHA256, Fingerprint: o.Fingerprint, Arches: o.Arches})
	}
	return info, nil
}
