// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"slices"

	"github.com/urfave/cli/v2"
)

// allCommands returns the table of all commands.
func allCommands() []*cli.Command {
	jobs := countFlag("jobs", "run `N` workers", runtime.GOMAXPROCS(0))
	jobs.Aliases, jobs.DefaultText = []string{"j"}, "number of CPUs"
	padding := choiceFlag("padding", "padding for dropped members: `KIND` is implicit, or explicit for C dumps", "implicit", "explicit")
	keep := &cli.StringSliceFlag{Name: "keep", Usage: "keep types for user space, also without an OBJECT: `PATTERN` is enum:NAME, struct:NAME[.MEMBER], union:, typedef:, func: or var:"}
	catalogue := &cli.StringFlag{Name: "catalogue", Usage: "read more repositories from `FILE`; its entries take precedence"}
	mirror := &cli.StringSliceFlag{Name: "mirror", Usage: "replace the beginning of addresses in the catalogue: `URL=URL`"}
	format := choiceFlag("format", "print `FORMAT`: text, markdown, json, junit, sarif, html, min-kernel, suggest, table or badge",
		"text", "markdown", "json", "junit", "sarif", "html", "min-kernel", "suggest", "table", "badge")
	format.Aliases = []string{"f"}
	selecting := []cli.Flag{ // read by selection
		&cli.StringSliceFlag{Name: "select", Usage: "use only kernels that match `SELECTOR`, such as 'debian>=11,x86_64'"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "skip kernels that match `SELECTOR`"},
	}
	reading := slices.Concat(selecting, []cli.Flag{ // by openSources
		&cli.StringSliceFlag{Name: "as", Usage: "set the key of kernels: `[PATTERN=]KEY`, as in '*.btf=debian/12/{arch}/{release}'"},
	})
	kernels := slices.Concat([]cli.Flag{ // by openCorpus
		&cli.StringSliceFlag{Name: "btf", Usage: "read kernels from `SOURCE`, a file or tree (default: the running kernel)"},
	}, reading)
	writing := []cli.Flag{ // by parseOutput
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
		choiceFlag("layout", "names of files in a directory or tar: `KIND` is btfhub or bcc", "btfhub", "bcc"),
	}
	return []*cli.Command{
		{
			Name:      "generate",
			Usage:     "minimize the BTF of all kernels in a corpus",
			ArgsUsage: "OBJECT...",
			Flags: slices.Concat(kernels, writing, []cli.Flag{
				&cli.StringFlag{Name: "manifest", Usage: "write hashes, sizes and counts of all kernels to `FILE`"},
				&cli.StringFlag{Name: "reuse", Usage: "take unchanged kernels from the archive `OLD.btfa`"},
				&cli.StringFlag{Name: "reuse-manifest", Usage: "read the manifest of OLD.btfa from `FILE` (default: OLD.json)"},
				&cli.StringFlag{Name: "shard", Usage: "process part `I/N` of the corpus, or the batch system's part with auto"},
				jobs,
				padding,
				keep,
				jsonFlag("the summary and findings"),
				verboseFlag("list kernels of poisoned relocations, what is skipped, and times"),
			}),
			Action: runGenerate,
		},
		{
			Name:      "min_core_btf",
			Usage:     "minimize the BTF of one kernel, like 'bpftool gen min_core_btf'",
			ArgsUsage: "INPUT OUTPUT OBJECT...",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "base-btf", Aliases: []string{"B"}, Usage: "read INPUT as split BTF with the base `FILE`"},
				padding,
				keep,
				jsonFlag("sizes, hash and findings"),
			},
			Action: minCoreBTF,
		},
		{
			Name:      "relolog",
			Usage:     "show how relocations are resolved, and why",
			ArgsUsage: "OBJECT...",
			Flags: slices.Concat(kernels, []cli.Flag{
				jsonFlag("relocations and other findings, one per line,"),
				verboseFlag("show source lines, candidates and reasons"),
				&cli.StringSliceFlag{Name: "program", Usage: "show only functions or sections that match `PATTERN`"},
				&cli.StringSliceFlag{Name: "result", Usage: "show only `RESULT`: resolved, absent, poisoned, ambiguous or error"},
				&cli.StringSliceFlag{Name: "type", Usage: "show only local types that match `PATTERN`"},
				jobs,
			}),
			Action: runRelolog,
		},
		{
			Name:      "verify",
			Usage:     "prove that loaders decide the same on minimized BTF",
			ArgsUsage: "ARCHIVE OBJECT...",
			Flags: slices.Concat(kernels, []cli.Flag{
				jsonFlag("findings, one per line, and a summary"),
				choiceFlag("loader", "compare only the decisions of `LOADER`: libbpf, ebpf-go or aya", "all", "libbpf", "ebpf-go", "aya"),
				verboseFlag("list all differences and disagreements"),
				&cli.BoolFlag{Name: "covers", Usage: "only check that ARCHIVE was made for the relocations of OBJECT; needs no kernels"},
				jobs,
			}),
			Action: runVerify,
		},
		{
			Name:      "check",
			Usage:     "report which kernels objects work on, and why not on others",
			ArgsUsage: "OBJECT...",
			Flags: slices.Concat(kernels, []cli.Flag{
				&cli.StringSliceFlag{Name: "boot", Usage: "boot `PACKAGE` under qemu, load the objects, and compare: a .deb, .rpm or vmlinuz, or ID/VERSION_ID[/ARCH[/RELEASE]] to download"},
				&cli.StringFlag{Name: "command", Usage: "run `COMMAND` in booted kernels instead of loading; arguments are files for it"},
				countFlag("timeout", "stop a booted kernel after `SECONDS`", 600),
				&cli.StringFlag{Name: "btfgen", Usage: "boot with `FILE`, a static btfgen for the machine (default: this one)"},
				catalogue,
				mirror,
				format,
				&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
				&cli.BoolFlag{Name: "min-kernel", Usage: "print from which Linux release each object works"},
				&cli.BoolFlag{Name: "suggest", Usage: "print options with which objects work on more kernels, as YAML"},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`", Value: "-"},
				&cli.StringFlag{Name: "source-root", Usage: "in SARIF, make names of sources relative to `DIR`"},
				&cli.StringSliceFlag{Name: "require", Usage: "count failures only on kernels that match `SELECTOR`"},
				&cli.StringFlag{Name: "baseline", Usage: "count only what is worse than in `FILE`, an earlier --json report"},
				&cli.BoolFlag{Name: "diff", Usage: "compare two kernels, selected by the first two arguments"},
				&cli.StringSliceFlag{Name: "target", Usage: "override the attach target of a program: `PROGRAM=NAME`"},
				&cli.StringSliceFlag{Name: "types", Usage: "add the types in `FILE`, BTF or ELF, to each kernel's, as the loader does"},
				&cli.StringSliceFlag{Name: "rodata-var", Usage: "the loader may set read-only variables that match `PATTERN`"},
				&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show guards, notes and all kernel ranges"},
				jobs,
			}, policyFlags()),
			Action: runCheck,
		},
		{
			Name:  "archive",
			Usage: "inspect, compare, extract, merge and convert archives",
			Subcommands: []*cli.Command{
				{
					Name:      "list",
					Usage:     "list the kernels of an archive",
					ArgsUsage: "ARCHIVE",
					Flags:     []cli.Flag{jsonFlag("the list")},
					Action:    runArchiveList,
				},
				{
					Name:      "diff",
					Usage:     "compare two archives or manifests",
					ArgsUsage: "OLD NEW",
					Flags: []cli.Flag{
						choiceFlag("format", "print `FORMAT`: text, or markdown for release notes", "text", "markdown"),
						jsonFlag("the report"),
					},
					Action: runArchiveDiff,
				},
				{
					Name:      "lookup",
					Usage:     "find the BTF for a host, as a tracer would",
					ArgsUsage: "ARCHIVE",
					Flags: []cli.Flag{
						&cli.StringFlag{Name: "os-release", Usage: "read distribution and version from `FILE`"},
						&cli.StringFlag{Name: "release", Usage: "kernel `RELEASE`, as printed by uname -r"},
						&cli.StringFlag{Name: "arch", Usage: "machine `ARCH`, as printed by uname -m"},
						&cli.StringFlag{Name: "root", Usage: "use `DIR` as the root directory of the host"},
						&cli.BoolFlag{Name: "neighbour", Usage: "fall back to the common BTF of neighbouring builds"},
						countFlag("builds", "require `N` builds before the kernel for --neighbour", 3),
						&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the BTF to `FILE`"},
						jsonFlag("the result"),
					},
					Action: runArchiveLookup,
				},
				{
					Name:      "extract",
					Usage:     "write the BTFs of an archive as files",
					ArgsUsage: "ARCHIVE [KEY...]",
					Flags: slices.Concat(selecting, []cli.Flag{
						&cli.BoolFlag{Name: "all", Usage: "extract all kernels"},
						&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write into the directory `DIR` (required)"},
						jsonFlag("the summary and findings"),
					}),
					Action: runArchiveExtract,
				},
				{
					Name:      "merge",
					Usage:     "merge archives",
					ArgsUsage: "ARCHIVE...",
					Flags: slices.Concat(writing, []cli.Flag{
						jsonFlag("the summary and findings"),
						&cli.BoolFlag{Name: "mixed", Usage: "allow different relocations for one machine"},
					}),
					Action: runArchiveMerge,
				},
				{
					Name:      "convert",
					Usage:     "convert an archive to another format",
					ArgsUsage: "ARCHIVE",
					Flags: slices.Concat(writing, []cli.Flag{
						jsonFlag("the summary and findings"),
					}),
					Action: runArchiveConvert,
				},
			},
		},
		{
			Name:  "corpus",
			Usage: "inspect, check, import and extract kernel BTFs",
			Subcommands: []*cli.Command{
				{
					Name:      "list",
					Usage:     "list the kernels of a corpus",
					ArgsUsage: "[SOURCE...]",
					Flags: slices.Concat([]cli.Flag{
						&cli.BoolFlag{Name: "long", Aliases: []string{"l"}, Usage: "read the kernels and show sizes, types, byte order, modules etc."},
						jsonFlag("kernels, then findings, one per line,"),
						jobs,
					}, reading),
					Action: runCorpusList,
				},
				{
					Name:      "lint",
					Usage:     "find problems in a corpus",
					ArgsUsage: "[SOURCE...]",
					Flags: slices.Concat([]cli.Flag{
						&cli.StringFlag{Name: "earlier", Usage: "report kernels that are missing since `FILE`, from 'corpus list --long --json'"},
						verboseFlag("list all kernels and their paths"),
						jsonFlag("the findings"),
						jobs,
					}, reading),
					Action: runCorpusLint,
				},
				{
					Name:      "fetch",
					Usage:     "download the kernels of distributions that a file lacks",
					ArgsUsage: "[SERIES...]",
					Flags: slices.Concat(selecting, []cli.Flag{
						&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "add kernels to `OUT`, a .btfc file"},
						&cli.StringFlag{Name: "packages", Usage: "keep the packages in `DIR` instead, and read no kernels"},
						&cli.BoolFlag{Name: "dry-run", Usage: "print what would be downloaded"},
						catalogue,
						mirror,
						&cli.GenericFlag{Name: "newest", Usage: "fetch only the newest `N` kernels of each series", Value: &word{"", nil}},
						&cli.StringFlag{Name: "limit", Usage: "download at most `SIZE` in this run, such as 2G"},
						&cli.BoolFlag{Name: "retry", Usage: "retry packages that had no usable kernel"},
						&cli.StringSliceFlag{Name: "prune", Usage: "remove kernels that match `SELECTOR` and that repositories no longer have"},
						jsonFlag("the summary and findings"),
						jobs,
					}),
					Action: runCorpusFetch,
				},
				{
					Name:      "import",
					Usage:     "import kernels into a file or tree that is fast to read",
					ArgsUsage: "[SOURCE...]",
					Flags: slices.Concat([]cli.Flag{
						&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT`, a directory or .btfc file (required)"},
						jsonFlag("the summary and findings"),
						jobs,
					}, reading),
					Action: runCorpusImport,
				},
				{
					Name:      "extract",
					Usage:     "write kernel BTFs as raw files",
					ArgsUsage: "[SOURCE...]",
					Flags: slices.Concat([]cli.Flag{
						&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
						&cli.BoolFlag{Name: "modules", Usage: "also write modules, as RELEASE/MODULE.btf"},
						jsonFlag("the summary and findings"),
						jobs,
					}, reading),
					Action: runCorpusExtract,
				},
			},
		},
		{
			Name:   "init",
			Usage:  "set up btfgen in a project",
			Action: runInit,
		},
		{
			Name:      "explain",
			Usage:     "explain a code or class of findings, or list all",
			ArgsUsage: "[CODE...]",
			Action:    runExplain,
		},
		{
			Name:      "completion",
			Usage:     "print a script for shell completion",
			ArgsUsage: "SHELL",
			Action:    runCompletion,
		},
		{
			Name:      "man",
			Usage:     "print a manual page, or write them all",
			ArgsUsage: "[COMMAND]",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write all pages into the directory `DIR`"},
			},
			Action: runMan,
		},
	}
}

// policyFlags are the options of check about how a whole object is loaded.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		choiceFlag("loader", "judge for `LOADER`: libbpf, ebpf-go, or the worse of both", "both", "libbpf", "ebpf-go"),
		&cli.StringSliceFlag{Name: "optional", Usage: "objects work without programs that match `[OBJECT:]PROGRAM`"},
		&cli.StringSliceFlag{Name: "one-of", Usage: "at least one of `PROGRAM,PROGRAM` must work; A+B is one alternative"},
		&cli.StringSliceFlag{Name: "when", Usage: "load a program only on some kernels: `PROGRAM=SELECTOR`"},
		&cli.StringSliceFlag{Name: "loader-map", Usage: "the loader sets up maps that match `MAP`"},
		&cli.BoolFlag{Name: "no-guess", Usage: "do not guess which programs are optional"},
	}
}

func verboseFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: usage}
}

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print " + what + " as JSON"}
}
