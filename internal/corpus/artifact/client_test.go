// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestWaiting runs a program that says nothing until Waiting was called.
func TestWaiting(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs sh")
	}
	before := quiet
	quiet = time.Millisecond
	defer func() { quiet = before }()
	bin := t.TempDir()
	called := filepath.Join(bin, "called")
	script := fmt.Sprintf("#!/bin/sh\nuntil [ -e %s ]; do sleep 0.01; done\nprintf '{\"manifest\":\"e30=\",\"digest\":\"%s\"}\\n'\n", called, Digest([]byte("{}")))
	if err := os.WriteFile(filepath.Join(bin, Program), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var registries []string
	c := &Client{Waiting: func(registry string) {
		registries = append(registries, registry)
		if err := os.WriteFile(called, nil, 0o600); err != nil {
			t.Error(err)
		}
	}}
	text, _, err := c.Manifest(t.Context(), "localhost:5000/some/corpus:v1")
	if err != nil || string(text) != "{}" || len(registries) != 1 || registries[0] != "localhost:5000" {
		t.Errorf("%q, %v; waits for %q, want localhost:5000 once", text, err, registries)
	}
}
