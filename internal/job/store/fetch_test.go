// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testrepo"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// kernels returns the releases of the kernels in a .btfc file.
func kernelsIn(t *testing.T, path string) (releases []string) {
	t.Helper()
	in, f, _, err := openPacked(path)
	if err != nil {
		t.Fatal(err)
	}
	if f == nil {
		return nil
	}
	defer in.Close()
	for _, e := range f.Entries() {
		if s := (kernel.Key{ID: "test", VersionID: "1", Arch: "x86_64"}); (kernel.Key{ID: e.Key.ID, VersionID: e.Key.VersionID, Arch: e.Key.Arch}) != s {
			t.Errorf("%s: want a kernel of test/1/x86_64", e.Key)
		}
		releases = append(releases, e.Key.Release)
	}
	return releases
}

// states returns the states and reasons of a run's kernels, by release.
func states(res *FetchResult) map[string]string {
	all := make(map[string]string)
	for _, k := range res.Kernels {
		all[k.unit.Kernel.Release] = string(k.State)
		if k.Reason != "" {
			all[k.unit.Kernel.Release] += ": " + k.Reason
		}
		if k.Later {
			all[k.unit.Kernel.Release] += " (later)"
		}
	}
	return all
}

// eachClient runs a test with a repository of apt and, for TestFetch or at night, one of dnf. Clients take seconds to read a repository.
func eachClient(t *testing.T, test func(t *testing.T, client string, r *testrepo.Repository)) {
	if !raceflag.Enabled || t.Name() != "TestFetch" {
		slow.Skip(t)
	}
	clients := []string{"apt"}
	if (t.Name() == "TestFetch" || slow.Night()) && !raceflag.Enabled { // the client runs in its own process
		clients = append(clients, "dnf")
	}
	for _, client := range clients {
		t.Run(client, func(t *testing.T) { test(t, client, testrepo.New(t, client)) })
	}
}

// fetchFrom returns a configuration with a new cache and file.
func fetchFrom(t *testing.T, r *testrepo.Repository, url string) FetchConfig {
	t.Helper()
	c, err := fetch.Parse([]byte(r.Catalogue(url, r.Key())))
	if err != nil {
		t.Fatal(err)
	}
	series, err := c.Series([]string{"test/1"})
	if err != nil {
		t.Fatal(err)
	}
	return FetchConfig{Series: series, Path: filepath.Join(t.TempDir(), "x.btfc"), Cache: t.TempDir(), Jobs: 2}
}

// TestFetch fetches from a repository that changes between the runs.
func TestFetch(t *testing.T) {
	eachClient(t, func(t *testing.T, _ string, r *testrepo.Repository) {
		one := r.Add(r.Release(1), blob("one"))
		two := r.Add(r.Release(2), blob("two"))
		empty := r.Add(r.Release(3), []byte("no kernel"))
		r.Index()
		cfg := fetchFrom(t, r, r.URL)
		type counts struct{ New, There, Wanted, Withdrawn, Unusable, Failed int }
		step := func(wantStates map[string]string, downloads []string, count counts) *FetchResult {
			t.Helper()
			res, err := Fetch(background, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(wantStates, states(res)); d != "" {
				t.Error("states", d)
			}
			if got := r.Downloads(); !slices.Equal(got, downloads) {
				t.Errorf("downloads %v, want %v", got, downloads)
			}
			if got := (counts{res.Count(New), res.There, res.Count(Wanted), res.Withdrawn, res.Unusable, res.Count(Failed)}); got != count {
				t.Errorf("counts %+v, want %+v", got, count)
			}
			if left, err := os.ReadDir(cfg.Series[0].Folder(cfg.Cache)); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool {
				return e.Name() == "packages" || e.Name() == "reading"
			}) {
				t.Errorf("left behind: %v, %v", left, err)
			}
			return res
		}
		none := map[string]string{}
		cfg.DryRun = true
		cfg.Options.Select = []selection.Selector{selector(t, "tset/1")}
		if res, err := Fetch(background, cfg); err != nil || len(res.Kernels) > 0 || len(res.Selection.Unmatched) != 1 || res.Selection.Unmatched[0].Nearest == "" {
			t.Errorf("a selector that matches nothing: %+v, %v", res, err)
		}
		cfg.Options.Select = nil
		res := step(map[string]string{r.Release(1): "wanted", r.Release(2): "wanted", r.Release(3): "wanted"}, nil, counts{Wanted: 3})
		if _, err := os.Stat(cfg.Path); err == nil || res.Kernels[0].Bytes < 100 {
			t.Errorf("dry run: %+v, %v", res.Kernels[0], err)
		}
		cfg.Limit = res.Kernels[0].Bytes
		var over *LimitError
		if res, err := Fetch(background, cfg); !errors.As(err, &over) || len(res.Kernels) != 3 || over.Kernels != 3 || over.Size <= 2*cfg.Limit {
			t.Errorf("dry run beyond the limit: %+v, %v", res, err)
		}
		cfg.DryRun = false
		if res, err := Fetch(background, cfg); !errors.As(err, &over) || res != nil || len(r.Downloads()) > 0 {
			t.Errorf("beyond the limit: %+v, %v", res, err)
		}
		cfg.DryRun, cfg.Newest, cfg.Limit = false, 2, res.Kernels[1].Bytes+res.Kernels[2].Bytes
		const unusable = "failed: holds no BTF"
		res, err := Fetch(background, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]string{r.Release(2): "new", r.Release(3): unusable}, states(res)); d != "" {
			t.Error("states", d)
		}
		r.Downloads()
		cfg.Newest, cfg.Limit = 0, 0
		step(map[string]string{r.Release(1): "new"}, []string{one}, counts{New: 1, There: 1, Unusable: 1})
		step(none, nil, counts{There: 2, Unusable: 1})
		cfg.Retry = true
		step(map[string]string{r.Release(3): unusable}, []string{empty}, counts{There: 2, Failed: 1})
		cfg.Retry = false
		if d := cmp.Diff([]string{r.Release(2), r.Release(1)}, kernelsIn(t, cfg.Path)); d != "" {
			t.Error(d)
		}

		four := r.Add(r.Release(4), blob("four"))
		if err := os.Remove(filepath.Join(r.Dir, two)); err != nil {
			t.Fatal(err)
		}
		r.Index()
		step(map[string]string{r.Release(4): "new"}, []string{four}, counts{New: 1, There: 1, Withdrawn: 1, Unusable: 1})
		cfg.Prune = []selection.Selector{selector(t, "test")}
		if res := step(none, nil, counts{There: 2, Withdrawn: 1, Unusable: 1}); res.Pruned != 1 {
			t.Errorf("%d kernels pruned", res.Pruned)
		}
		step(none, nil, counts{There: 2, Unusable: 1})
		if d := cmp.Diff([]string{r.Release(1), r.Release(4)}, kernelsIn(t, cfg.Path)); d != "" {
			t.Error(d)
		}
	})
}

// TestNewest chooses the newest kernels of each line of a series by release, and of one release the flavour with the shortest name. The line that
// the distribution began with is first.
func TestNewest(t *testing.T) {
	var units []*fetch.Offer
	for _, release := range []string{
		"6.12.9+deb12-amd64", "6.1.0-9-amd64", "6.1.0-47-amd64", "6.1.0-47-cloud-amd64", "6.1.0-47-rt-amd64", "6.12.10+deb12-rt-amd64",
		"6.12.10+deb12-amd64", "6.12.10+deb12-cloud-amd64", "6.9.7+bpo-amd64",
	} {
		units = append(units, &fetch.Offer{Kernel: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: release}})
	}
	lines := [][]string{
		{"6.1.0-47-amd64", "6.1.0-47-rt-amd64", "6.1.0-47-cloud-amd64", "6.1.0-9-amd64"}, {"6.9.7+bpo-amd64"},
		{"6.12.10+deb12-amd64", "6.12.10+deb12-rt-amd64", "6.12.10+deb12-cloud-amd64", "6.12.9+deb12-amd64"},
	}
	for n := range 6 {
		f := &fetcher{FetchConfig: FetchConfig{Newest: n}}
		var got, want []string
		for _, u := range f.selected(slices.Clone(units)) {
			got = append(got, u.Kernel.Release)
		}
		for _, line := range lines {
			if n > 0 {
				line = line[:min(n, len(line))]
			}
			for _, u := range units {
				if slices.Contains(line, u.Kernel.Release) {
					want = append(want, u.Kernel.Release)
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the newest %d: %s", n, d)
		}
	}
	own := &fetcher{FetchConfig: FetchConfig{Newest: 1, Own: true}}
	debug := &fetch.Offer{Kernel: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "5.4.0-1-amd64"}, Debug: true}
	if got := own.selected(append([]*fetch.Offer{debug}, units...)); len(got) != 1 || got[0].Kernel.Release != "6.1.0-47-amd64" {
		t.Errorf("the newest of the oldest: %v", got)
	}
	without := &fetcher{FetchConfig: FetchConfig{WithoutBTF: true}, res: new(FetchResult)}
	if got := without.selected(append([]*fetch.Offer{debug}, units...)); len(got) != 1 || got[0] != debug || without.res.OwnBTF != len(units) {
		t.Errorf("without BTF: %v, %d with BTF", got, without.res.OwnBTF)
	}
	f := &fetcher{FetchConfig: FetchConfig{Newest: 1}}
	f.Options.Select = []selection.Selector{selector(t, "release=6.1.*")}
	if got := f.selected(units); len(got) != 1 || got[0].Kernel.Release != "6.1.0-47-amd64" {
		t.Errorf("the newest 6.1: %v", got)
	}
}

// TestFetchUnreadable wants the errors of all series, in order, if none can be read.
func TestFetchUnreadable(t *testing.T) {
	c, err := fetch.Parse([]byte("distributions:\n- id: test\n  versions: {\"1\": a, \"2\": b, \"3\": c}\n  client: apt\n  machines: {x86_64: amd64}\n" +
		"  keys: [/nowhere/key.gpg]\n  repositories: [{url: \"http://h/\", suites: [x]}]\n  packages: [{kernel: 'linux-(?P<release>.+)'}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	series, err := c.Series([]string{"test/3", "test/1", "test/2"})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := Fetch(background, FetchConfig{Series: series, Cache: t.TempDir(), DryRun: true})
		if err == nil {
			t.Fatal("no error")
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "test/3/x86_64: ") || !strings.HasPrefix(lines[1], "test/1/x86_64: ") || !strings.HasPrefix(lines[2], "test/2/x86_64: ") {
			t.Errorf("%v", err)
		}
	}
}

// TestFetchLocks wants a run to wait for another one with the same output or series, and a dry run not to wait.
func TestFetchLocks(t *testing.T) {
	eachClient(t, func(t *testing.T, _ string, r *testrepo.Repository) {
		r.Add(r.Release(1), blob("one"))
		r.Index()
		cfg := fetchFrom(t, r, r.URL)
		series := cfg.Series[0].Folder(cfg.Cache)
		for _, path := range []string{cfg.Path, series} {
			unlock, err := output.Lock(background, path, path == series, nil)
			if err != nil {
				t.Fatal(err)
			}
			var waited []string
			run := cfg
			run.Waiting = func(path string) {
				waited = append(waited, path)
				unlock()
			}
			run.DryRun = true
			if _, err := Fetch(background, run); err != nil || len(waited) > 0 {
				t.Errorf("a dry run waits for %q: %v", waited, err)
			}
			run.DryRun = false
			if _, err := Fetch(background, run); err != nil || !slices.Equal(waited, []string{path}) {
				t.Errorf("a run waits for %q, want %s: %v", waited, path, err)
			}
			ctx, cancel := context.WithCancel(background)
			if unlock, err = output.Lock(background, path, path == series, nil); err != nil {
				t.Fatal(err)
			}
			run.Waiting = func(string) { cancel() }
			if res, err := Fetch(ctx, run); !errors.Is(err, context.Canceled) || res != nil {
				t.Errorf("a run that ends while it waits: %v, %v", res, err)
			}
			unlock()
		}
		other, err := output.Lock(background, filepath.Join(cfg.Cache, "test-2-x86_64"), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other()
		cfg.Waiting = func(path string) { t.Errorf("waits for %s", path) }
		if _, err := Fetch(background, cfg); err != nil {
			t.Error(err)
		}
	})
}

// TestFetchOnDisk reads a repository with a file address.
func TestFetchOnDisk(t *testing.T) {
	eachClient(t, func(t *testing.T, _ string, r *testrepo.Repository) {
		for n := range 3 {
			r.Add(r.Release(n+1), blob(fmt.Sprint("kernel", n)))
		}
		r.Index()
		cfg := fetchFrom(t, r, "file://"+r.Dir)
		if _, err := Fetch(background, cfg); err != nil {
			t.Fatal(err)
		}
		if got, want := kernelsIn(t, cfg.Path), []string{r.Release(1), r.Release(2), r.Release(3)}; !slices.Equal(got, want) {
			t.Errorf("kernels %v, want %v", got, want)
		}
	})
}

// TestFetchDamage fetches packages that are cut short, vanish, or have another signature or none. The run goes on with the others,
// and the next run tries again.
func TestFetchDamage(t *testing.T) {
	eachClient(t, func(t *testing.T, client string, r *testrepo.Repository) {
		cut, gone := r.Add(r.Release(1), blob("one")), r.Add(r.Release(2), blob("two"))
		r.Add(r.Release(3), blob("three"))
		r.Index()
		cfg := fetchFrom(t, r, r.URL)
		r.Answer("cut "+cut, "gone "+gone)
		res, err := Fetch(background, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := states(res)
		for _, n := range []int{1, 2} {
			if s := got[r.Release(n)]; !strings.HasPrefix(s, "failed: ") || !strings.HasSuffix(s, " (later)") {
				t.Errorf("%s: %s", r.Release(n), s)
			}
		}
		if got := kernelsIn(t, cfg.Path); !slices.Equal(got, []string{r.Release(3)}) {
			t.Errorf("kernels %v", got)
		}
		r.Answer()
		if _, err := Fetch(background, cfg); err != nil {
			t.Fatal(err)
		}
		if got := kernelsIn(t, cfg.Path); len(got) != 3 {
			t.Errorf("kernels %v", got)
		}

		// Another key signs from now on.
		r.NewKey()
		r.Add(r.Release(4), blob("four"))
		r.Index()
		res, err = Fetch(background, cfg)
		if client == "apt" {
			if err == nil || !strings.Contains(err.Error(), "signatures") {
				t.Errorf("error %v", err)
			}
		} else if got := states(res); err != nil || !strings.Contains(got[r.Release(4)], "its signature is wrong or missing") {
			t.Errorf("%v, %v", got, err)
		}
		if got := kernelsIn(t, cfg.Path); len(got) != 3 {
			t.Errorf("kernels %v", got)
		}
	})
}

// TestFetchInterrupted ends a run while its third package is downloaded. The kernels before it are kept, and the next run goes on.
func TestFetchInterrupted(t *testing.T) {
	eachClient(t, func(t *testing.T, _ string, r *testrepo.Repository) {
		for n := range 4 {
			r.Add(r.Release(n+1), blob(fmt.Sprint("kernel", n)))
		}
		r.Index()
		cfg := fetchFrom(t, r, r.URL)
		cfg.Jobs = 1
		ctx, cancel := context.WithCancel(background)
		r.StallAt(r.Release(3), cancel)
		res, err := Fetch(ctx, cfg)
		if !errors.Is(err, context.Canceled) || res.Count(Failed) > 0 {
			t.Errorf("error %v, states %v", err, states(res))
		}
		if got := kernelsIn(t, cfg.Path); !slices.Equal(got, []string{r.Release(1), r.Release(2)}) {
			t.Errorf("kernels %v", got)
		}
		r.Answer()
		r.Downloads()
		res, err = Fetch(background, cfg)
		if got := kernelsIn(t, cfg.Path); err != nil || len(got) != 4 || res.Downloads != 2 {
			t.Errorf("kernels %v, %v", got, err)
		}
	})
}

// TestFetchKeep keeps packages instead of their kernels. An interrupted run leaves only complete files, and the next run goes on.
func TestFetchKeep(t *testing.T) {
	eachClient(t, func(t *testing.T, _ string, r *testrepo.Repository) {
		added := make(map[string]string) // files of the repository, by release
		for n := range 3 {
			added[r.Release(n+1)] = r.Add(r.Release(n+1), blob(fmt.Sprint("kernel", n)))
		}
		r.Index()
		cfg := fetchFrom(t, r, r.URL)
		cfg.Path, cfg.Keep, cfg.Jobs = "", filepath.Join(t.TempDir(), "packages"), 1
		check := func(ctx context.Context, wantErr error, downloads, there int, releases ...string) {
			t.Helper()
			res, err := Fetch(ctx, cfg)
			if !errors.Is(err, wantErr) || res.Downloads != downloads || len(r.Downloads()) < downloads {
				t.Errorf("error %v, %d downloads, want %d", err, res.Downloads, downloads)
			}
			if res.There != there {
				t.Errorf("%d there, want %d", res.There, there)
			}
			var got, want []string
			filepath.WalkDir(cfg.Keep, func(path string, e os.DirEntry, err error) error {
				if err != nil || !e.IsDir() {
					got = append(got, path)
				}
				return nil
			})
			for _, release := range releases {
				data, err := os.ReadFile(filepath.Join(r.Dir, added[release]))
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(got, func(path string) bool { return strings.Contains(path, release) })
				if i < 0 {
					t.Fatalf("no package of %s in %q", release, got)
				}
				path := got[i]
				want = append(want, path)
				if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, data) || filepath.Dir(path) != filepath.Join(cfg.Keep, "test/1/x86_64") {
					t.Errorf("%s differs from the repository's, or %v", path, err)
				}
			}
			if slices.Sort(res.Kept); !slices.Equal(got, want) || wantErr == nil && cfg.Newest == 0 && !slices.Equal(got, res.Kept) {
				t.Errorf("files %q, want %q, result %q", got, want, res.Kept)
			}
		}
		ctx, cancel := context.WithCancel(background)
		r.StallAt(r.Release(2), cancel)
		check(ctx, context.Canceled, 1, 0, r.Release(1))
		r.Answer()
		r.Downloads()
		cfg.Newest = 1
		check(background, nil, 1, 0, r.Release(1), r.Release(3))
		check(background, nil, 0, 1, r.Release(1), r.Release(3))
		cfg.Newest = 0
		check(background, nil, 1, 2, r.Release(1), r.Release(2), r.Release(3))
	})
}

// TestFetchFullDisk downloads nothing if there is not enough space.
func TestFetchFullDisk(t *testing.T) {
	defer func(old func(string) (int64, error)) { freeSpace = old }(freeSpace)
	eachClient(t, func(t *testing.T, _ string, r *testrepo.Repository) {
		r.Add(r.Release(1), blob("one"))
		r.Index()
		cfg := fetchFrom(t, r, r.URL)
		freeSpace = func(string) (int64, error) { return spare, nil }
		res, err := Fetch(background, cfg)
		if got := states(res)[r.Release(1)]; err != nil || !strings.Contains(got, "67.1 MB free") || !strings.HasSuffix(got, "no space left on device (later)") {
			t.Errorf("%s, %v", got, err)
		}
		if got := r.Downloads(); len(got) > 0 {
			t.Errorf("downloads %v", got)
		}
		freeSpace = func(string) (int64, error) { return 2 * spare, nil }
		if _, err := Fetch(background, cfg); err != nil || len(kernelsIn(t, cfg.Path)) != 1 {
			t.Error(err)
		}
	})
}
