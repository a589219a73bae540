// SPDX-License-Identifier: Apache-2.0

package raceflag

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/btfgen/btfgen/internal/workers"
)

// claim is a test that calls SkipSerial.
type claim struct {
	testing.TB
	cleanups []func()
	errors   int
	skipped  bool
}

func (c *claim) Cleanup(f func())          { c.cleanups = append(c.cleanups, f) }
func (c *claim) Errorf(s string, _ ...any) { c.errors++ }
func (c *claim) Skip(...any)               { c.skipped = true }

func (c *claim) run(do func()) {
	if SkipSerial(c); !c.skipped {
		do()
	}
	for len(c.cleanups) > 0 {
		last := len(c.cleanups) - 1
		c.cleanups[last]()
		c.cleanups = c.cleanups[:last]
	}
}

// TestSkipSerial wants tests to fail that claim to be serial, and share work.
func TestSkipSerial(t *testing.T) {
	if Enabled {
		t.Skip("skipped: SkipSerial then skips")
	}
	none := func(int) error { return nil }
	group := func(jobs int) {
		g, _ := workers.NewGroup(t.Context(), jobs)
		g.Start(func() error { return nil })
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for name, tt := range map[string]struct {
		do    func()
		fails bool
	}{
		"nothing":       {func() {}, false},
		"one worker":    {func() { _ = workers.Each(context.Background(), 1, 3, none) }, false},
		"one item":      {func() { _ = workers.Each(context.Background(), 3, 1, none) }, false},
		"alone":         {func() { workers.Together(1, func() {}) }, false},
		"two workers":   {func() { _ = workers.Each(context.Background(), 2, 3, none) }, true},
		"together":      {func() { workers.Together(2, func() {}) }, true},
		"group":         {func() { group(1) }, true},
		"beside":        {func() { workers.Beside(&wg, func() {}); wg.Wait() }, true},
		"other process": {func() { Report() }, true},
	} {
		if name == "other process" { // this one has shared work before
			workers.Together(2, func() {})
		}
		c := &claim{TB: t}
		if c.run(tt.do); (c.errors > 0) != tt.fails {
			t.Errorf("%s: %d errors", name, c.errors)
		}
		if v, ok := os.LookupEnv(reportTo); ok {
			t.Errorf("%s is left: %s", reportTo, v)
		}
	}
	outer := &claim{TB: t}
	outer.run(func() {
		inner := &claim{TB: t}
		inner.run(func() { Report() })
		if inner.errors == 0 || !strings.Contains(os.Getenv(reportTo), t.Name()) {
			t.Errorf("inner claim: %d errors", inner.errors)
		}
	})
	if outer.errors == 0 {
		t.Error("outer claim: no error")
	}
}
