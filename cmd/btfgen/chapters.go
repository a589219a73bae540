// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
)

// classList lists classes of findings with their meanings.
func classList(classes []class) (list string) {
	for _, c := range classes {
		list += "- `" + string(c) + "`: " + meanings[c] + "\n"
	}
	return list
}

// chapters are the sections about all commands, in docs/cli.md and in btfgen(1).
func chapters() []section {
	commands := make(map[string][]string) // by the text about their classes
	for _, name := range slices.Sorted(maps.Keys(commandClasses)) {
		if t := commandClasses[name]; len(t.all()) > 0 {
			text := joinClasses(t.counts)
			if len(t.others) > 0 {
				text += "; on request " + joinClasses(t.others)
			}
			commands[text] = append(commands[text], "`"+name+"`")
		}
	}
	var counts []string
	for text, names := range commands {
		counts = append(counts, "- "+strings.Join(names, ", ")+": "+text+"\n")
	}
	slices.Sort(counts)
	vars := ""
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		vars += "- `" + variables[name] + "`: `--" + name + "`\n"
	}
	return []section{
		{"Input and output", `Options may follow arguments. After ` + "`--`" + ` every word is an argument. Results go to
standard output or to ` + "`-o`" + `, everything else to standard error.
`},
		{"Exit status", `- ` + "`0`" + `: success
- ` + "`1`" + `: failure, or a defect in btfgen (please report it with the output of ` + "`--debug`" + `)
- ` + "`2`" + `: wrong usage; nothing was done
- ` + "`3`" + `: success, with findings of the classes in ` + "`--fail-on`" + `
- ` + "`130, 143, 129`" + `: ended by INT, TERM or HUP

` + "`--fail-on`" + ` takes a list of classes, separated by commas, or ` + "`none`" + `, and replaces the default.
` + "`--brief`" + ` hides the other findings, and ` + "`--quiet`" + ` the summary, too. In GitHub Actions, findings
of these classes become annotations, and the step gets a summary. The classes are:

` + classList(slices.Sorted(maps.Keys(meanings))) + `
These count by default, those after "on request" only if ` + "`--fail-on`" + ` names them:

` + strings.Join(counts, "")},
		{"JSON", `With ` + "`--json`" + ` a command prints one document or, if it has many results, one per line.
A finding has a ` + "`class`" + `, a ` + "`message`" + ` and, if known, an ` + "`object`, a `kernel` and a `file`" + `.
`},
		{"Environment", `These variables override btfgen.yaml, and the command line overrides them. ` + "`BTFGEN_BTF`" + `
may have several paths, separated by colons.

` + vars},
	}
}

// manChapters are further sections of btfgen(1). docs/selectors.md and docs/config.md have more details.
var manChapters = []section{
	{"Selectors", `A selector chooses kernels by key, ID/VERSION_ID/ARCH/RELEASE. It is a list of terms, separated by
commas, that must all match:

- ` + "`debian`" + `, ` + "`x86_64`" + `: a distribution or an architecture
- ` + "`debian=12`" + `, ` + "`debian>=11`" + `: a distribution and its version
- ` + "`6.1`" + `, ` + "`>=5.4`" + `: a kernel release; 6.1 matches 6.1.0-47-amd64
- ` + "`debian/12/*`" + `: a key, or how it begins
- ` + "`arch=arm64`" + `, ` + "`release=*-generic`" + `: one of the fields id, version, arch and release

Operators are = and !=, which take shell patterns, and <, <=, > and >=, which compare version numbers. A
version such as sid, without a number, matches no comparison. Aliases are equal: amd64 and x86_64,
aarch64 and arm64, amazon and amzn.
`},
	{"Files", "`" + configFile + "`" + ` in the working directory sets options and arguments, by their names. A command has a
section; other keys are for all commands. A key for a single file, such as output, must be in a section.
Paths are relative to the file.

    btf: kernels/
    select: [debian>=11, ubuntu]
    objects: [x86_64=build/tracer_x86.o, build/probes.o]
    generate:
      output: tracer.btfa
    check:
      require: [debian>=12]
    archive:
      list: {archive: tracer.btfa}
`},
	{"See also", "`bpftool-gen`(8)\n"},
}

// exitStatus is the section of a manual page about the findings of a command.
func exitStatus(command string) section {
	text := "0 for success, 1 for failure, and 2 for wrong usage.\n"
	if classes := commandClasses[command].all(); len(classes) > 0 {
		text = "0 for success, 1 for failure, 2 for wrong usage, and 3 for findings of the classes in\n`--fail-on`. The classes of this command are:\n\n"
		text += classList(classes)
	}
	return section{"Exit status", text}
}
