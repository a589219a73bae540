// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// Evaluation is what rules find of one program on one kernel.
type Evaluation struct {
	Findings []Finding // on it, except on its code
	Shape    *Shape    // of its context; nil where that is not known, or where it is not read

	*Pairing
	pr    *bpfobj.Program
	tail  bool      // only tail calls reach it: it is loaded, and not attached
	hook  *hook     // nil where the program is not attached by BTF, or what to is not known
	given int64     // bytes of the context of a tracepoint, 0 where that is not known
	raw   *hook     // the arguments of a raw tracepoint; nil where they are not known
	kind  []absence // what depends on its kind or on all of it, in addition to the absences of its functions
	may   *returned // what it may return; nil for anything
}

// absence is an instruction that the verifier refuses if it reaches it.
type absence struct {
	at     bpfobj.Site
	f      Finding
	flaw   interp.Flaw // only if it reaches it with this
	anyhow bool        // whether it reaches it or not
}

// add adds a finding, unless it counts where the program is attached and it never is.
func (e *Evaluation) add(f Finding) {
	if f.Attach && e.tail {
		return
	}
	e.Findings = append(e.Findings, f)
}

// addAll adds findings that are not OK.
func (e *Evaluation) addAll(all []Finding) {
	for _, f := range all {
		if f.Status != OK {
			e.add(f)
		}
	}
}

func (e *Evaluation) eachUse(f func(*use)) {
	for _, fn := range e.pr.Funcs {
		for i := range e.o.uses[fn] {
			f(&e.o.uses[fn][i])
		}
	}
}
