// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/relo"
)

// coverage is the last line of verify --covers --json.
type coverage struct {
	Objects int `json:"objects"`
	Covered int `json:"covered"`
}

// runCovers checks that an archive was made for the relocations of objects.
func runCovers(c *cli.Context, objs *objects[*core.Object]) error {
	name := c.Args().First()
	info, err := bundle.ReadInfo(c.Context, name)
	if err != nil {
		return err
	}
	// There may be thousands of kernels. They are read to say what an object lacks.
	kernels := sync.OnceValues(func() ([]archive.Kernel, error) {
		_, all, err := bundle.ReadKernels(c.Context, name)
		return all, err
	})
	if len(info.Objects) == 0 {
		if _, err := kernels(); err != nil {
			return err
		}
		return fmt.Errorf("%s: does not list the objects that it was made for", name)
	}
	sum := coverage{Objects: len(objs.list)}
	for i, o := range objs.list {
		err := info.Covers(archive.NewObject(o.Name(), objs.data[i], o.Machines()...))
		if err == nil {
			sum.Covered++
			continue
		}
		reportFinding(c, finding{Class: unmatched, Message: err.Error(), Object: o.Name()})
		all, err := kernels()
		if err == nil {
			err = reportMissing(c, o, all)
		}
		if err != nil {
			return err
		}
	}
	if err := findingLines(c); err != nil {
		return err
	}
	if c.Bool("json") {
		return escape.JSON(c.App.Writer).Encode(sum)
	}
	infof(c, "%s: covers %d of %s", name, sum.Covered, words.Plural(sum.Objects, "object"))
	return nil
}

// reportMissing reports the relocations of an object that resolve on no kernel of an archive.
func reportMissing(c *cli.Context, o *core.Object, kernels []archive.Kernel) error {
	var order []string
	resolves := make(map[string]bool)
	seen := make(map[*byte]bool) // kernels with one BTF share its memory
	for _, k := range kernels {
		if len(k.BTF) == 0 || seen[&k.BTF[0]] {
			continue
		}
		seen[&k.BTF[0]] = true
		var target core.Kernel
		if err := target.Load(c.Context, k.Key.String(), k.BTF); err != nil {
			return err
		}
		target.SetMachine(k.Key.Arch)
		if !o.IsFor(&target) {
			continue
		}
		log, err := core.Run(c.Context, o, &target)
		if err != nil {
			return err
		}
		for i := range log.Entries {
			e := &log.Entries[i]
			r := e.Relocation()
			if _, ok := resolves[r]; !ok {
				order = append(order, r)
			}
			resolves[r] = resolves[r] || e.Result == relo.Resolved
		}
	}
	for _, r := range order {
		if !resolves[r] {
			reportFinding(c, finding{Class: unmatched, Message: r + " resolves on no kernel of the archive", Object: o.Name()})
		}
	}
	return nil
}

// reportOthers prints which objects an archive was not made for, if it lists its objects.
func reportOthers(c *cli.Context, info *archive.Info, objs *objects[*core.Object]) {
	for i, o := range objs.list {
		if len(info.Objects) == 0 {
			return
		}
		if err := info.Covers(archive.NewObject(o.Name(), objs.data[i], o.Machines()...)); err != nil {
			infof(c, "btfgen: %v", err)
		}
	}
}
