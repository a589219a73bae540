// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/store"
)

func corpusImportCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "make one file or a tree of a corpus that is fast to read again",
		ArgsUsage: "SOURCE...",
		Description: "SOURCE is a file or a tree. OUT is a SOURCE in turn, and adding to one that is there costs what is new.\n\n" +
			"A name that ends in .btfc is for a corpus in one file, which takes a tenth of a tree's bytes and less: types\n" +
			"that kernels share are in it once. Kernels whose BTF has changed are left out; to replace or remove kernels,\n" +
			"import the file into a new one with --exclude. A directory gets ID/VERSION_ID/ARCH/RELEASE.btf.zst for each kernel and\n" +
			"modules/ID/VERSION_ID/ARCH/RELEASE.modules.tar.zst for its modules; beside it, RELEASE.config.zst and RELEASE.kallsyms.zst have its\n" +
			"configuration and symbols where the source has them, as packages do; check asks them. A .btfc has these, too, and takes little\n" +
			"for neighbouring builds.\n\n" +
			"Kernels that have DWARF and no BTF, such as a vmlinux or a package with debug information, are taken as well\n" +
			"where pahole is installed, which takes some ten seconds for each. What is unpacked lies beside OUT meanwhile, in files\nwithout a name.",
		Flags: corpusCommandFlags(
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write into the directory or .btfc file `OUT` (required)", TakesFile: true},
			jsonFlag("the summary and findings"),
		),
		Action: runCorpusImport,
	}
}

func runCorpusImport(c *cli.Context) error {
	dir := c.String("output")
	if dir == "" || dir == "-" {
		return usagef("import needs -o OUT: a directory, or a name that ends in .btfc")
	}
	opts, err := corpusOptions(c)
	if err != nil {
		return err
	}
	opts.Extras = true
	if err := distinctDirs(dir, c.Args().Slice()); err != nil {
		return err
	}
	packed := filepath.Ext(dir) == packedSuffix
	if packed { // which has to be as it was when it is replaced
		unlock, err := hold(c, dir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	opts.DWARF = corpus.NewEncoder(existingFolder(dir), c.Int("jobs"))
	defer opts.DWARF.Close()
	if packed { // which reads some kernels twice
		if err := opts.DWARF.Keep(); err != nil {
			return err
		}
		done, err := store.Earlier(opts.DWARF, dir)
		if err != nil {
			return err
		}
		defer done()
	}
	corp, err := openSources(c, opts, false)
	if err != nil {
		return err
	}
	cfg, stop := sweepOf(c, corp)
	if packed {
		limitMemory(packMemory * cfg.Jobs)
		res, err := store.Pack(c.Context, cfg, dir)
		stop()
		if err != nil {
			if res != nil { // with why there was nothing to put into the file
				tellLeftOut(c, res.Skipped)
			}
			return err
		}
		return reportPacked(c, dir, res)
	}
	res, err := store.Import(c.Context, cfg, dir)
	stop()
	if err != nil {
		return err
	}
	return reportStored(c, dir, res)
}

// existingFolder returns the folder of an output, or what there is of the way to it.
func existingFolder(path string) string {
	for {
		dir := filepath.Dir(path)
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() || dir == path {
			return dir
		}
		path = dir
	}
}

// sayMade says of how many kernels the BTF was made of DWARF.
func sayMade(c *cli.Context, path string, made store.Made) {
	for _, maker := range slices.Sorted(maps.Keys(made)) {
		say(c, "%s: BTF of %s made of DWARF by %s", path, logtext.Plural(made[maker], "kernel"), maker)
	}
}

// sayExtras says of how many kernels what is known besides their BTF.
func sayExtras(c *cli.Context, path string, config, symbols int) {
	if config+symbols > 0 {
		say(c, "%s: configuration of %s, symbols of %d", path, logtext.Plural(config, "kernel"), symbols)
	}
}

// packMemory is how many times perWorker a worker needs that packs a kernel: 160 MB, with most of which it looks up what is known already.
const packMemory = 4

// packedSuffix is what the name of a corpus in one file ends in.
const packedSuffix = ".btfc"

// packedJSON is what --json writes of a corpus in one file.
type packedJSON struct {
	Output      string `json:"output"`
	Kernels     int    `json:"kernels"`
	WithModules int    `json:"with_modules"`
	WithConfig  int    `json:"with_config"`
	WithSymbols int    `json:"with_symbols"`
	Lacking     int    `json:"kept_without_config_or_symbols,omitempty"` // kernels whose source has them
	Added       int    `json:"kernels_added"`
	Kept        int    `json:"kernels_kept"`
	Bytes       int64  `json:"bytes_added"`
	FileKernels int    `json:"file_kernels"`
	FileBytes   int64  `json:"file_bytes"`

	Made store.Made `json:"made_of_dwarf,omitempty"` // kernels, by what made their BTF
	allFindings
}

// reportPacked says what went into a corpus in one file.
func reportPacked(c *cli.Context, path string, res *store.Packed) error {
	tellLeftOut(c, res.Skipped)
	say(c, "%s: %s, %d with modules: %d added (%s), %d there already, %d left out; now %s in %s", path,
		logtext.Plural(res.Added+res.Kept, "kernel"), res.WithModules, res.Added, logtext.Bytes(res.Bytes), res.Kept, len(res.Skipped),
		logtext.Plural(res.Kernels, "kernel"), logtext.Bytes(res.Size))
	sayExtras(c, path, res.WithConfig, res.WithSymbols)
	if res.Lacking > 0 {
		say(c, "%s: %s there already without the configuration or symbols that the source has; --exclude replaces kernels, see --help", path, logtext.Plural(res.Lacking, "kernel"))
	}
	sayMade(c, path, res.Made)
	return document(c, packedJSON{path, res.Added + res.Kept, res.WithModules, res.WithConfig, res.WithSymbols, res.Lacking, res.Added, res.Kept, res.Bytes, res.Kernels, res.Size, res.Made, findingsOf(c)})
}

// storedJSON is what --json writes.
type storedJSON struct {
	Output      string `json:"output"`
	Kernels     int    `json:"kernels"`
	WithModules int    `json:"with_modules"`
	Written     int    `json:"files_written"`
	Bytes       int64  `json:"bytes_written"`
	Kept        int    `json:"files_kept"`
	WithConfig  int    `json:"with_config"`
	WithSymbols int    `json:"with_symbols"`

	Made store.Made `json:"made_of_dwarf,omitempty"` // kernels, by what made their BTF
	allFindings
}

// reportStored says what went into a directory.
func reportStored(c *cli.Context, dir string, res *store.Result) error {
	tellLeftOut(c, res.Skipped)
	say(c, "%s: %s, %d with modules: %s written (%s), %d there already, %d left out", dir,
		logtext.Plural(res.Kernels, "kernel"), res.WithModules, logtext.Plural(res.Written, "file"), logtext.Bytes(res.Bytes), res.Kept, len(res.Skipped))
	sayExtras(c, dir, res.WithConfig, res.WithSymbols)
	sayMade(c, dir, res.Made)
	if res.Kernels == 0 {
		return fmt.Errorf("%s: no kernel could be written", dir)
	}
	return document(c, storedJSON{dir, res.Kernels, res.WithModules, res.Written, res.Bytes, res.Kept, res.WithConfig, res.WithSymbols, res.Made, findingsOf(c)})
}
