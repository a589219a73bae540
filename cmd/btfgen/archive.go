package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/archiver"
	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func archiveCommand() *cli.Command {
	return &cli.Command{
		Name:  "archive",
		Usage: "look into archives, and make others of them",
		Subcommands: []*cli.Command{
			archiveListCommand(),
			archiveLookupCommand(),
			archiveExtractCommand(),
			archiveMergeCommand(),
			archiveConvertCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("archive has no command %q", c.Args().First())
			}
			return usagef("archive needs a command: list, lookup, extract, merge or convert")
		},
	}
}

// archiveSuffix ends the names of native archives.
const archiveSuffix = ".btfa"

// tool is what archives say that they were written by.
func tool() string { return "btfgen " + version() }

// output is where and in which form a set of kernels is to be written.
type output struct {
	path   string
	native bool          // .btfa
	format bundle.Format // else
	bcc    bool
}

func layoutFlag() cli.Flag {
	return &cli.StringFlag{Name: "layout", Usage: "names in a directory or tar: `KIND` btfhub, or bcc (a .tar.gz for bcc's tools to embed)", Value: "btfhub"}
}

// parseOutput reads -o and --layout.
func parseOutput(c *cli.Context) (o output, err error) {
	o.path = c.String("output")
	if o.path == "" {
		return o, usagef("%s needs -o OUT", c.Command.Name)
	}
	if o.path == "-" {
		return o, usagef("-o -: the name of the output says what it is, so it cannot be standard output")
	}
	if o.native = strings.HasSuffix(o.path, archiveSuffix); !o.native {
		if o.format, err = bundle.FormatOf(o.path); err != nil {
			return o, usageError{err}
		}
	}
	switch l := c.String("layout"); l {
	case "btfhub":
	case "bcc":
		if o.bcc = true; o.native || o.format != bundle.TarGz {
			return o, usagef("--layout bcc: bcc's tools read .tar.gz only")
		}
	default:
		return o, usagef("--layout %q: want btfhub or bcc", l)
	}
	return o, nil
}

// write writes the kernels in any order. info goes into native archives only.
func (o *output) write(info archive.Info, kernels []archive.Kernel) error {
	if o.native {
		var b bytes.Buffer
		if err := archiver.Write(&b, info, kernels); err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
		return bundle.WriteFile(o.path, func(f *os.File) error {
			_, err := f.Write(b.Bytes())
			return err
		})
	}
	files := make([]bundle.File, len(kernels))
	for i, k := range kernels {
		files[i] = bundle.File{Name: k.Key.FileName(), Data: k.BTF}
		if o.bcc {
			files[i].Name = bccName(k.Key)
		}
	}
	if o.bcc {
		return bundle.WriteBCC(o.path, files)
	}
	return bundle.Write(o.path, o.format, files)
}

// bccMachines are the machines that uname spells differently from BTFHub. bcc's
// tools look for uname's.
var bccMachines = map[string]string{"arm64": "aarch64", "arm": "armv7l", "i386": "i686"}

// bccName returns the name, without ./, that bcc's tools look for on a host.
func bccName(k kernel.Key) string {
	if !k.Known() {
		return k.FileName()
	}
	k = k.Canonical()
	if m, ok := bccMachines[k.Arch]; ok {
		k.Arch = m
	}
	// Without a version its level is empty, as the tools have it.
	return strings.Join([]string{k.ID, k.VersionID, k.Arch, k.Release + kernel.FileSuffix}, "/")
}

// readKernels reads an archive of whatever form. The info of those that have
// none is zero.
func readKernels(name string) (archive.Info, []archive.Kernel, error) {
	native, err := isNative(name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	if native {
		a, err := archive.OpenFile(name)
		if err != nil {
			return archive.Info{}, nil, err
		}
		kernels, err := a.Kernels()
		if err != nil {
			return archive.Info{}, nil, fmt.Errorf("%s: %w", name, err)
		}
		return a.Info(), kernels, nil
	}
	files, err := bundle.Read(name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	var kernels []archive.Kernel
	for _, f := range files {
		if path.Ext(f.Name) != kernel.FileSuffix {
			continue
		}
		k, err := kernel.ParseFileName(f.Name)
		if err != nil {
			return archive.Info{}, nil, fmt.Errorf("%s: %w", name, err)
		}
		kernels = append(kernels, archive.Kernel{Key: k, BTF: f.Data})
	}
	if len(kernels) == 0 {
		return archive.Info{}, nil, fmt.Errorf("%s: holds no %s file", name, kernel.FileSuffix)
	}
	return archive.Info{}, kernels, nil
}

// isNative reports whether a file is a .btfa, by its content.
func isNative(name string) (bool, error) {
	fi, err := os.Stat(name)
	if err != nil || fi.IsDir() {
		return false, err
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return archive.Is(head), nil
}
