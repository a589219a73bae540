// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// lookupResult is the document of lookup.
type lookupResult struct {
	Host       string   `json:"host"`
	Like       []string `json:"like,omitempty"` // ID/VERSION_ID of the distributions from which the host's is derived
	Match      string   `json:"match"`          // exact, release, derived, neighbour or none
	Kernel     string   `json:"kernel,omitempty"`
	Layout     *int     `json:"layout,omitempty"`
	Reason     string   `json:"reason"`
	Below      string   `json:"below,omitempty"`
	Above      string   `json:"above,omitempty"`
	SameLayout bool     `json:"same_layout,omitempty"`
	allFindings
}

func runArchiveLookup(c *cli.Context) error {
	neighbours, err := checkLookup(c)
	if err != nil {
		return err
	}
	out := c.String("output")
	if err := inputsOf(c.Args().First(), c.String("os-release")).refuse(out); err != nil {
		return err
	}
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	host, err := kernel.Host(kernel.HostOptions{
		Root: c.String("root"), OSRelease: c.String("os-release"), Release: c.String("release"), Arch: c.String("arch"),
	})
	if err != nil {
		return err
	}
	m := a.Lookup(host.Key, neighbours, host.Like...)
	if !m.Found() {
		record(c, finding{Class: missing, Message: m.Reason, Kernel: m.Want.String()})
	} else if out != "" {
		b, err := a.BTF(m.Key)
		if err != nil {
			return err
		}
		if err := writeOut(c, out, b); err != nil {
			return err
		}
	}
	r := newLookupResult(a, &m, host.Like)
	if c.Bool("json") {
		r.allFindings = findingsOf(c)
		return document(c, r)
	}
	if out == "-" {
		r.print(c.App.ErrWriter)
	} else {
		r.print(c.App.Writer)
	}
	return nil
}

// checkLookup checks the options, and returns within how many builds neighbours are looked up, 0 for none.
func checkLookup(c *cli.Context) (neighbours int, err error) {
	if c.Bool("neighbour") {
		neighbours = c.Int("builds")
	} else if c.IsSet("builds") {
		return 0, optionf("builds", "needs --neighbour")
	}
	for _, name := range []string{"os-release", "release", "arch"} {
		if c.IsSet(name) && c.String(name) == "" { // an unset variable, say
			return 0, valuef(name, "", "empty")
		}
	}
	for _, name := range []string{"release", "arch"} {
		if err := (kernel.Key{Release: c.String(name)}).Validate(); err != nil {
			return 0, valuef(name, c.String(name), "%w", err)
		}
	}
	return neighbours, nil
}

// newLookupResult returns the result of a look-up for a host with a distribution that is derived from others.
func newLookupResult(a *archive.Archive, m *archive.Match, like []kernel.Key) *lookupResult {
	r := &lookupResult{Host: m.Want.String(), Match: m.Rule.String(), Reason: m.Reason, SameLayout: m.SameLayout}
	for _, l := range like {
		r.Like = append(r.Like, l.ID+"/"+cmp.Or(l.VersionID, "-"))
	}
	for at, k := range map[*string]kernel.Key{&r.Kernel: m.Key, &r.Below: m.Below, &r.Above: m.Above} {
		if k != (kernel.Key{}) {
			*at = k.String()
		}
	}
	if layout, ok := a.Layout(m.Key); ok {
		r.Layout = &layout
	}
	return r
}

// print prints the result as text.
func (r *lookupResult) print(w io.Writer) {
	escape.Fprintf(w, "host:   %s\n", r.Host)
	if len(r.Like) > 0 {
		escape.Fprintf(w, "like:   %s\n", strings.Join(r.Like, ", "))
	}
	escape.Fprintf(w, "match:  %s: %s\n", r.Match, r.Reason)
	if r.Layout != nil {
		escape.Fprintf(w, "kernel: %s (layout %d)\n", r.Kernel, *r.Layout)
		return
	}
	if r.Below != "" {
		escape.Fprintf(w, "below:  %s\n", r.Below)
	}
	if r.Above != "" {
		escape.Fprintf(w, "above:  %s\n", r.Above)
	}
	if r.SameLayout {
		escape.Fprintf(w, "hint:   both neighbours have the same BTF, so this kernel may have it too\n")
	}
}
