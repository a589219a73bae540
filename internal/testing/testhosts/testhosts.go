// SPDX-License-Identifier: Apache-2.0

// Package testhosts reads testdata/btfa/hosts.txt: what hosts say of themselves, and what the look-up must find for them.
package testhosts

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Host is a host of the table.
type Host struct {
	Name, Source     string
	OSRelease        string // "" for no file
	Release, Machine string // what uname prints
	BigEndian        bool
	Key              kernel.Key
	Rule, Serves     string // Serves is a key as the archive spells it, "" for no match
	Neighbour        string // key whose BTF serves with one neighbour, if it is not Serves
	Also             []string
}

// Read reads the table.
func Read(tb testing.TB) (hosts []*Host) {
	tb.Helper()
	_, file, _, _ := runtime.Caller(0)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "..", "testdata", "btfa", "hosts.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	var h *Host
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		word, rest, _ := strings.Cut(scanner.Text(), " ")
		fields := strings.Fields(rest)
		switch {
		case word == "" || word[0] == '#':
		case word == "host":
			h = &Host{Name: rest}
			hosts = append(hosts, h)
		case word == "source":
			h.Source = rest
		case word == "os-release":
			h.OSRelease += rest + "\n"
		case word == "uname" && len(fields) == 2:
			h.Release, h.Machine = fields[0], fields[1]
		case word == "program" && len(fields) == 2:
			h.BigEndian = fields[0] == "big"
		case word == "key":
			if h.Key, err = kernel.ParseKey(rest); err != nil {
				tb.Fatal(err)
			}
		case word == "match":
			h.Rule, h.Serves, _ = strings.Cut(rest, " ")
		case word == "neighbour":
			h.Neighbour = rest
		case word == "also":
			h.Also = append(h.Also, rest)
		default:
			tb.Fatalf("hosts.txt: %q", scanner.Text())
		}
	}
	if len(hosts) < 60 {
		tb.Fatalf("%d hosts", len(hosts))
	}
	return hosts
}

// Options selects the host, for a reader on a machine of any byte order. Its os-release file is in a folder of the test.
func (h *Host) Options(tb testing.TB) kernel.HostOptions {
	tb.Helper()
	opts := kernel.HostOptions{Root: tb.TempDir(), Release: h.Release, Arch: h.Machine}
	if h.OSRelease != "" {
		opts.OSRelease = filepath.Join(opts.Root, "os-release")
		if err := os.WriteFile(opts.OSRelease, []byte(h.OSRelease), 0o666); err != nil {
			tb.Fatal(err)
		}
	}
	if little := binary.NativeEndian.Uint16([]byte{1, 0}) == 1; strings.HasPrefix(h.Machine, "mips") && little == h.BigEndian {
		opts.Arch += map[bool]string{true: "eb", false: "el"}[h.BigEndian] // uname says the same for both
	}
	return opts
}

// Kernels returns the keys of all kernels in the table's archive.
func Kernels(tb testing.TB, hosts []*Host) (keys []kernel.Key) {
	tb.Helper()
	seen := make(map[string]bool)
	for _, h := range hosts {
		for _, s := range append([]string{h.Serves, h.Neighbour}, h.Also...) {
			if s == "" || seen[s] {
				continue
			}
			seen[s] = true
			k, err := kernel.ParseKey(s)
			if err != nil {
				tb.Fatal(err)
			}
			keys = append(keys, k)
		}
	}
	return keys
}
