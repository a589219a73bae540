// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// objects finds the little-endian objects with relocations in files and trees. It writes each to a directory, without duplicates,
// as 01.o, ….
func objects(args []string) error {
	if len(args) < 2 {
		return errors.New("want OUT and at least one SOURCE")
	}
	seen := make(map[string]bool)
	for _, source := range args[1:] {
		err := filepath.WalkDir(source, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			return writeObjects(args[0], path, seen)
		})
		if err != nil {
			return err
		}
	}
	if len(seen) == 0 {
		return fmt.Errorf("%s: no BPF object with relocations", strings.Join(args[1:], ", "))
	}
	return nil
}

// writeObjects writes the objects of a file that were not seen before, numbered by how many were.
func writeObjects(dir, path string, seen map[string]bool) error {
	found, err := embedded.ReadFile(path)
	if errors.Is(err, embedded.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range found {
		o, err := core.ParseObject(path, f.Data)
		if err != nil || o.Empty() != nil || o.Order() != binary.LittleEndian || seen[string(f.Data)] {
			continue
		}
		seen[string(f.Data)] = true
		name := filepath.Join(dir, fmt.Sprintf("%02d.o", len(seen)))
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// variants writes COUNT kernels in BTFHub's layout, derived from those of a tree in turn: three of four are links, every fourth is a
// copy with other sizes of structs and offsets of members.
func variants(args []string) error {
	if len(args) != 3 {
		return errors.New("want COUNT OUT KERNELS")
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var kernels []string
	err = filepath.WalkDir(args[2], func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".btf") {
			kernels = append(kernels, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(kernels) == 0 {
		return fmt.Errorf("%s: no .btf files", args[2])
	}
	for i := range count {
		kernel := kernels[i%len(kernels)]
		release := strings.TrimSuffix(filepath.Base(kernel), ".btf")
		dir := filepath.Join(args[1], "variants", strconv.Itoa(i/len(kernels)), filepath.Base(filepath.Dir(kernel)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%d.btf", release, i))
		if (i/len(kernels)+i)%4 != 3 {
			if err := os.Link(kernel, name); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(kernel)
		if err != nil {
			return err
		}
		if err := widen(data, i, 8); err != nil {
			return fmt.Errorf("%s: %w", kernel, err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// another writes a kernel OUT that is similar to IN and differs from all its variants.
func another(args []string) error {
	if len(args) != 2 {
		return errors.New("want IN OUT")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if err := widen(data, 0, 24); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], data, 0o644)
}

// widen adds bytes, as if for a new member, to one in four of the structs with at least 256 bytes, chosen by seed and the checksum of
// their names. The second half of their members moves.
func widen(data []byte, seed int, by uint32) error {
	h, err := btf.ReadHeader(data, int64(len(data)))
	if err != nil {
		return err
	}
	order, types, names := h.Order, data[h.Types.Off:][:h.Types.Len], data[h.Strings.Off:]
	for at := 0; at < len(types); {
		info := order.Uint32(types[at+4:])
		kind, vlen := btf.Kind(info>>24&0x7f), int(info&0xffffff)
		if int(kind) >= btf.NumKinds {
			return fmt.Errorf("kind %d", kind)
		}
		members := types[at+12:]
		name, _, _ := bytes.Cut(names[order.Uint32(types[at:]):], []byte{0})
		size := order.Uint32(types[at+8:])
		if kind == btf.KindStruct && size >= 256 && (checksum(name)+seed)%4 == 0 {
			order.PutUint32(types[at+8:], size+by)
			for i := vlen / 2; i < vlen; i++ {
				m := members[12*i+8:]
				order.PutUint32(m, order.Uint32(m)+8*by) // bits
			}
		}
		shape := kind.Shape()
		at += 12 + 4*len(shape.Extra) + 4*len(shape.Elem)*vlen
	}
	return nil
}

func checksum(name []byte) int {
	n := 0
	for _, c := range name {
		n = (31*n + int(c)) & 0xffff
	}
	return n
}

// large writes an artificial object with the given numbers of relocation records and questions.
func large(args []string) error {
	if len(args) != 3 {
		return errors.New("want RECORDS QUESTIONS OUT")
	}
	var c testinput.LargeConfig
	var err1, err2 error
	c.Records, err1 = strconv.Atoi(args[0])
	c.Questions, err2 = strconv.Atoi(args[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return os.WriteFile(args[2], testinput.Large(c), 0o644)
}
