// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testhosts"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// hostArchive returns an archive with all kernels of the table of hosts, each with BTF of its own.
func hostArchive(t *testing.T, hosts []*testhosts.Host) []byte {
	t.Helper()
	var kernels []archive.Kernel
	for i, k := range testhosts.Kernels(t, hosts) {
		b, err := btf.New(testbtf.Types(t, binary.LittleEndian, fmt.Sprintf("struct s%d 4: a int 0", i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, archive.Kernel{Key: k, BTF: encoded(t, archive.TypesOf(b), binary.LittleEndian)})
	}
	return mustWrite(t, kernels)
}

// judgeHost checks what a reader says of a host.
func judgeHost(t *testing.T, h *testhosts.Host, s kernel.System, lookup func(neighbours int) archive.Match) {
	t.Helper()
	if s.Key != h.Key {
		t.Errorf("%s: the key is %s, want %s", h.Name, s.Key, h.Key)
	}
	for n, want := range []string{h.Serves, h.Neighbour} {
		rule := h.Rule
		if n > 0 && want == "" {
			want = h.Serves
		} else if n > 0 {
			rule = "neighbour"
		}
		m := lookup(n)
		got := ""
		if m.Found() {
			got = m.Key.String()
		}
		if got != want || m.Rule.String() != rule {
			t.Errorf("%s, %d neighbours: %s %s, want %s %s: %s", h.Name, n, m.Rule, got, rule, want, m.Reason)
		}
	}
}

// TestHosts finds the hosts of the table in one archive with all kernels of the table.
func TestHosts(t *testing.T) {
	hosts := testhosts.Read(t)
	data := hostArchive(t, hosts)
	a := mustOpen(t, data)
	distributions, rules := make(map[string]bool), make(map[string]int)
	for _, h := range hosts {
		s, err := kernel.Host(h.Options(t))
		if err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		judgeHost(t, h, s, func(n int) archive.Match { return a.Lookup(s.Key, n, s.Like...) })
		distributions[h.Key.ID] = true
		if h.Neighbour != "" {
			rules["neighbour"]++
		} else {
			rules[h.Rule]++
		}
		if h.Source == "" {
			t.Errorf("%s: no source", h.Name)
		}
	}
	t.Logf("%d hosts of %d distributions: %v", len(hosts), len(distributions), rules)
	page, err := os.ReadFile("../../docs/howto-tracers.md")
	if err != nil {
		t.Fatal(err)
	}
	figures := []string{fmt.Sprintf("has %d hosts of %d distributions", len(hosts), len(distributions))}
	for rule, n := range rules {
		figures = append(figures, fmt.Sprintf("| %s | %d |", rule, n))
	}
	for _, f := range figures {
		if !strings.Contains(string(page), f) {
			t.Errorf("docs/howto-tracers.md has no %q", f)
		}
	}
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		if st := c.Open(t, data).Status; st != readers.OK {
			t.Fatalf("status %d", st)
		}
		for _, h := range hosts {
			s, st, why := c.Host(t, h.Options(t))
			if st != readers.OK {
				t.Fatalf("%s: %s", h.Name, why)
			}
			judgeHost(t, h, s, func(n int) archive.Match { return c.Lookups(t, []kernel.Key{s.Key}, n, s.Like...)[0] })
		}
	})
}
