// SPDX-License-Identifier: Apache-2.0

package rule

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// deniedText lists functions that programs cannot be attached to.
//
//go:embed denied.txt
var deniedText string

// denial is since when a function is refused.
type denial struct {
	since   facts.Change // zero for always
	updates []uint64     // first updates of older series with the refusal, as LINUX_KERNEL_VERSION
}

// denials is deniedText by paragraph and function. A test reads it, so that there is no mistake in it.
var denials = sync.OnceValue(func() map[string]map[string]denial {
	t, err := readDenials(deniedText)
	if err != nil {
		panic(err)
	}
	return t
})

func readDenials(text string) (map[string]map[string]denial, error) {
	t := make(map[string]map[string]denial)
	paragraph := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#':
			continue
		case words[0][0] == '[':
			paragraph = strings.Trim(words[0], "[]")
			t[paragraph] = make(map[string]denial)
			continue
		}
		when, err := facts.ParseChange(words[0])
		if err != nil || paragraph == "" {
			return nil, fmt.Errorf("%s: want AFTER..BY in a paragraph: %w", line, err)
		}
		d := denial{since: when}
		for _, w := range words[1:] {
			var major, minor, patch uint64
			if n, _ := fmt.Sscanf(w, "%d.%d.%d", &major, &minor, &patch); n == 3 {
				d.updates = append(d.updates, uint64(Linux(major, minor))|patch)
			} else {
				t[paragraph][w] = d
			}
		}
	}
	return t, nil
}

// deny judges by code a function that is refused since a release, as far as that is known.
func (k *Inventory) deny(d denial, code Code) Finding {
	series := func(v uint64) uint64 { return v &^ 0xff }
	ofSeries := func(u uint64) bool { return series(k.version.V) == series(u) }
	updated := slices.ContainsFunc(d.updates, func(u uint64) bool {
		return k.dated() && ofSeries(u) && k.version.V >= u
	})
	switch {
	case d.since == facts.Change{}, updated, k.atLeast(d.since.By):
		return Finding{Status: Fails, Code: code}
	case k.facts.Shown() < d.since.By && k.dated() && k.before(d.since.After.Next()) &&
		!slices.ContainsFunc(d.updates, ofSeries):
		return Finding{}
	}
	return Finding{Status: MayFail, Code: code, Args: Args{Decided: ByRelease, Doubt: NotShown}}
}

// denied judges whether programs of the section can be attached to a function that the kernel has. Kernels look at two of the lists when they
// load a program, and find out about the third when they attach it.
func (e *Evaluation) denied(subject, function string) {
	s := e.pr.Attach
	note := func(paragraph string, code Code, attach bool) {
		if d, ok := denials()[paragraph][function]; ok {
			f := e.k.deny(d, code)
			f.Subject, f.Attach = subject, attach
			e.addAll([]Finding{f})
		}
	}
	if s.ProgType == "TRACING" {
		note("denied", AttachTargetDenied, false)
		if s.Type != "BPF_TRACE_FENTRY" && s.Type != "BPF_TRACE_FENTRY_MULTI" {
			note("noreturn", AttachTargetNoReturn, false)
		}
	}
	note("notrace", AttachTargetNoTrace, true)
}

// blacklist begins the name of a symbol for each function that kprobes cannot have.
const blacklist = "_kbl_addr_"

// blacklisted judges whether a kprobe can be on a function that the kernel has.
func (e *Evaluation) blacklisted(function string) {
	_, listed := denials()["kprobes"][function]
	if listed || e.k.known.symbols[blacklist+function].any() {
		e.add(Finding{Status: Fails, Code: AttachTargetBlacklist, Subject: "function " + function, Attach: true})
	}
}

// tracer judges whether the kernel was built so that functions can call trampolines.
func (e *Evaluation) tracer(subject string) {
	f := e.k.judge(facts.FunctionTracer, AttachTargetTracer)
	if f.Status != Fails {
		return
	}
	f.Subject, f.Attach, f.Since, f.Name = subject, true, 0, facts.FunctionTracer.Setting()
	e.add(f)
}

// settingLSM lists the modules of LSM that a kernel starts unless its command line says otherwise.
const settingLSM = settingPrefix + "LSM"

// startsLSM warns of a hook that is never called: bpf is not among the modules of LSM that the kernel starts (ordered_lsm_init in
// security/security.c).
func (e *Evaluation) startsLSM() {
	list, ok := e.k.known.config[settingLSM]
	list = strings.Trim(list, `"`)
	if ok && !slices.Contains(strings.Split(list, ","), "bpf") {
		e.add(Finding{
			Code: AttachTargetLSMOff, Subject: e.pr.Section, Attach: true,
			Args: Args{Name: list, Decided: ByConfig},
		})
	}
}

// entryOf returns the first of the names that is a function of the kernel. The kprobe is at its entry.
func (e *Evaluation) entryOf(names []string) (function string, ok bool) {
	for _, n := range names {
		if _, has := e.k.find(n, btf.KindFunc); has || e.k.known.symbols[n].text > 0 {
			return n, true
		}
	}
	return "", false
}
