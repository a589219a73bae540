// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// Encoder makes BTF of kernels that have DWARF and no BTF. The work is pahole's, which is looked for when the
// first such kernel comes. An Encoder is safe for concurrent use.
type Encoder struct {
	dir   string
	slots chan struct{} // one for each pahole that runs
	time  time.Duration // that one may take

	// Earlier, if it is not nil, returns what was made earlier of a file with that SHA-256, and by what; nothing if it was not.
	Earlier func(ctx context.Context, of [sha256.Size]byte) (btf []byte, by string)

	find    sync.Once
	path    string
	version string // "v1.24"
	options []string
	err     error // why there is no pahole

	mu   sync.Mutex
	keep *os.File // what was made, if it is to be kept
	made map[string]made
	end  int64
}

// made is where the BTF of a kernel is kept.
type made struct {
	btfc.Made
	offset int64
	n      int
}

// NewEncoder returns an Encoder that runs up to jobs paholes at once, but no more than limits.Paholes. What it unpacks
// is in files in dir that have no name.
func NewEncoder(dir string, jobs int) *Encoder {
	return &Encoder{dir: dir, slots: make(chan struct{}, min(max(jobs, 1), limits.Paholes)), time: limits.PaholeSeconds * time.Second}
}

// Keep has the Encoder remember, on the disk, what it makes, up to limits.PaholeKept bytes: for those who read files twice.
func (e *Encoder) Keep() error {
	f, err := e.temporary()
	e.keep, e.made = f, make(map[string]made)
	return err
}

// Close ends an Encoder, whose methods must not be called any more.
func (e *Encoder) Close() {
	if e.keep != nil {
		e.keep.Close()
	}
}

// temporary makes a file without a name, which is gone when it is closed, or when the process ends in whatever way.
func (e *Encoder) temporary() (*os.File, error) {
	f, err := os.CreateTemp(e.dir, ".btfgen.*.tmp")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// errNoPahole is the cause where a kernel with DWARF cannot be encoded.
var errNoPahole = errors.New("has DWARF and no BTF, which pahole would make of it: install the package pahole or dwarves, 1.22 or newer")

// minPahole is the first version that writes BTF to a file of its own, 1.22.
const minPahole = 122

// paholeOptions returns how a version of pahole makes BTF that old loaders can read. One that meets a kind that it does not
// know refuses all of the BTF. FLOAT came with libbpf 0.4, DECL_TAG with 0.6, TYPE_TAG with 0.7 and ENUM64 with 1.0, so none of
// these is asked for. Functions are chosen as kernels' builds do (scripts/Makefile.btf). What options a version has say its
// changes-v1.22 to changes-v1.32, and what features pahole(1).
func paholeOptions(version int) []string {
	options := []string{"-j1"} // with more threads, the order of types is left to chance
	if version >= 126 {
		return append(options, "--lang_exclude=rust", "--btf_features=encode_force,var,optimized_func,consistent_func")
	}
	if version >= 123 {
		options = append(options, "--skip_encoding_btf_decl_tag", "--skip_encoding_btf_type_tag")
	}
	if version >= 124 {
		options = append(options, "--lang_exclude=rust", "--skip_encoding_btf_enum64")
	}
	if version >= 125 {
		options = append(options, "--skip_encoding_btf_inconsistent_proto", "--btf_gen_optimized")
	}
	return options
}

// ready finds pahole.
func (e *Encoder) ready(ctx context.Context) error {
	e.find.Do(func() {
		if e.path, e.err = exec.LookPath("pahole"); e.err != nil {
			e.err = errNoPahole
			return
		}
		var out, stderr decompress.Head
		cmd := paholeCommand(ctx, e.path, "--version")
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			e.err = fmt.Errorf("pahole --version: %w", cmp.Or(ctx.Err(), err))
			return
		}
		m := regexp.MustCompile(`^v(\d{1,3})\.(\d{1,3})\b`).FindStringSubmatch(out.String())
		if m == nil {
			e.err = errors.New("pahole --version tells no version")
			return
		}
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		version := 100*major + minor
		if e.version, e.options = m[0], paholeOptions(version); version < minPahole {
			e.err = fmt.Errorf("has DWARF and no BTF, which pahole would make of it: 1.22 or newer is needed, this is %s", e.version)
		}
	})
	return e.err
}

// paholeCommand returns a run of pahole that ends with its context. Its environment is empty, so that it asks no server for
// debug information.
func paholeCommand(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"LC_ALL=C"}
	cmd.WaitDelay = time.Second // for what pahole may have started
	return cmd
}

// encode appends to buf the BTF of an ELF file with DWARF, of at most limit bytes, and returns how many they are and what made
// them. name is the same for the same file.
func (e *Encoder) encode(ctx context.Context, name string, file *os.File, buf *decompress.Buffer, limit int64) (n int, made btfc.Made, err error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return 0, made, ctx.Err()
	}
	start := len(buf.B)
	if n, made, err = e.remembered(name, buf, limit); n > 0 || err != nil {
		return n, made, err
	}
	if e.Earlier != nil {
		if made.Of, err = sumOf(ctx, file); err != nil {
			return 0, made, err
		}
		btf, by := e.Earlier(ctx, made.Of)
		if made.By = by; by != "" {
			n, err = buf.Append(bytes.NewReader(btf), int64(len(btf)), limit)
			return n, made, err
		}
	}
	if err := e.ready(ctx); err != nil {
		return 0, made, err
	}
	made.By = "pahole " + e.version
	if n, err = e.run(ctx, file, buf, limit); err != nil {
		buf.B = buf.B[:start]
		return 0, made, fmt.Errorf("%s: %w", made.By, err)
	}
	e.remember(name, buf.B[start:], made)
	return n, made, nil
}

// sumOf returns the SHA-256 of a file.
func sumOf(ctx context.Context, file *os.File) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	r := io.NewSectionReader(file, 0, 1<<62)
	for err == nil {
		if ctx.Err() != nil {
			return sum, ctx.Err()
		}
		_, err = io.CopyN(h, r, 16<<20)
	}
	if err != io.EOF {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (e *Encoder) remembered(name string, buf *decompress.Buffer, limit int64) (int, btfc.Made, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, ok := e.made[name]
	if !ok {
		return 0, btfc.Made{}, nil
	}
	n, err := buf.Append(io.NewSectionReader(e.keep, m.offset, int64(m.n)), int64(m.n), limit)
	return n, m.Made, err
}

// remember keeps what was made, if that can be.
func (e *Encoder) remember(name string, btf []byte, by btfc.Made) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keep == nil || e.end+int64(len(btf)) > limits.PaholeKept {
		return
	}
	if _, err := e.keep.WriteAt(btf, e.end); err == nil {
		e.made[name] = made{by, e.end, len(btf)}
		e.end += int64(len(btf))
	}
}

// run runs pahole on an open file. What it makes comes through a pipe, so that there is never more than limit bytes of it.
func (e *Encoder) run(ctx context.Context, file *os.File, buf *decompress.Buffer, limit int64) (n int, err error) {
	errLate := fmt.Errorf("not done after %s", e.time)
	ctx, cancel := context.WithTimeoutCause(ctx, e.time, errLate)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Unix(1, 0)) })()

	cmd := paholeCommand(ctx, e.path, append(e.options[:len(e.options):len(e.options)], "--btf_encode_detached=/dev/fd/4", "/dev/fd/3")...)
	cmd.ExtraFiles = []*os.File{file, w}
	var said decompress.Head
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	w.Close()
	if err != nil {
		return 0, err
	}
	boundMemory(cmd.Process.Pid, limits.PaholeMemory)
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		// Something that pahole has started may still hold the other end of the pipe.
		r.SetReadDeadline(time.Now().Add(10 * time.Second))
	}()
	n, err = buf.Append(r, -1, limit)
	late := context.Cause(ctx)
	if err != nil {
		cancel()
	}
	end := <-ended
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	switch {
	case late != nil:
		return 0, late
	case err != nil:
		return 0, err
	case end != nil && line != "":
		return 0, fmt.Errorf("%s (%w)", line, end)
	case end != nil:
		return 0, end
	case n == 0:
		return 0, errors.New(cmp.Or(line, "makes nothing of it"))
	case strings.Contains(said.String(), "DW_TAG_partial_unit"):
		return 0, errors.New("cannot read DWARF that dwz has made smaller; 1.32 can")
	}
	return n, nil
}

// A compressed file that holds what was made of DWARF ends in a zstd frame that decoders skip: its magic number, the
// length of what follows, and "btfgen: " with what made it, filled up with NUL bytes.
const (
	madeMagic = "\x5b\x2a\x4d\x18\x20\x00\x00\x00"
	madeMark  = "btfgen: "
	madeLen   = len(madeMagic) + 0x20
)

// MadeFrame returns what is to stand at the end of a file in zstd's format to say what made the BTF in it of DWARF.
func MadeFrame(maker string) []byte {
	b := make([]byte, madeLen)
	copy(b[copy(b, madeMagic+madeMark):], maker)
	return b
}

// madeBy is the inverse of MadeFrame for a file. It returns nothing if the frame is not there.
func madeBy(file *os.File) string {
	fi, err := file.Stat()
	if err != nil {
		return ""
	}
	var b [madeLen]byte
	if _, err := file.ReadAt(b[:], fi.Size()-int64(madeLen)); err != nil {
		return ""
	}
	maker, ok := strings.CutPrefix(strings.TrimRight(string(b[:]), "\x00"), madeMagic+madeMark)
	if !ok || strings.Contains(maker, "\x00") {
		return ""
	}
	return maker
}
