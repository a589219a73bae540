// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"errors"
	"strings"
	"sync"
)

// Program is what is known of a type of programs.
type Program struct {
	Context      string  // the struct of the kernel's interface that they get, "" for none
	ChecksAttach bool    // kernels look at the type of attachment when they load them
	MovesContext bool    // kernels with [ContextMoved] let them access their context through a moved address
	Sleeps       bool    // they always may sleep
	Preallocated bool    // kernels without [MapsOnDemand] want their maps preallocated
	License      *Period // kernels on which their license has to be compatible with the GPL, nil for none
	Link         string  // the type of links that attachment needs, "" for none
	groups       []string
	returns      *Values
}

// RefusesZero reports whether 0 is none of them.
func (v *Values) RefusesZero() bool { return v != nil && v.Lo > 0 }

// ReturnsOf returns what programs with a type of attachment may return, nil if kernels take every value or differ: see [Returns].
func ReturnsOf(progType, attach string) *Values {
	for _, name := range []string{attached(progType, attach), progType} {
		if p := programTable()[name]; p != nil && p.returns != nil {
			return p.returns
		}
	}
	return nil
}

// programTable is programs.txt: programs by type, or by type and type of attachment with a slash between.
var programTable = sync.OnceValue(func() map[string]*Program {
	all, err := readPrograms(readFile("programs.txt"))
	if err != nil {
		panic(err)
	}
	return all
})

func readPrograms(text string) (map[string]*Program, error) {
	const file = "programs.txt"
	l, err := entries(file, text)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*Program)
	for i := range l {
		e, p := &l[i], new(Program)
		keys := map[string]func(string) error{
			"groups":        func(value string) error { p.groups = strings.Fields(value); return nil },
			"context":       func(value string) error { p.Context = value; return nil },
			"link":          func(value string) error { p.Link = value; return nil },
			"attach type":   is("at load", &p.ChecksAttach),
			"moved context": is("yes", &p.MovesContext),
			"sleeps":        is("always", &p.Sleeps),
			"maps":          is("preallocated", &p.Preallocated),

			"returns": func(value string) error {
				v, err := parseValues(value)
				p.returns = &v
				return err
			},
		}
		e.during(keys, "license", func(when Period, value string) error {
			p.License = &when
			return unless(value == "GPL", "want GPL")
		})
		err := e.read(keys)
		if err != nil {
			return nil, err
		}
		kind, attach, _ := strings.Cut(e.name, "/")
		for a := range strings.SplitSeq(attach, ",") {
			name := kind
			if a != "" {
				name += "/" + a
			}
			if all[name] != nil {
				return nil, e.wrap(e.line, errors.New("twice"))
			}
			all[name] = p
		}
	}
	return all, nil
}

// none is what is known of programs of other types.
var none Program

// ProgramType returns what is known of programs of a type.
func ProgramType(progType string) *Program { return cmp.Or(programTable()[progType], &none) }

// LinkType returns the type of links without which programs cannot be attached, "" for none. attach is the type of attachment.
func LinkType(progType, attach string) string {
	return cmp.Or(programTable()[attached(progType, attach)], &none).Link
}

// attached is the name in the tables of a type of programs with a type of attachment, "BPF_LSM_MAC".
func attached(progType, attach string) string {
	return progType + "/" + strings.TrimPrefix(attach, "BPF_")
}

// IsContext reports whether a struct is the context of programs: that of a type, or the registers, which have a name for each machine.
func IsContext(name string) bool {
	switch name {
	case "bpf_flow_keys", "bpf_raw_tracepoint_args", "bpf_nf_ctx", "pt_regs", "user_pt_regs", "user_regs_struct":
		return true
	}
	for _, p := range programTable() {
		if p.Context == name {
			return true
		}
	}
	return false
}

// groups returns the types of programs by their names and by their groups.
func groups(all map[string]*Program) map[string][]string {
	of := make(map[string][]string)
	for name, p := range all {
		of[name] = []string{name}
		for _, g := range p.groups {
			of[g] = append(of[g], name)
		}
	}
	return of
}
