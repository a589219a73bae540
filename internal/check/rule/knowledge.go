// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// knowledge is what a kernel's configuration, symbols and modules say about wanted names.
type knowledge struct {
	config  map[string]string      // set values by CONFIG_NAME; nil if the configuration is not known
	symbols map[string]symbolCount // by name; nil if the symbols are not known
	matches []int                  // number of functions among the symbols, by pattern
	modules bool                   // modules are known as well: their BTF is present, or the kernel cannot have any
}

// symbolCount is how many symbols of the kernel itself have a name.
type symbolCount struct {
	text, data int
	loaded     bool   // a module that was loaded has it
	variant    string // the compiler's variant of the function: foo.isra.0
}

// elsewhere weakens a finding that fails because the kernel lacks something: a module may have it. This needs a kernel
// that looks in modules, as the fact says, and whose modules are not known.
func (k *Inventory) elsewhere(f Finding, fact facts.Fact, maybe Code) Finding {
	looks := func(fact facts.Fact) bool { return k.facts.Has(fact).Presence != facts.No }
	if f.Status == Fails && !k.known.modules && looks(facts.TargetsInModules) && looks(fact) {
		f.Status, f.Code, f.Decided, f.Witness = MayFail, maybe, "", ""
	}
	return f
}

func (c symbolCount) any() bool { return c.text > 0 || c.data > 0 || c.loaded }

// ConfigLines are the lines of a kernel's configuration: a setting's name and value, or "" and a line that is none.
func ConfigLines(text []byte) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range bytes.Lines(text) {
			text := strings.TrimSpace(string(line))
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				name, value = "", text
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

func (k *Inventory) readConfig(text []byte) {
	k.known.config = make(map[string]string)
	modules := false
	for name, value := range ConfigLines(text) {
		if name == "" {
			k.readVersion(value)
		} else if _, again := k.known.config[name]; k.want.config[name] && !again {
			// Loaders take the first line of a setting.
			k.known.config[name] = value
		}
		modules = modules || name == "CONFIG_MODULES"
	}
	k.known.modules = k.known.modules || !modules
}

// readVersion reads the version in the head of a configuration, "# Linux/x86 6.1.90 Kernel
// Configuration". A release may hide the last number.
func (k *Inventory) readVersion(head string) {
	words := strings.Fields(head)
	if len(words) != 5 || !strings.HasPrefix(words[1], "Linux/") {
		return
	}
	var major, minor, patch uint64
	n, _ := fmt.Sscanf(words[2], "%d.%d.%d", &major, &minor, &patch)
	if n != 3 || major == 0 || major > 255 || minor > 255 || patch == 0 {
		return
	}
	series := uint64(Linux(major, minor))
	if !k.dated() || k.version.V == series {
		k.version = interp.Number{V: series | min(patch, 255)}
	}
}

func (k *Inventory) readSymbols(ctx context.Context, text []byte) {
	k.known.symbols, k.known.matches = make(map[string]symbolCount), make([]int, len(k.want.patterns))
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return
		}
		kind, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		name, _, loaded := bytes.Cut(rest, []byte(" "))
		name, _, _ = bytes.Cut(name, []byte(".llvm.")) // kernels cut this suffix off, too
		k.symbol(string(kind) == "t", name, loaded)
	}
}

// symbol counts a symbol.
func (k *Inventory) symbol(text bool, name []byte, loaded bool) {
	if text {
		k.count(k.known.matches, name)
	}
	base, _, variant := bytes.Cut(name, []byte("."))
	if !k.want.symbols[string(base)] {
		return
	}
	c := k.known.symbols[string(base)]
	switch {
	case variant && text && c.variant == "":
		c.variant = string(name)
	case variant:
	case loaded:
		c.loaded = true
	case text:
		c.text++
	default:
		c.data++
	}
	k.known.symbols[string(base)] = c
}

// knowsSymbols reports whether the kernel's symbols are known.
func (k *Inventory) knowsSymbols() bool { return k.known.symbols != nil }

// symbolCodes are the codes of findings on symbols that a kernel does not have.
type symbolCodes struct{ variant, leftOut, missing, maybeModule Code }

var (
	targetSymbol = symbolCodes{AttachTargetVariant, AttachTargetLeftOut, AttachTargetNoSymbol, AttachTargetMaybeModule}
	ksymSymbol   = symbolCodes{KsymVariant, KsymLeftOut, KsymNoSymbol, KsymMaybeModule}
)

// notSymbol judges that the kernel's symbols, which are known, do not have a name: whether a module
// may have it.
func (k *Inventory) notSymbol(name string, codes symbolCodes) Finding {
	y, isFunc := k.find(name, btf.KindFunc)
	switch c := k.known.symbols[name]; {
	case c.variant != "":
		return Finding{Status: Fails, Code: codes.variant, Args: Args{Name: c.variant}}
	case isFunc && y.module == "":
		return Finding{Status: Fails, Code: codes.leftOut}
	case k.known.modules:
		return Finding{Status: Fails, Code: codes.missing}
	}
	return Finding{Status: MayFail, Code: codes.maybeModule}
}

// symbolProbe judges a kprobe by the kernel's symbols. names are those that the function may have.
func (e *Evaluation) symbolProbe(names []string) {
	for _, n := range names {
		y, isFunc := e.k.find(n, btf.KindFunc)
		switch c := e.k.known.symbols[n]; {
		case c.text > 1:
			e.add(Finding{
				Status: MayFail, Code: AttachTargetSame, Subject: "function " + n, Attach: true,
				Args: Args{Count: int64(c.text)},
			})
			return
		case c.text > 0, c.loaded:
			return
		case isFunc && y.module != "":
			e.inModule("function "+n, y, true)
			return
		}
	}
	f := e.k.notSymbol(names[0], targetSymbol)
	f.Subject, f.Attach = "function "+names[0], true
	e.add(f)
}

// symbolPattern judges a pattern of functions, which is number i, by the kernel's symbols and what
// modules have in their BTF.
func (e *Evaluation) symbolPattern(i int) {
	if e.k.known.matches[i] > 0 || e.k.matches[i] > 0 {
		return
	}
	f := Finding{Status: MayFail, Code: AttachTargetMaybeMatch, Subject: e.k.want.patterns[i].text, Attach: true}
	if e.k.known.modules {
		f.Status, f.Code = Fails, AttachTargetNoMatch
	}
	e.add(f)
}
