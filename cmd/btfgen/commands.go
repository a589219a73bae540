// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
)

// allCommands returns the table of all commands.
func allCommands() []*cli.Command {
	s := newSharedFlags()
	return slices.Concat(s.minimizing(), []*cli.Command{
		s.check(),
		{
			Name:        "archive",
			Usage:       "inspect, compare, convert, push and pull archives",
			Subcommands: slices.Concat(s.archive(), s.sharing("an archive", "", "write the archive to `OUT`, a .btfa file")),
		},
		{
			Name:  "corpus",
			Usage: "inspect, check, fetch, import, push, pull and extract kernel BTFs",
			Subcommands: slices.Concat(s.inspecting(), s.storing(),
				s.sharing("a corpus", " [SERIES...]", "add kernels to `OUT`, a .btfc file", s.withoutBTF), s.extracting()),
		},
	}, aboutBtfgen())
}

// sharedFlags are the options that several commands have.
type sharedFlags struct {
	jobs, keep, catalogue, mirror, plainHTTP cli.Flag

	withoutBTF cli.Flag

	selecting []cli.Flag // read by readSelectors
	replace   cli.Flag   // goes with selecting, in commands that write a directory
	reading   []cli.Flag // read by openSources
	kernels   []cli.Flag // read by openCorpus
	writing   []cli.Flag // read by parseOutput
}

func newSharedFlags() *sharedFlags {
	jobs := countFlag("jobs", "run `N` workers", runtime.GOMAXPROCS(0))
	jobs.Aliases, jobs.DefaultText = []string{"j"}, "number of CPUs"
	layouts := bundle.LayoutNames()
	s := &sharedFlags{
		jobs: jobs,
		keep: listFlag("keep", "keep types for user space, also without an OBJECT: `PATTERN` is enum:NAME, "+
			"struct:NAME[.MEMBER], union:, typedef:, func: or var:"),
		catalogue:  newFlag("catalogue", "read more repositories from `FILE`; its entries take precedence"),
		mirror:     listFlag("mirror", "replace the beginning of addresses in the catalogue: `URL=URL`"),
		withoutBTF: newFlag("without-btf", "use only kernels without BTF of their own, or that may be without it"),
		plainHTTP:  newFlag("plain-http", "use HTTP also for a registry that is not on this machine"),
		replace:    newFlag("replace", "remove all files of earlier runs from a directory, not only those of kernels that this run selects"),
		selecting: []cli.Flag{
			listFlag("select", "use only kernels that match `SELECTOR`, such as 'debian>=11,x86_64'"),
			listFlag("exclude", "skip kernels that match `SELECTOR`"),
		},
		writing: []cli.Flag{
			newFlag("output", "write to `OUT` (required)", "o"),
			choiceFlag("layout", "names of files in a directory or tar, by the project that reads them: `KIND` is "+
				strings.Join(layouts[:len(layouts)-1], ", ")+" or "+layouts[len(layouts)-1], layouts...),
		},
	}
	s.reading = slices.Concat(s.selecting, []cli.Flag{
		s.withoutBTF,
		listFlag("as", "set the key of kernels: `[PATTERN=]KEY`, as in '*.btf=debian/12/{arch}/{release}'"),
	})
	s.kernels = slices.Concat([]cli.Flag{
		listFlag("btf", "read kernels from `SOURCE`, a file or tree (default: the running kernel)"),
	}, s.reading, []cli.Flag{modulesFlag("all")})
	return s
}

// modulesFlag is the option that chosenModules reads.
func modulesFlag(def string) cli.Flag {
	return &cli.StringFlag{Name: "modules", Usage: "use `MODULES`: names such as nf_conntrack,btrfs, or all or none", Value: def}
}

// minimizing returns the commands that minimize BTF, or show and prove the result.
func (s *sharedFlags) minimizing() []*cli.Command {
	return []*cli.Command{
		{
			Name:      "generate",
			Usage:     "minimize the BTF of all kernels in a corpus",
			ArgsUsage: "OBJECT...",
			Flags: slices.Concat(s.kernels, s.writing, []cli.Flag{
				s.replace,
				newFlag("manifest", "write hashes, sizes and counts of all kernels to `FILE`"),
				newFlag("reuse", "take unchanged kernels from the archive `OLD.btfa`, whose manifest is OLD.json"),
				newFlag("shard", "process part `I/N` of the corpus; auto or auto/N takes I from a batch system"),
				s.jobs,
				s.keep,
				jsonFlag("the summary and findings"),
				verboseFlag("list kernels of poisoned relocations, and what is skipped"),
			}),
			Action: runGenerate,
		},
		{
			Name:      "min_core_btf",
			Usage:     "minimize the BTF of one kernel, like 'bpftool gen min_core_btf'",
			ArgsUsage: "INPUT OUTPUT OBJECT...",
			Flags: []cli.Flag{
				newFlag("base-btf", "read INPUT as split BTF with the base `FILE`", "B"),
				modulesFlag("all"),
				s.keep,
				jsonFlag("sizes, hash and findings"),
			},
			Action: minCoreBTF,
		},
		{
			Name:      "relolog",
			Usage:     "show how relocations are resolved, and why",
			ArgsUsage: "OBJECT...",
			Flags: slices.Concat(s.kernels, []cli.Flag{
				jsonFlag("relocations and other findings, one per line,"),
				verboseFlag("show source lines, candidates and reasons"),
				listFlag("program", "show only functions or sections that match `PATTERN`"),
				listFlag("result", "show only `RESULT`: resolved, absent, poisoned, ambiguous or error"),
				listFlag("type", "show only local types that match `PATTERN`"),
				s.jobs,
			}),
			Action: runRelolog,
		},
		{
			Name:      "verify",
			Usage:     "prove that loaders decide the same on minimized BTF",
			ArgsUsage: "ARCHIVE OBJECT...",
			Flags: slices.Concat(s.kernels, []cli.Flag{
				jsonFlag("findings, one per line, and a summary"),
				loaderFlag("compare only the decisions of `LOADER`: libbpf, ebpf-go or aya", "all", "libbpf", "ebpf-go", "aya"),
				verboseFlag("list all differences"),
				newFlag("covers", "only check that ARCHIVE was made for the relocations of OBJECT; needs no kernels"),
				s.jobs,
			}),
			Action: runVerify,
		},
	}
}

// check returns the command check.
func (s *sharedFlags) check() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "report which kernels objects work on, and why not on others",
		ArgsUsage: "OBJECT...",
		Flags: slices.Concat(s.kernels, []cli.Flag{
			listFlag("boot", "boot `PACKAGE` under qemu, load the objects, and compare: a .deb, .rpm or vmlinuz, "+
				"or ID/VERSION_ID[/ARCH[/RELEASE]] to download"),
			newFlag("archive", "in booted kernels, load the objects with the BTF in `ARCHIVE` (.btfa), too, and compare"),
			newFlag("command", "run `COMMAND` in booted kernels instead of loading; arguments are files for it"),
			countFlag("timeout", "stop a booted kernel after `SECONDS`", 600),
			newFlag("btfgen", "boot with `FILE`, a static btfgen for the machine (default: this one)"),
			s.catalogue,
			s.mirror,
			reportFormatFlag(),
			newFlag("json", "print the report as JSON"),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`", Value: "-"},
			newFlag("summary", "also write --format summary to `FILE`"),
			newFlag("source-root", "for sarif and github, make names of sources relative to `DIR` (default: the working directory)"),
			listFlag("require", "count failures only on kernels that match `SELECTOR`"),
			newFlag("baseline", "count only what is worse than in `FILE`, an earlier --json report"),
			listFlag("target", "set the target of programs that match: `PROGRAM=NAME`"),
			listFlag("types", "add the types in `FILE`, BTF or ELF, to each kernel's, as the loader does"),
			listFlag("rodata-var", "the loader may set read-only variables that match `PATTERN`"),
			newFlag("verbose", "show guards, notes and all kernel ranges", "v"),
			s.jobs,
		}, policyFlags()),
		Action: runCheck,
	}
}

// archive returns the commands below archive.
func (s *sharedFlags) archive() []*cli.Command {
	return []*cli.Command{
		{
			Name:      "list",
			Usage:     "list the kernels of an archive",
			ArgsUsage: "ARCHIVE",
			Flags: []cli.Flag{
				newFlag("sizes", "show bytes of each kernel's BTF, alone and shared with other kernels"),
				jsonFlag("the list"),
			},
			Action: runArchiveList,
		},
		{
			Name:      "lookup",
			Usage:     "find the BTF for a host, as a tracer would",
			ArgsUsage: "ARCHIVE",
			Flags: []cli.Flag{
				newFlag("os-release", "read distribution and version from `FILE`"),
				newFlag("release", "kernel `RELEASE`, as printed by uname -r"),
				newFlag("arch", "machine `ARCH`, as printed by uname -m"),
				newFlag("root", "use `DIR` as the root directory of the host"),
				newFlag("neighbour", "fall back to the common BTF of neighbouring builds"),
				countFlag("builds", "require `N` builds before the kernel for --neighbour", 3),
				newFlag("output", "write the BTF to `FILE`", "o"),
				jsonFlag("the result"),
			},
			Action: runArchiveLookup,
		},
		{
			Name:      "convert",
			Usage:     "write archives in another format: merged, selected, or as BTF files",
			ArgsUsage: "ARCHIVE...",
			Flags: slices.Concat(s.writing, s.selecting, []cli.Flag{
				s.replace,
				jsonFlag("the summary and findings"),
				newFlag("mixed", "allow different relocations for one machine"),
			}),
			Action: runArchiveConvert,
		},
		{
			Name:      "diff",
			Usage:     "compare two archives: kernels, objects and sizes",
			ArgsUsage: "OLD NEW",
			Flags: []cli.Flag{
				choiceFlag("format", "print `FORMAT`: text or markdown", "text", "markdown"),
				jsonFlag("the comparison"),
				verboseFlag("list all kernels"),
			},
			Action: runArchiveDiff,
		},
	}
}

// inspecting returns the commands below corpus that report on kernels.
func (s *sharedFlags) inspecting() []*cli.Command {
	return []*cli.Command{
		{
			Name:      "list",
			Usage:     "list the kernels of a corpus",
			ArgsUsage: "[SOURCE...]",
			Flags: slices.Concat([]cli.Flag{
				newFlag("long", "read the kernels and show sizes, types, byte order, modules etc.", "l"),
				leftOutFlag(),
				jsonFlag("kernels, then findings, one per line,"),
				s.jobs,
			}, s.reading),
			Action: runCorpusList,
		},
		{
			Name:      "lint",
			Usage:     "find problems in a corpus",
			ArgsUsage: "[SOURCE...]",
			Flags: slices.Concat([]cli.Flag{
				leftOutFlag(),
				jsonFlag("the findings"),
				s.jobs,
			}, s.reading),
			Action: runCorpusLint,
		},
	}
}

// storing returns the commands below corpus that add kernels to a file.
func (s *sharedFlags) storing() []*cli.Command {
	return []*cli.Command{
		{
			Name:      "fetch",
			Usage:     "download the kernels of distributions that a file lacks",
			ArgsUsage: "[SERIES...]",
			Flags: slices.Concat(s.selecting, []cli.Flag{
				s.withoutBTF,
				newFlag("output", "add kernels to `OUT`, a .btfc file", "o"),
				newFlag("packages", "keep the packages in `DIR` instead, and read no kernels"),
				newFlag("dry-run", "print what would be downloaded"),
				s.catalogue,
				s.mirror,
				&cli.GenericFlag{
					Name: "newest", Value: new(word),
					Usage: "fetch only the newest `N` kernels of each ID/VERSION_ID/ARCH and line, such as 6.1",
				},
				newFlag("modules", "use `MODULES`: names such as nf_conntrack,btrfs, or all or none (default: all with BTF)"),
				newFlag("limit", "download nothing if it would be more than `SIZE`, such as 500M or 2G"),
				newFlag("retry", "retry packages that had no usable kernel"),
				listFlag("prune", "remove kernels that match `SELECTOR` and that repositories no longer have"),
				jsonFlag("the summary and findings"),
				s.jobs,
			}),
			Action: runCorpusFetch,
		},
		{
			Name:      "import",
			Usage:     "import kernels into a file that is small and fast to read",
			ArgsUsage: "[SOURCE...]",
			Flags: slices.Concat([]cli.Flag{
				newFlag("output", "add kernels to `OUT`, a .btfc file (required)", "o"),
				modulesFlag("all"),
				leftOutFlag(),
				jsonFlag("the summary and findings"),
				s.jobs,
			}, s.reading),
			Action: runCorpusImport,
		},
	}
}

// sharing returns the commands below corpus, or below archive, that use a registry. what names the thing that they move, and out is
// the usage of --output.
func (s *sharedFlags) sharing(what, series, out string, choosing ...cli.Flag) []*cli.Command {
	return []*cli.Command{
		{
			Name:      "push",
			Usage:     "push " + what + " to a registry, from which others pull it",
			ArgsUsage: "FILE REFERENCE",
			Flags: slices.Concat(choosing, []cli.Flag{
				newFlag("dry-run", "print what would be pushed"),
				s.plainHTTP,
				jsonFlag("the summary"),
				s.jobs,
			}),
			Action: runCorpusPush,
		},
		{
			Name:      "pull",
			Usage:     "pull " + what + " from a registry",
			ArgsUsage: "REFERENCE" + series,
			Flags: []cli.Flag{
				newFlag("output", out, "o"),
				newFlag("dry-run", "print what would be downloaded"),
				s.plainHTTP,
				jsonFlag("the summary and findings"),
				s.jobs,
			},
			Action: runCorpusPull,
		},
	}
}

// extracting returns the commands below corpus that write kernels as files.
func (s *sharedFlags) extracting() []*cli.Command {
	return []*cli.Command{
		{
			Name:      "extract",
			Usage:     "write kernel BTFs as raw files",
			ArgsUsage: "[SOURCE...]",
			Flags: slices.Concat([]cli.Flag{
				newFlag("output", "write to `OUT` (required)", "o"),
				modulesFlag("none"),
				jsonFlag("the summary and findings"),
				s.jobs,
			}, s.reading),
			Action: runCorpusExtract,
		},
	}
}

// aboutBtfgen returns the commands about btfgen itself.
func aboutBtfgen() []*cli.Command {
	return []*cli.Command{
		{
			Name:   "init",
			Usage:  "set up btfgen in a project",
			Flags:  []cli.Flag{newFlag("dry-run", "print the files, and write none")},
			Action: runInit,
		},
		{
			Name:      "explain",
			Usage:     "explain a code or class of findings, or list all",
			ArgsUsage: "[CODE...]",
			Flags:     []cli.Flag{jsonFlag("the explanations")},
			Action:    runExplain,
		},
		{
			Name:      "completion",
			Usage:     "print a script for shell completion",
			ArgsUsage: "SHELL",
			Action:    runCompletion,
		},
	}
}

// policyFlags are the options of check about how a whole object is loaded.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		loaderFlag("judge for `LOADER`: libbpf, ebpf-go, both (the worse of the two), aya, or auto: "+
			"the one that objects and project show, else libbpf", autoLoader, "libbpf", "ebpf-go", "both", "aya"),
		listFlag("optional", "objects work without programs that match `[OBJECT:]PROGRAM`"),
		listFlag("one-of", "at least one of `PROGRAM,PROGRAM`, or of OBJECT:,OBJECT:, must work; A+B is one alternative"),
		listFlag("when", "load a program, or an object (OBJECT:), only on some kernels: `PROGRAM=SELECTOR`"),
		listFlag("loader-map", "the loader sets up maps that match `MAP`"),
		listFlag("tail-called", "only tail calls reach programs that match `[OBJECT:]PROGRAM`; they are loaded, not attached"),
		newFlag("no-guess", "do not guess which programs are optional"),
		newFlag("no-kernel-btf", "assume that kernels have no BTF of their own where the corpus does not show it"),
	}
}

func verboseFlag(usage string) cli.Flag {
	return newFlag("verbose", usage, "v")
}

// leftOutFlag is --verbose of commands that print nothing else with it.
func leftOutFlag() cli.Flag {
	return verboseFlag("list what is left out: copies of kernels and links to them")
}

func jsonFlag(what string) cli.Flag {
	return newFlag("json", "print "+what+" as JSON")
}

// reportFormats are the formats of check: the keys of report.Formats in the order of help.
var reportFormats = []string{
	"text", "markdown", "html", "summary", "min-kernel", "suggest", "table", "badge", "junit", "sarif", "github", "json",
}

// reportFormatFlag is the option --format of check. Its usage leaves out json, for which there is --json.
func reportFormatFlag() cli.Flag {
	shown := slices.DeleteFunc(slices.Clone(reportFormats), func(name string) bool { return name == "json" })
	f := choiceFlag("format", "print `FORMAT`: "+listOr(shown), reportFormats...)
	f.Aliases = []string{"f"}
	return f
}
