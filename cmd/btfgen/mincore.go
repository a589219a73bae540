// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/job/generate"
)

func minCoreBTFCommand() *cli.Command {
	return &cli.Command{
		Name:      "min_core_btf",
		Usage:     "minimize the BTF of one kernel, like 'bpftool gen min_core_btf'",
		ArgsUsage: "INPUT OUTPUT OBJECT...",
		Description: "INPUT is raw BTF or any ELF file with a .BTF section, also compressed. OUTPUT - is standard output.\n" +
			"Relocations that nothing resolves are told but are no failure, as with bpftool; of objects without\n" +
			"relocations comes BTF without types. OBJECT is as for generate.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base-btf", Aliases: []string{"B"}, Usage: "INPUT is split BTF on top of `FILE`"},
			paddingFlag(),
			keepFlag(),
			jsonFlag("sizes, hash and findings"),
		},
		Action: minCoreBTF,
	}
}

func minCoreBTF(c *cli.Context) error {
	if c.NArg() < 3 && (c.NArg() < 2 || !c.IsSet("keep")) {
		return usagef("min_core_btf needs INPUT, OUTPUT and at least one OBJECT")
	}
	if err := oneOutput(c, "OUTPUT", c.Args().Get(1)); err != nil {
		return err
	}
	opts, err := minimizeOptions(c)
	if err != nil {
		return err
	}
	input, output := c.Args().Get(0), c.Args().Get(1)
	objs, err := objectsOrNone(c, c.Args().Slice()[2:], opts.Keep, readTaken)
	if err != nil {
		return err
	}
	sources := []string{input}
	if base := c.String("base-btf"); base != "" {
		sources = []string{base, input}
	}
	if err := inputsOf(append(sources, objs.paths...)...).refuse(output); err != nil {
		return err
	}
	rep, err := generate.One(c.Context, sources, objs.list, opts)
	if err != nil {
		return err
	}
	for _, e := range rep.Skipped {
		note(c, finding{Class: skipped, Object: e.Path, Message: "is not for the machine of " + input})
	}
	if err := writeOut(c, output, rep.Kernels[0].BTF); err != nil {
		return err
	}
	for _, u := range rep.Unresolved {
		tellOf(c, finding{Class: class(u.Result.String()), Message: u.Relo, Object: u.Object})
	}
	tellKept(c, rep)
	k := &rep.Kernels[0]
	return document(c, minimizedJSON{
		output, k.RawSize, len(k.BTF), fmt.Sprintf("%x", sha256.Sum256(k.BTF)), append([]generate.Unresolved{}, rep.Unresolved...), findingsOf(c),
	})
}

type minimizedJSON struct {
	Output     string                `json:"output"`
	In         int64                 `json:"bytes_in"` // BTF of the kernel
	Out        int                   `json:"bytes_out"`
	SHA256     string                `json:"sha256"` // of the output
	Unresolved []generate.Unresolved `json:"unresolved"`
	allFindings
}

// readTaken is readObjects for those that bpftool takes, some of which have no relocations.
func readTaken(c *cli.Context, args []string) (o *objects, err error) {
	parse := func(name string, data []byte) (*core.Object, error) {
		obj, err := core.ParseObject(name, data)
		if err == nil && obj.Empty() != "" && obj.Empty() != core.NoRelocations {
			err = fmt.Errorf("%s: %s", name, obj.Empty())
		}
		return obj, err
	}
	o = new(objects)
	o.paths, err = eachObject(c, args, parse, func(obj *core.Object, _ []byte) {
		o.list = append(o.list, obj)
	})
	if err == nil && len(o.list) == 0 {
		err = errors.New("no object that relocations could be in")
	}
	return o, err
}
