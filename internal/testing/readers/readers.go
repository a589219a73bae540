// SPDX-License-Identifier: Apache-2.0

// Package readers runs the archive readers in other languages, lib/c, lib/rust and lib/python, so that tests can
// compare them with the reader in Go. It skips tests if a reader cannot be built. It is for tests only.
package readers

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Status is an enum btfa_status of btfa.h. Every driver answers in it.
type Status int32

// The statuses.
const (
	OK Status = -iota
	NotArchive
	UnknownVersion
	Damaged
	NoKernel
	NoMemory
	NoHost
	NotCovered
)

// Reader is a reader in its own process. The one in C is built with sanitizers if the compiler has them, the one in Rust
// with overflow checks. One goroutine may use it at a time. The test fails if the process ends.
type Reader struct {
	language *Language

	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	cmd    *exec.Cmd
}

// Archive is a reader's view of an archive.
type Archive struct {
	Status Status
	Error  string
	// Most is the peak memory in bytes while opening, Kept the memory of the open archive,
	// and Taking the additional peak while reading a BTF.
	Most, Kept, Taking int
	Kernels            []archive.Kernel // BTF is nil if it cannot be read
}

// Language is a reader of archives in another language than Go.
type Language struct {
	Name string
	// build makes the driver in a directory. It returns the command that runs it, or why tests cannot.
	build func(dir string) (command []string, skip string, err error)

	once    sync.Once
	dir     string
	command []string
	skip    string
	err     error
}

// The readers.
var (
	C      = &Language{Name: "C", build: buildC}
	Rust   = &Language{Name: "Rust", build: buildRust}
	Python = &Language{Name: "Python", build: findPython}
)

// All lists the readers. Compiled lists those which read thousands of archives in a test, and which answer every question.
var (
	All      = []*Language{C, Rust, Python}
	Compiled = []*Language{C, Rust}
)

// Each runs a test with each reader.
func Each(t *testing.T, languages []*Language, test func(t *testing.T, r *Reader)) {
	for _, l := range languages {
		t.Run(l.Name, func(t *testing.T) { test(t, Start(t, l)) })
	}
}

// inherited names the driver in C in the environment of a fuzzer's worker processes, which
// would otherwise each spend seconds on building it.
const inherited = "BTFGEN_READERS_DRIVER"

// source returns a folder of the project.
func source(elem ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file), "..", "..", ".."}, elem...)...)
}

// Source returns the folder lib/c.
func Source() string { return source("lib", "c") }

// fuzzing reports whether go test runs a fuzzer.
func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

func buildC(work string) ([]string, string, error) {
	if program := os.Getenv(inherited); program != "" {
		return []string{program}, "", nil
	}
	if err := os.WriteFile(filepath.Join(work, "empty.c"), []byte("#include <zstd.h>\nint main(void) { return ZSTD_isError(0); }\n"), 0o666); err != nil {
		return nil, "", err
	}
	compile := func(cc, output string, args ...string) ([]byte, error) {
		args = append(args, "-o", filepath.Join(work, output), "-lzstd")
		return exec.Command(cc, args...).CombinedOutput()
	}
	try := [][]string{nil}
	if fuzzing() || slow.Enabled() { // building with sanitizers takes seconds
		try = [][]string{{"-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}, nil}
	}
	var cc string
	var flags []string
	for _, program := range []string{"clang-19", "cc"} {
		for _, with := range try {
			args := append([]string{filepath.Join(work, "empty.c")}, with...)
			if _, err := compile(program, "empty", args...); err != nil {
				continue
			}
			if cc == "" || flags == nil && with != nil {
				cc, flags = program, with
			}
		}
	}
	if cc == "" {
		return nil, "needs a C compiler and libzstd-dev", nil
	}
	args := append([]string{"-std=c99", "-Wall", "-Wextra", "-Werror"}, flags...)
	args = append(args, filepath.Join(Source(), "test", "driver.c"), filepath.Join(Source(), "btfa.c"))
	if out, err := compile(cc, "driver", args...); err != nil {
		return nil, "", fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	program := filepath.Join(work, "driver")
	if fuzzing() {
		os.Setenv(inherited, program)
	}
	return []string{program}, "", nil
}

// debianCrates is where Debian's packages put the sources of crates.
const debianCrates = "/usr/share/cargo/registry"

// buildRust builds the driver in Rust.
func buildRust(work string) ([]string, string, error) {
	// Without its Cargo.lock of other crates, and so that the sources stay clean.
	src := filepath.Join(work, "rust")
	if err := os.CopyFS(src, os.DirFS(source("lib", "rust"))); err != nil {
		return nil, "", err
	}
	target, why, err := Cargo(src, "build", "--quiet", "--example", "driver")
	return []string{filepath.Join(target, "debug", "examples", "driver")}, why, err
}

// Cargo runs a command of cargo in the folder of a crate, with the crates of Debian's packages and without network. These are compiled
// once for all tests, in the user's cache. It returns the folder of what is built, or why it did nothing.
func Cargo(dir string, args ...string) (target, why string, err error) {
	const cargo, needs = "/usr/bin/cargo", "needs cargo, rustc and librust-zstd-dev of Debian"
	if !slow.Enabled() {
		return "", "needs BTFGEN_SLOW=1, as in the gate: crates take long to compile", nil
	}
	crates, err := filepath.Glob(filepath.Join(debianCrates, "zstd-0.*"))
	if err != nil || len(crates) == 0 {
		return "", needs, nil
	}
	if _, err := os.Stat(cargo); err != nil {
		return "", needs, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	target = filepath.Join(cache, "btfgen-tests", "cargo")
	cmd := exec.Command(cargo, append(args, "--offline", "--config", `source.crates-io.replace-with="debian"`,
		"--config", fmt.Sprintf("source.debian.directory=%q", debianCrates))...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CARGO_TARGET_DIR="+target, "RUSTC=/usr/bin/rustc", "RUSTFLAGS=-D warnings")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("cargo: %w\n%s", err, out)
	}
	return target, "", nil
}

func findPython(string) ([]string, string, error) {
	for _, tool := range []string{"python3", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, "needs " + tool, nil
		}
	}
	return []string{"python3", "-B", source("lib", "python", "test", "driver.py")}, "", nil
}

// Main is the TestMain of packages whose tests call Start. It removes the drivers.
func Main(m *testing.M) {
	code := m.Run()
	for _, l := range All {
		if l.dir != "" {
			os.RemoveAll(l.dir)
		}
	}
	os.Exit(code)
}

// Start builds a reader once for all tests of a package, and starts it. It ends with the test.
func Start(t testing.TB, l *Language) *Reader {
	t.Helper()
	raceflag.SkipSerial(t)
	l.once.Do(func() {
		if l.dir, l.err = os.MkdirTemp("", "btfa-"); l.err == nil {
			l.command, l.skip, l.err = l.build(l.dir)
		}
	})
	switch {
	case l.err != nil:
		t.Fatal(l.err)
	case l.skip != "":
		t.Skip(l.skip)
	}
	r := &Reader{language: l, cmd: exec.Command(l.command[0], l.command[1:]...)}
	r.cmd.Stderr = &r.stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.in.Close()
		if err := r.cmd.Wait(); err != nil { // sanitizers report leaks at the end
			t.Errorf("the reader in %s: %v\n%s", l.Name, err, &r.stderr)
		}
	})
	return r
}

// Language returns what the reader is written in.
func (r *Reader) Language() *Language { return r.language }

// question is a request: numbers and strings.
type question []byte

func (q question) number(v uint32) question { return binary.LittleEndian.AppendUint32(q, v) }

func (q question) text(s string) question { return append(q.number(uint32(len(s))), s...) }

func (q question) key(k kernel.Key) question {
	return q.text(k.ID).text(k.VersionID).text(k.Arch).text(k.Release)
}

func (r *Reader) ask(t testing.TB, q question) {
	t.Helper()
	if _, err := r.in.Write(q); err != nil {
		r.ended(t, err)
	}
}

// ended fails a test with the output of the process, which has ended.
func (r *Reader) ended(t testing.TB, err error) {
	t.Helper()
	r.in.Close()
	r.cmd.Wait()
	t.Fatalf("the reader in %s: %v\n%s", r.language.Name, err, &r.stderr)
}

func (r *Reader) number(t testing.TB) uint32 {
	t.Helper()
	var b [4]byte
	if _, err := io.ReadFull(r.out, b[:]); err != nil {
		r.ended(t, err)
	}
	return binary.LittleEndian.Uint32(b[:])
}

func (r *Reader) bytes(t testing.TB) []byte {
	t.Helper()
	b := make([]byte, r.number(t))
	if _, err := io.ReadFull(r.out, b); err != nil {
		r.ended(t, err)
	}
	return b
}

func (r *Reader) text(t testing.TB) string { t.Helper(); return string(r.bytes(t)) }

func (r *Reader) key(t testing.TB) kernel.Key {
	t.Helper()
	return kernel.Key{ID: r.text(t), VersionID: r.text(t), Arch: r.text(t), Release: r.text(t)}
}

// Open opens an archive and reads all of it.
func (r *Reader) Open(t testing.TB, data []byte) Archive {
	t.Helper()
	r.ask(t, question{}.number(0).text(string(data)))
	a := Archive{Status: Status(r.number(t)), Error: r.text(t), Most: int(r.number(t))}
	if a.Status != OK {
		return a
	}
	a.Kept = int(r.number(t))
	for range r.number(t) {
		k := archive.Kernel{Key: r.key(t)}
		if Status(r.number(t)) == OK {
			k.BTF = r.bytes(t)
		} else {
			r.text(t)
		}
		a.Kernels = append(a.Kernels, k)
	}
	a.Taking = int(r.number(t)) - a.Kept
	return a
}

// Lookups looks up kernels in the archive that was opened last, for a distribution like others.
func (r *Reader) Lookups(t testing.TB, wants []kernel.Key, neighbours int, like ...kernel.Key) []archive.Match {
	t.Helper()
	var all question
	for _, want := range wants {
		all = all.number(1).key(want).number(uint32(len(like)))
		for _, l := range like {
			all = all.text(l.ID).text(l.VersionID)
		}
		all = all.number(uint32(neighbours))
	}
	// Read answers concurrently, so that neither pipe fills up.
	go r.in.Write(all)
	matches := make([]archive.Match, len(wants))
	for i := range matches {
		matches[i] = archive.Match{
			Rule: archive.Rule(r.number(t)), Want: r.key(t), Key: r.key(t), Below: r.key(t), Above: r.key(t),
			SameLayout: r.number(t) != 0, Reason: r.text(t),
		}
	}
	return matches
}

// Host describes the host.
func (r *Reader) Host(t testing.TB, opts kernel.HostOptions) (kernel.System, Status, string) {
	t.Helper()
	r.ask(t, question{}.number(2).text(opts.Root).text(opts.OSRelease).text(opts.Release).text(opts.Arch))
	status, why := Status(r.number(t)), r.text(t)
	s := kernel.System{Key: r.key(t)}
	for range r.number(t) {
		s.Like = append(s.Like, kernel.Key{ID: r.text(t), VersionID: r.text(t)})
	}
	return s, status, why
}

// Found is the result of btfa_find, with the content of the file that libbpf would read.
type Found struct {
	Status Status
	Error  string
	Source archive.Source
	Rule   archive.Rule
	BTF    []byte
}

// Find finds the types of a host in the archive that was opened last, without the kernel's own BTF.
func (r *Reader) Find(t testing.TB, opts archive.FindOptions) Found {
	t.Helper()
	r.ask(t, question{}.number(3).text(opts.File).text(opts.Host.Root).text(opts.Host.Release).text(opts.Host.Arch).text(string(opts.Object)).
		number(uint32(opts.Neighbours)).number(map[bool]uint32{true: 1}[opts.Installed]))
	return Found{Status(r.number(t)), r.text(t), archive.Source(r.number(t)), archive.Rule(r.number(t)), r.bytes(t)}
}

// Covers returns whether the archive that was opened last covers an object, and the error.
func (r *Reader) Covers(t testing.TB, object []byte, arch string) (Status, string) {
	t.Helper()
	r.ask(t, question{}.number(6).text(string(object)).text(arch))
	return Status(r.number(t)), r.text(t)
}

// Canonical returns the usual spelling of a key.
func (r *Reader) Canonical(t testing.TB, k kernel.Key) kernel.Key {
	t.Helper()
	r.ask(t, question{}.number(4).key(k))
	return r.key(t)
}

// Failures opens an archive and reads all BTF once for each allocation, which then fails.
// It returns the number of allocations, and a problem or "".
func (r *Reader) Failures(t testing.TB, data []byte) (int, string) {
	t.Helper()
	r.ask(t, question{}.number(5).text(string(data)))
	return int(r.number(t)), r.text(t)
}
