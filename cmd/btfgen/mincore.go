package main

import (
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/pkg/relolog"
)

func minCoreBTFCommand() *cli.Command {
	return &cli.Command{
		Name:      "min_core_btf",
		Usage:     "minimize the BTF of one kernel, like 'bpftool gen min_core_btf'",
		ArgsUsage: "INPUT OUTPUT OBJECT...",
		Description: "INPUT is raw BTF or an ELF file with a .BTF section, also compressed. OUTPUT - is standard output.\n" +
			"Relocations that nothing resolves are reported but are no failure, as with bpftool. The exit status is 3\n" +
			"where bpftool would fail: an ambiguous relocation, or an object that cannot be used.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base-btf", Aliases: []string{"B"}, Usage: "INPUT is split BTF on top of `FILE`"},
			paddingFlag(),
		},
		Action: minCoreBTF,
	}
}

func minCoreBTF(c *cli.Context) error {
	if c.NArg() < 3 {
		return usagef("min_core_btf needs INPUT, OUTPUT and at least one OBJECT")
	}
	opts, err := minimizeOptions(c)
	if err != nil {
		return err
	}
	input, output := c.Args().Get(0), c.Args().Get(1)
	stderr := c.App.ErrWriter
	objs, err := readObjects(c.Context, c.Args().Slice()[2:], stderr)
	if err != nil {
		return err
	}
	sources := []string{input}
	if base := c.String("base-btf"); base != "" {
		sources = []string{base, input}
	}
	if err := inputsOf(append(sources, c.Args().Slice()[2:]...)...).refuse(output); err != nil {
		return err
	}
	rep, err := generate.One(c.Context, sources, objs.list, opts)
	if err != nil {
		return err
	}
	if err := writeOut(c, output, rep.Kernels[0].BTF); err != nil {
		return err
	}
	failed := false
	for _, u := range rep.Unresolved {
		foreign.Fprintf(stderr, "btfgen: %s: %s in %s\n", u.Result, u.Relo, u.Object)
		failed = failed || u.Result != relolog.Poisoned
	}
	if failed || objs.bad > 0 {
		return errFindings
	}
	return nil
}
