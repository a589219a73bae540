// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// repository is a signed repository on disk, which an HTTP server serves.
type repository struct {
	t      *testing.T
	client string // apt or dnf
	dir    string
	home   string // of gpg
	server *httptest.Server

	mu    sync.Mutex
	asked []string                                                 // packages that were downloaded
	hook  func(w http.ResponseWriter, r *http.Request) (done bool) // before a package is served
}

// newRepository returns an empty repository. It skips the test if a program is missing.
func newRepository(t *testing.T, client string) *repository {
	t.Helper()
	programs := map[string][]string{
		"apt": {"apt-get", "apt-cache", "apt-ftparchive", "dpkg-deb", "gpg"},
		"dnf": {"dnf", "createrepo_c", "rpmbuild", "rpmsign", "rpmkeys", "gpg"},
	}
	for _, p := range programs[client] {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("needs ", p, ": ", err)
		}
	}
	r := &repository{t: t, client: client, dir: t.TempDir()}
	r.newKey()
	files := http.FileServer(http.Dir(r.dir))
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if ext := filepath.Ext(req.URL.Path); ext == ".deb" || ext == ".rpm" {
			r.mu.Lock()
			r.asked = append(r.asked, filepath.Base(req.URL.Path))
			hook := r.hook
			r.mu.Unlock()
			if hook != nil && hook(w, req) {
				return
			}
		}
		files.ServeHTTP(w, req)
	}))
	t.Cleanup(r.server.Close)
	return r
}

// newKey makes another key, with which the repository is signed from now on.
func (r *repository) newKey() {
	home, err := os.MkdirTemp("", "gpg") // with a short name, for its sockets
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		os.RemoveAll(home)
	})
	r.home = home
	r.run("", "gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "test@example.org", "rsa2048", "sign", "never")
}

// key writes the public key to a file.
func (r *repository) key() string {
	name := map[string]string{"apt": "key.gpg", "dnf": "key.asc"}[r.client]
	args := []string{"gpg", "--homedir", r.home, "--batch", "--yes", "--export", "-o", filepath.Join(r.home, name)}
	if r.client == "dnf" {
		args = slices.Insert(args, 4, "--armor")
	}
	r.run("", args...)
	return filepath.Join(r.home, name)
}

func (r *repository) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// add adds a package with a file for a release, and returns the file name of the package.
func (r *repository) add(release string, content []byte) string {
	r.t.Helper()
	if r.client == "apt" {
		root := write(r.t, r.t.TempDir(), map[string][]byte{
			"boot/vmlinuz-" + release: content,
			"DEBIAN/control": []byte("Package: linux-image-" + release + "\nVersion: 1:6.1-1\nArchitecture: amd64\nMaintainer: Test <test@example.org>\n" +
				"Description: a kernel\n"),
		})
		file := "linux-image-" + release + "_6.1-1_amd64.deb"
		r.run("", "dpkg-deb", "--root-owner-group", "--build", root, filepath.Join(r.dir, file))
		return file
	}
	top := r.t.TempDir()
	version, rel, _ := strings.Cut(strings.TrimSuffix(release, ".x86_64"), "-")
	write(r.t, top, map[string][]byte{"content": content, "kernel.spec": []byte(fmt.Sprintf(`Name: kernel-core
Version: %s
Release: %s
Summary: a kernel
License: GPL
%%description
A kernel.
%%install
mkdir -p %%{buildroot}/lib/modules/%[3]s
cp %[4]s/content %%{buildroot}/lib/modules/%[3]s/vmlinuz
%%files
/lib/modules
`, version, rel, release, top))})
	r.run("", "rpmbuild", "--quiet", "--define", "_topdir "+top, "--target", "x86_64", "-bb", filepath.Join(top, "kernel.spec"))
	file := "kernel-core-" + release + ".rpm"
	data, err := os.ReadFile(filepath.Join(top, "RPMS/x86_64", file))
	if err != nil {
		r.t.Fatal(err)
	}
	write(r.t, r.dir, map[string][]byte{file: data})
	r.sign(file)
	return file
}

// sign signs an RPM package.
func (r *repository) sign(file string) {
	r.t.Helper()
	gpg, err := exec.LookPath("gpg")
	if err != nil {
		r.t.Fatal(err)
	}
	r.run(r.dir, "rpmsign", "--define", "__gpg "+gpg, "--define", "_gpg_path "+r.home, "--define", "_gpg_name test@example.org", "--addsign", file)
}

// index writes the indexes of the repository, and signs those of apt.
func (r *repository) index() {
	r.t.Helper()
	if r.client == "dnf" {
		r.run("", "createrepo_c", "--quiet", r.dir)
		return
	}
	packages := r.run(r.dir, "apt-ftparchive", "packages", ".")
	write(r.t, r.dir, map[string][]byte{"dists/test/main/binary-amd64/Packages": []byte(packages)})
	os.Remove(filepath.Join(r.dir, "dists/test/Release"))
	os.Remove(filepath.Join(r.dir, "dists/test/InRelease"))
	release := r.run(r.dir, "apt-ftparchive", "-o", "APT::FTPArchive::Release::Suite=test", "-o", "APT::FTPArchive::Release::Components=main",
		"-o", "APT::FTPArchive::Release::Architectures=amd64", "release", "dists/test")
	write(r.t, r.dir, map[string][]byte{"dists/test/Release": []byte(release)})
	r.run(r.dir, "gpg", "--homedir", r.home, "--batch", "--yes", "--clearsign", "-o", "dists/test/InRelease", "dists/test/Release")
}

// series returns the series of a catalogue with the repository.
func (r *repository) series(url, key string) []*fetch.Series {
	r.t.Helper()
	packages := "kernel: 'linux-image-(?P<release>[0-9.]+-[0-9]+-amd64)'"
	where := fmt.Sprintf("{url: %q, suites: [test], components: [main]}", url)
	machine := "amd64"
	if r.client == "dnf" {
		packages, where, machine = "kernel: kernel-core", fmt.Sprintf("{url: %q}", url), "x86_64"
	}
	c, err := fetch.Parse([]byte(fmt.Sprintf("distributions:\n- id: test\n  versions: {\"1\": x}\n  client: %s\n  machines: {x86_64: %s}\n"+
		"  keys: [%s]\n  repositories: [%s]\n  packages: [{%s}]\n", r.client, machine, key, where, packages)))
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := c.Series([]string{"test/1"})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// releases are those of the kernels in the tests.
func (r *repository) release(n int) string {
	if r.client == "dnf" {
		return fmt.Sprintf("6.1.0-%d.el9.x86_64", n)
	}
	return fmt.Sprintf("6.1.0-%d-amd64", n)
}

// downloads returns the packages that were downloaded since the last call.
func (r *repository) downloads() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := slices.Compact(r.asked)
	r.asked = nil
	return asked
}

func (r *repository) setHook(hook func(http.ResponseWriter, *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook = hook
}

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

func eachClient(t *testing.T, test func(t *testing.T, r *repository)) {
	for _, client := range []string{"apt", "dnf"} {
		t.Run(client, func(t *testing.T) { test(t, newRepository(t, client)) })
	}
}

// fetchConfig returns a configuration with a new cache and file.
func (r *repository) config(url string) FetchConfig {
	return FetchConfig{Series: r.series(url, r.key()), Path: filepath.Join(r.t.TempDir(), "x.btfc"), Cache: r.t.TempDir(), Jobs: 2}
}

// TestFetch fetches from a repository that changes between the runs.
func TestFetch(t *testing.T) {
	eachClient(t, func(t *testing.T, r *repository) {
		one := r.add(r.release(1), blob("one"))
		two := r.add(r.release(2), blob("two"))
		empty := r.add(r.release(3), []byte("no kernel"))
		r.index()
		cfg := r.config(r.server.URL)
		step := func(wantStates map[string]string, downloads []string, count SeriesCount) *FetchResult {
			t.Helper()
			res, err := Fetch(background, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(wantStates, states(res)); d != "" {
				t.Error("states", d)
			}
			if got := r.downloads(); !slices.Equal(got, downloads) {
				t.Errorf("downloads %v, want %v", got, downloads)
			}
			if len(res.Series) != 1 {
				t.Fatalf("series %+v", res.Series)
			}
			count.Series = res.Series[0].Series
			if d := cmp.Diff(&count, res.Series[0]); d != "" {
				t.Error("counts", d)
			}
			if left, _ := os.ReadDir(filepath.Join(cfg.Cache, "packages")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			return res
		}
		none := map[string]string{}
		cfg.DryRun = true
		res := step(map[string]string{r.release(1): "wanted", r.release(2): "wanted", r.release(3): "wanted"}, nil, SeriesCount{Wanted: 3})
		if _, err := os.Stat(cfg.Path); err == nil || res.Kernels[0].Bytes < 100 {
			t.Errorf("dry run: %+v, %v", res.Kernels[0], err)
		}
		cfg.DryRun, cfg.Newest = false, 2
		const unusable = "failed: holds no BTF"
		res, err := Fetch(background, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]string{r.release(2): "new", r.release(3): unusable}, states(res)); d != "" {
			t.Error("states", d)
		}
		r.downloads()
		cfg.Newest = 0
		step(map[string]string{r.release(1): "new"}, []string{one}, SeriesCount{New: 1, There: 1, Unusable: 1})
		step(none, nil, SeriesCount{There: 2, Unusable: 1})
		cfg.Retry = true
		step(map[string]string{r.release(3): unusable}, []string{empty}, SeriesCount{There: 2, Failed: 1})
		cfg.Retry = false
		if d := cmp.Diff([]string{r.release(2), r.release(1)}, kernelsIn(t, cfg.Path)); d != "" {
			t.Error(d)
		}

		four := r.add(r.release(4), blob("four"))
		if err := os.Remove(filepath.Join(r.dir, two)); err != nil {
			t.Fatal(err)
		}
		r.index()
		step(map[string]string{r.release(4): "new"}, []string{four}, SeriesCount{New: 1, There: 1, Withdrawn: 1, Unusable: 1})
		cfg.Prune, err = corpus.ParseSelectors([]string{"test"})
		if err != nil {
			t.Fatal(err)
		}
		if res := step(none, nil, SeriesCount{There: 2, Withdrawn: 1, Unusable: 1}); res.Pruned != 1 {
			t.Errorf("%d kernels pruned", res.Pruned)
		}
		step(none, nil, SeriesCount{There: 2, Unusable: 1})
		if d := cmp.Diff([]string{r.release(1), r.release(4)}, kernelsIn(t, cfg.Path)); d != "" {
			t.Error(d)
		}
	})
}

// TestFetchOnDisk reads a repository with a file address, and a limit on downloads.
func TestFetchOnDisk(t *testing.T) {
	eachClient(t, func(t *testing.T, r *repository) {
		for n := range 3 {
			r.add(r.release(n+1), blob(fmt.Sprint("kernel", n)))
		}
		r.index()
		cfg := r.config("file://" + r.dir)
		cfg.Jobs, cfg.DryRun = 1, true
		res, err := Fetch(background, cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Limit, cfg.DryRun = res.Kernels[0].Bytes+res.Kernels[1].Bytes, false
		for _, want := range [][]string{{r.release(1), r.release(2)}, {r.release(1), r.release(2), r.release(3)}} {
			if _, err := Fetch(background, cfg); err != nil {
				t.Fatal(err)
			}
			if got := kernelsIn(t, cfg.Path); !slices.Equal(got, want) {
				t.Errorf("kernels %v, want %v", got, want)
			}
		}
	})
}

// TestFetchDamage fetches packages that are cut short, vanish, or have another signature or none. The run goes on with the others,
// and the next run tries again.
func TestFetchDamage(t *testing.T) {
	eachClient(t, func(t *testing.T, r *repository) {
		cut, gone := r.add(r.release(1), blob("one")), r.add(r.release(2), blob("two"))
		r.add(r.release(3), blob("three"))
		r.index()
		cfg := r.config(r.server.URL)
		r.setHook(func(w http.ResponseWriter, req *http.Request) bool {
			switch filepath.Base(req.URL.Path) {
			case cut:
				data, err := os.ReadFile(filepath.Join(r.dir, cut))
				if err != nil {
					return false
				}
				w.Write(data[:len(data)/2])
			case gone:
				http.NotFound(w, req)
			default:
				return false
			}
			return true
		})
		res, err := Fetch(background, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := states(res)
		for _, n := range []int{1, 2} {
			if s := got[r.release(n)]; !strings.HasPrefix(s, "failed: ") || !strings.HasSuffix(s, " (later)") {
				t.Errorf("%s: %s", r.release(n), s)
			}
		}
		if got := kernelsIn(t, cfg.Path); !slices.Equal(got, []string{r.release(3)}) {
			t.Errorf("kernels %v", got)
		}
		r.setHook(nil)
		if _, err := Fetch(background, cfg); err != nil {
			t.Fatal(err)
		}
		if got := kernelsIn(t, cfg.Path); len(got) != 3 {
			t.Errorf("kernels %v", got)
		}

		// Another key signs from now on.
		r.newKey()
		r.add(r.release(4), blob("four"))
		r.index()
		res, err = Fetch(background, cfg)
		if r.client == "apt" {
			if err == nil || !strings.Contains(err.Error(), "signatures") {
				t.Errorf("error %v", err)
			}
		} else if got := states(res); err != nil || !strings.Contains(got[r.release(4)], "its signature is wrong or missing") {
			t.Errorf("%v, %v", got, err)
		}
		if got := kernelsIn(t, cfg.Path); len(got) != 3 {
			t.Errorf("kernels %v", got)
		}
	})
}

// TestFetchInterrupted ends a run while its third package is downloaded. The kernels before it are kept, and the next run goes on.
func TestFetchInterrupted(t *testing.T) {
	eachClient(t, func(t *testing.T, r *repository) {
		for n := range 4 {
			r.add(r.release(n+1), blob(fmt.Sprint("kernel", n)))
		}
		r.index()
		cfg := r.config(r.server.URL)
		cfg.Jobs = 1
		ctx, cancel := context.WithCancel(background)
		r.setHook(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, r.release(3)) {
				return false
			}
			w.Header().Set("Content-Length", "100000")
			w.Write([]byte("the beginning"))
			w.(http.Flusher).Flush()
			cancel()
			<-req.Context().Done()
			return true
		})
		if _, err := Fetch(ctx, cfg); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if got := kernelsIn(t, cfg.Path); !slices.Equal(got, []string{r.release(1), r.release(2)}) {
			t.Errorf("kernels %v", got)
		}
		r.setHook(nil)
		r.downloads()
		res, err := Fetch(background, cfg)
		if got := kernelsIn(t, cfg.Path); err != nil || len(got) != 4 || res.Downloads != 2 {
			t.Errorf("kernels %v, %v", got, err)
		}
	})
}

// TestFetchFullDisk downloads nothing if there is not enough space.
func TestFetchFullDisk(t *testing.T) {
	defer func(old func(string) (int64, error)) { freeSpace = old }(freeSpace)
	eachClient(t, func(t *testing.T, r *repository) {
		r.add(r.release(1), blob("one"))
		r.index()
		cfg := r.config(r.server.URL)
		freeSpace = func(string) (int64, error) { return spare, nil }
		res, err := Fetch(background, cfg)
		if got := states(res)[r.release(1)]; err != nil || !strings.Contains(got, "67.1 MB free") || !strings.HasSuffix(got, "no space left on device (later)") {
			t.Errorf("%s, %v", got, err)
		}
		if got := r.downloads(); got != nil {
			t.Errorf("downloads %v", got)
		}
		freeSpace = func(string) (int64, error) { return 2 * spare, nil }
		if _, err := Fetch(background, cfg); err != nil || len(kernelsIn(t, cfg.Path)) != 1 {
			t.Error(err)
		}
	})
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "500M": 500e6, "2g": 2e9, "3kB": 3e3, "1TB": 1e12, "": 0, "0": 0, "-1": 0, "1.5G": 0, "MB": 0, "9999999T": 0, "1BB": 0} {
		if got, err := ParseSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
