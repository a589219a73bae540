// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command benchhelper does the parts of scripts/bench.sh that are hard in a shell:
//
//	benchhelper measure [-each FILE] [-jobs N] COMMAND ARG...
//	benchhelper objects OUT SOURCE...
//	benchhelper variants COUNT OUT KERNELS
//	benchhelper another IN OUT
//	benchhelper large RECORDS QUESTIONS OUT
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

func main() {
	commands := map[string]func(args []string) error{
		"measure":  measure,
		"objects":  objects,
		"variants": variants,
		"another":  another,
		"large":    large,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "benchhelper: want measure, objects, variants, another or large; scripts/bench.sh calls this")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "benchhelper %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// usage is the cost of all runs.
type usage struct {
	User   float64 `json:"user"`   // seconds
	Sys    float64 `json:"sys"`    // seconds
	CPU    float64 `json:"cpu"`    // seconds, of both
	Wall   float64 `json:"wall"`   // seconds, from the first start to the last end
	MaxRSS int64   `json:"maxrss"` // bytes, of the largest process
	Runs   int     `json:"runs"`
	Failed []int   `json:"failed"` // which runs, from 1, ended with neither 0 nor 3
}

// measure runs a command without output and prints its usage as JSON. With -each it runs it for each line of a file, with {} in
// the arguments replaced by the line, -jobs at a time.
func measure(args []string) error {
	fs := flag.NewFlagSet("measure", flag.ContinueOnError)
	each := fs.String("each", "", "")
	jobs := fs.Int("jobs", 1, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	lines := []string{""}
	if *each != "" {
		data, err := os.ReadFile(*each)
		if err != nil {
			return err
		}
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	u := usage{Runs: len(lines), Failed: []int{}}
	start := time.Now()
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(max(1, *jobs))
	for i, line := range lines {
		g.Go(func() error {
			state, err := run(fs.Args(), line)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				u.add(i+1, state)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	u.Wall = time.Since(start).Seconds()
	slices.Sort(u.Failed)
	return json.NewEncoder(os.Stdout).Encode(u)
}

func run(args []string, line string) (*os.ProcessState, error) {
	if len(args) == 0 {
		return nil, errors.New("no command")
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{}", line)
	}
	cmd := exec.Command(args[0], args[1:]...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return cmd.ProcessState, nil
}

func (u *usage) add(run int, s *os.ProcessState) {
	u.User += s.UserTime().Seconds()
	u.Sys += s.SystemTime().Seconds()
	u.CPU = u.User + u.Sys
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = max(u.MaxRSS, int64(r.Maxrss)<<10) // Linux counts in KiB
	}
	if c := s.ExitCode(); c != 0 && c != 3 {
		u.Failed = append(u.Failed, run)
	}
}

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
				name := filepath.Join(args[0], fmt.Sprintf("%02d.o", len(seen)))
				if err := os.WriteFile(name, f.Data, 0o644); err != nil {
					return err
				}
			}
			return nil
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
