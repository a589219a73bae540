// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
)

// variants writes COUNT kernels that take turns in repeating those of a tree,
// in BTFHub's layout: three quarters are links to a kernel, every fourth is a
// copy in which structs have another size and their members other offsets.
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

// trailer has the bytes that follow a type's record of 12, at all and for each
// of its vlen parts, by kind: INT to ENUM64.
var trailer = [20]struct{ all, each int }{
	1: {all: 4}, 3: {all: 12}, 4: {each: 12}, 5: {each: 12}, 6: {each: 8}, 13: {each: 8},
	14: {all: 4}, 15: {each: 12}, 17: {all: 4}, 19: {each: 12},
}

// another writes a kernel OUT that is like IN and like no variant of it.
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

// widen puts some bytes more, as if for a new member, into every structure of
// 256 bytes and more whose name has a checksum that the seed picks: one in
// four. The members of its second half move.
func widen(data []byte, seed int, by uint32) error {
	h, err := btf.ReadHeader(data, int64(len(data)))
	if err != nil {
		return err
	}
	order, types, names := h.Order, data[h.Types.Off:][:h.Types.Len], data[h.Strings.Off:]
	for at := 0; at < len(types); {
		info := order.Uint32(types[at+4:])
		kind, vlen := info>>24&0x7f, int(info&0xffffff)
		if int(kind) >= len(trailer) {
			return fmt.Errorf("kind %d", kind)
		}
		members := types[at+12:]
		name, _, _ := bytes.Cut(names[order.Uint32(types[at:]):], []byte{0})
		size := order.Uint32(types[at+8:])
		if kind == 4 && size >= 256 && (checksum(name)+seed)%4 == 0 {
			order.PutUint32(types[at+8:], size+by)
			for i := vlen / 2; i < vlen; i++ {
				m := members[12*i+8:]
				order.PutUint32(m, order.Uint32(m)+8*by) // bits
			}
		}
		at += 12 + trailer[kind].all + trailer[kind].each*vlen
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
