// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testrepo"
)

// TestFetchKilled kills a run while its third package is downloaded: by KILL, and by INT. While it runs, a second run
// waits. The kernels before the third are kept, and the next run goes on.
func TestFetchKilled(t *testing.T) {
	slow.Nightly(t)
	if raceflag.Enabled {
		t.Skip("skipped: TestFetchInterrupted has the same goroutines")
	}
	kernel, err := os.ReadFile("../../testdata/vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []string{"apt", "dnf"} {
		t.Run(client, func(t *testing.T) {
			repo := testrepo.New(t, client)
			for n := range 4 {
				repo.Add(repo.Release(n+1), kernel)
			}
			repo.Index()
			dir := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
			write(t, filepath.Join(dir, "my.yaml"), repo.Catalogue(repo.URL, repo.Key()))
			for _, sig := range []os.Signal{os.Kill, os.Interrupt} {
				out := filepath.Join(dir, fmt.Sprintf("%d.btfc", sig))
				args := []string{"corpus", "fetch", "test/1", "--catalogue", filepath.Join(dir, "my.yaml"), "-j", "1", "-o", out}
				stalled := make(chan bool, 10)
				repo.StallAt(repo.Release(3), func() { stalled <- true })
				first := watch(t, exec.Command("btfgen", args...))
				select {
				case <-stalled:
				case <-first.ended:
					t.Errorf("no download: %s", first)
				}
				second := watch(t, exec.Command("btfgen", args...))
				if !second.says(out + ": waiting for another process that writes it") {
					t.Errorf("second run: %s", second)
				}
				second.Process.Kill()
				second.end()
				first.Process.Signal(sig)
				err := first.end()
				if strings.Contains(first.String(), string(damaged)) {
					t.Errorf("%v: %s", sig, first)
				}
				if want := -1; exitCode(err) != want {
					t.Errorf("%v: %v, %s", sig, err, first)
				}
				list := func() string {
					out, err := exec.Command("btfgen", "corpus", "list", out).CombinedOutput()
					if err != nil {
						t.Errorf("%v: %s", err, out)
					}
					return string(out)
				}
				if got := list(); !strings.Contains(got, repo.Release(2)) || strings.Contains(got, repo.Release(3)) {
					t.Errorf("%v: %s", sig, got)
				}
				repo.Answer()
				repo.Downloads()
				next, err := exec.Command("btfgen", args...).CombinedOutput()
				if got := repo.Downloads(); err != nil || len(got) != 2 || !strings.Contains(list(), repo.Release(4)) {
					t.Errorf("next run: %v, %s, downloads %v", err, next, got)
				}
			}
			if left, err := filepath.Glob(filepath.Join(dir, "cache/btfgen/fetch/*/packages/*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestFetchDryRun plans N kernels of a series with --newest N while another run has the lock, and exits with 0.
func TestFetchDryRun(t *testing.T) {
	slow.Skip(t)
	repo := testrepo.New(t, "apt")
	for n := range 4 {
		repo.Add(repo.Release(n+1), []byte("not read"))
	}
	repo.Index()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	write(t, "my.yaml", repo.Catalogue(repo.URL, repo.Key()))
	unlock, err := output.Lock(t.Context(), "x.btfc", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var stdout, stderr bytes.Buffer
	if s := run(t.Context(), strings.Fields("corpus fetch test/1 --catalogue my.yaml --newest 2 --dry-run -o x.btfc"), &stdout, &stderr); s != statusOK {
		t.Errorf("exit status %d", s)
	}
	if !strings.Contains(stderr.String(), "2 kernels to download") || strings.Contains(stderr.String(), "waiting") ||
		!strings.Contains(stdout.String(), repo.Release(4)) || !strings.Contains(stdout.String(), repo.Release(3)) || strings.Contains(stdout.String(), repo.Release(2)) {
		t.Errorf("%s%s", &stderr, &stdout)
	}
}
