// SPDX-License-Identifier: Apache-2.0

// Package testrepo makes small signed repositories of packages for apt and dnf.
package testrepo

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Repository is a signed repository on disk, which an HTTP server serves.
type Repository struct {
	t       *testing.T
	client  string // apt or dnf
	Dir     string // the folder with its packages
	URL     string // address of Dir
	home    string // home of gpg
	indexes int    // how many were written
	state   string // a folder that the server reads and writes

	mu    sync.Mutex
	begun func() // is called when a download stalls
}

// Missing returns the name of a program that a repository for a client needs and this machine lacks, or "".
func Missing(client string) string {
	programs := map[string][]string{
		"apt": {"apt-get", "apt-cache", "apt-ftparchive", "dpkg-deb", "gpg"},
		"dnf": {"dnf", "createrepo_c", "rpmbuild", "rpmsign", "rpmkeys", "gpg"},
	}
	for _, p := range programs[client] {
		if _, err := exec.LookPath(p); err != nil {
			return p
		}
	}
	return ""
}

// New returns an empty repository. It skips the test if a program is missing.
func New(t *testing.T, client string) *Repository {
	t.Helper()
	if p := Missing(client); p != "" {
		t.Skip("needs ", p)
	}
	r := &Repository{t: t, client: client, Dir: t.TempDir(), state: t.TempDir()}
	r.NewKey()
	r.serve()
	return r
}

// serve starts the server in testdata, which ends when its input does.
func (r *Repository) serve() {
	r.t.Helper()
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", "run", "./testdata/server", r.Dir, r.state)
	cmd.Dir, cmd.Stderr = filepath.Dir(here), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	lines, done := bufio.NewScanner(out), make(chan bool)
	r.t.Cleanup(func() {
		in.Close()
		<-done
		cmd.Wait()
	})
	if !lines.Scan() {
		close(done)
		r.t.Fatal("the repository's server does not start")
	}
	r.URL = lines.Text()
	go func() {
		defer close(done)
		for lines.Scan() {
			r.mu.Lock()
			begun := r.begun
			r.mu.Unlock()
			if begun != nil {
				begun()
			}
		}
	}()
}

// NewKey makes another key, with which the repository is signed from now on.
func (r *Repository) NewKey() {
	home, err := os.MkdirTemp("", "gpg") // gpg's sockets need a short path
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

// Key writes the public key to a file.
func (r *Repository) Key() string {
	name := map[string]string{"apt": "key.gpg", "dnf": "key.asc"}[r.client]
	args := []string{"gpg", "--homedir", r.home, "--batch", "--yes", "--export", "-o", filepath.Join(r.home, name)}
	if r.client == "dnf" {
		args = slices.Insert(args, 4, "--armor")
	}
	r.run("", args...)
	return filepath.Join(r.home, name)
}

func (r *Repository) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// Add adds a package with a file for a release, for apt also with more files, and returns the file name of the package.
func (r *Repository) Add(release string, content []byte, more ...map[string][]byte) string {
	r.t.Helper()
	if r.client == "apt" {
		root := r.t.TempDir()
		for _, files := range more {
			Write(r.t, root, files)
		}
		Write(r.t, root, map[string][]byte{
			"boot/vmlinuz-" + release: content,
			"DEBIAN/control": []byte("Package: linux-image-" + release + "\nVersion: 1:6.1-1\nArchitecture: amd64\nMaintainer: Test <test@example.org>\n" +
				"Description: a kernel\n"),
		})
		file := "linux-image-" + release + "_6.1-1_amd64.deb"
		r.run("", "dpkg-deb", "--root-owner-group", "--build", root, filepath.Join(r.Dir, file))
		return file
	}
	top := r.t.TempDir()
	version, rel, _ := strings.Cut(strings.TrimSuffix(release, ".x86_64"), "-")
	Write(r.t, top, map[string][]byte{"content": content, "kernel.spec": []byte(fmt.Sprintf(`Name: kernel-core
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
	Write(r.t, r.Dir, map[string][]byte{file: data})
	r.sign(file)
	return file
}

// sign signs an RPM package.
func (r *Repository) sign(file string) {
	r.t.Helper()
	gpg, err := exec.LookPath("gpg")
	if err != nil {
		r.t.Fatal(err)
	}
	r.run(r.Dir, "rpmsign", "--define", "__gpg "+gpg, "--define", "_gpg_path "+r.home, "--define", "_gpg_name test@example.org", "--addsign", file)
}

// Index writes the indexes of the repository, and signs those of apt.
func (r *Repository) Index() {
	r.t.Helper()
	if r.client == "dnf" {
		r.run("", "createrepo_c", "--quiet", r.Dir)
		return
	}
	packages := r.run(r.Dir, "apt-ftparchive", "packages", ".")
	Write(r.t, r.Dir, map[string][]byte{"dists/test/main/binary-amd64/Packages": []byte(packages)})
	os.Remove(filepath.Join(r.Dir, "dists/test/Release"))
	os.Remove(filepath.Join(r.Dir, "dists/test/InRelease"))
	release := r.run(r.Dir, "apt-ftparchive", "-o", "APT::FTPArchive::Release::Suite=test", "-o", "APT::FTPArchive::Release::Components=main",
		"-o", "APT::FTPArchive::Release::Architectures=amd64", "release", "dists/test")
	Write(r.t, r.Dir, map[string][]byte{"dists/test/Release": []byte(release)})
	r.run(r.Dir, "gpg", "--homedir", r.home, "--batch", "--yes", "--clearsign", "-o", "dists/test/InRelease", "dists/test/Release")
	r.indexes++
	for _, name := range []string{"InRelease", "main/binary-amd64/Packages"} { // apt does not see changes within a second
		when := time.Now().Add(time.Duration(r.indexes) * time.Minute)
		if err := os.Chtimes(filepath.Join(r.Dir, "dists/test", name), when, when); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Catalogue returns a catalogue of ID test, version 1, with the repository at an address and a file with its key.
func (r *Repository) Catalogue(url, key string) string {
	packages := "kernel: 'linux-image-(?P<release>[0-9.]+-[0-9]+-amd64)'"
	where := fmt.Sprintf("{url: %q, suites: [test], components: [main]}", url)
	machine := "amd64"
	if r.client == "dnf" {
		packages, where, machine = "kernel: kernel-core", fmt.Sprintf("{url: %q}", url), "x86_64"
	}
	return fmt.Sprintf("distributions:\n- id: test\n  versions: {\"1\": x}\n  client: %s\n  machines: {x86_64: %s}\n"+
		"  keys: [%s]\n  repositories: [%s]\n  packages: [{%s}]\n", r.client, machine, key, where, packages)
}

// Release returns the release of kernel n in the tests.
func (r *Repository) Release(n int) string {
	if r.client == "dnf" {
		return fmt.Sprintf("6.1.0-%d.el9.x86_64", n)
	}
	return fmt.Sprintf("6.1.0-%d-amd64", n)
}

// Downloads returns the packages that were downloaded since the last call.
func (r *Repository) Downloads() []string {
	r.t.Helper()
	path := filepath.Join(r.state, "asked")
	data, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		r.t.Fatal(err)
	}
	return slices.Compact(strings.Fields(string(data)))
}

// StallAt serves the beginning of a release's packages, calls begun, and waits until the client gives up.
func (r *Repository) StallAt(release string, begun func()) {
	r.mu.Lock()
	r.begun = begun
	r.mu.Unlock()
	r.Answer("stall " + release)
}

// Answer sets how packages are served from now on, see testdata/server.
func (r *Repository) Answer(answers ...string) {
	r.t.Helper()
	Write(r.t, r.state, map[string][]byte{"answers": []byte(strings.Join(answers, "\n"))})
}

// Write writes files below a folder.
func Write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
