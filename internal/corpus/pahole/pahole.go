// SPDX-License-Identifier: Apache-2.0

// Package pahole makes BTF of DWARF, of kernels and their modules, with the program pahole.
package pahole

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/workers/program"
)

// Encoder makes BTF of kernels that have DWARF and no BTF, with pahole. It looks for pahole when it is needed. An Encoder is safe for
// concurrent use.
type Encoder struct {
	dir   string
	slots chan struct{} // one for each running pahole; nil if the Encoder makes no BTF

	Time      time.Duration // the longest run of a pahole
	NoModules bool          // make no BTF of modules, which takes long for all of a kernel's

	// Earlier, if not nil, returns BTF that was made of a file with this SHA-256 before, and by what; or nothing.
	Earlier func(ctx context.Context, of [sha256.Size]byte) (btf []byte, by string)

	find    sync.Once
	version string // "v1.24"
	options []string
	err     error // why there is no pahole
}

// New returns an Encoder that runs up to jobs paholes at once, limits.Paholes at most. It unpacks to nameless files in dir.
func New(dir string, jobs int) *Encoder {
	return &Encoder{dir: dir, slots: make(chan struct{}, min(max(jobs, 1), limits.Paholes)), Time: limits.PaholeSeconds * time.Second}
}

// Disabled returns an Encoder that makes no BTF, and creates temporary files as e does.
func (e *Encoder) Disabled() *Encoder { return &Encoder{dir: e.dir} }

// EncodesModules reports whether BTF is made of modules. It may be called for a nil Encoder.
func (e *Encoder) EncodesModules() bool { return e != nil && e.slots != nil && !e.NoModules }

// Temporary creates a nameless file, which is gone when it is closed or the process ends.
func (e *Encoder) Temporary() (*os.File, error) {
	return output.Nameless(e.dir)
}

// ErrMissing is the cause for kernels with DWARF that cannot be converted.
var ErrMissing = errors.New("has DWARF and no BTF; install pahole (package pahole or dwarves) 1.22 or newer to convert it")

// minPahole is the first version that writes BTF to a file of its own, 1.22.
const minPahole = 122

// paholeOptions returns the options for a version of pahole that give BTF for old loaders, which refuse BTF with an unknown kind. libbpf has FLOAT
// since 0.4, DECL_TAG since 0.6, TYPE_TAG since 0.7 and ENUM64 since 1.0, so these are left out. Functions are chosen as in the
// kernel's scripts/Makefile.btf. The options of each version are in changes-v1.22 to changes-v1.32, and the features in pahole(1).
func paholeOptions(version int) []string {
	// With more threads, the order of types is left to chance.
	options := []string{"-j1"}
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

// Find finds pahole, and returns its version and the options that the Encoder uses.
func (e *Encoder) Find(ctx context.Context) (version string, options []string, err error) {
	e.find.Do(func() {
		if _, err := program.Find("pahole"); err != nil {
			e.err = ErrMissing
			return
		}
		out, err := program.Run(ctx, &program.Command{Name: "pahole", Options: []string{"--version"}})
		if err != nil {
			e.err = fmt.Errorf("pahole --version: %w", err)
			return
		}
		m := regexp.MustCompile(`^v(\d{1,3})\.(\d{1,3})\b`).FindStringSubmatch(out)
		if m == nil {
			e.err = errors.New("pahole --version: no version in its output")
			return
		}
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		version := 100*major + minor
		if e.version, e.options = m[0], paholeOptions(version); version < minPahole {
			e.err = fmt.Errorf("has DWARF and no BTF; pahole 1.22 or newer is needed to convert it, this is %s", e.version)
		}
	})
	return e.version, e.options, e.err
}

// Encode returns the BTF of an ELF file with DWARF, at most limit bytes in mem, and what made it.
func (e *Encoder) Encode(ctx context.Context, file *os.File, mem *decompress.Arena, limit int64) (data []byte, made btfc.Made, err error) {
	if e.slots == nil {
		return nil, made, ErrDWARF
	}
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nil, made, ctx.Err()
	}
	if e.Earlier != nil {
		h := sha256.New()
		if _, err = io.Copy(h, decompress.Until(ctx, io.NewSectionReader(file, 0, 1<<62))); err != nil {
			return nil, made, err
		}
		h.Sum(made.Of[:0])
		btf, by := e.Earlier(ctx, made.Of)
		if made.By = by; by != "" {
			data, err = mem.Read(bytes.NewReader(btf), int64(len(btf)), limit)
			return data, made, err
		}
	}
	if _, _, err := e.Find(ctx); err != nil {
		return nil, made, err
	}
	made.By = "pahole " + e.version
	if data, err = e.run(ctx, file, nil, mem, limit); err != nil {
		return nil, made, fmt.Errorf("%s: %w", made.By, err)
	}
	return data, made, nil
}

// EncodeModule returns the split BTF of a module with DWARF, on top of a kernel's BTF, at most limit bytes in mem.
func (e *Encoder) EncodeModule(ctx context.Context, module io.Reader, base *os.File, mem *decompress.Arena, limit int64) ([]byte, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, _, err := e.Find(ctx); err != nil {
		return nil, err
	}
	file, err := e.Temporary()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := io.Copy(file, decompress.Until(ctx, module)); err != nil {
		return nil, err
	}
	data, err := e.run(ctx, file, base, mem, limit)
	if err != nil {
		return nil, fmt.Errorf("pahole %s: %w", e.version, err)
	}
	return data, nil
}

// run runs pahole on an open file, a module if there is base BTF. Its result is in a temporary file of little more than limit bytes.
func (e *Encoder) run(ctx context.Context, file, base *os.File, mem *decompress.Arena, limit int64) (data []byte, err error) {
	errLate := fmt.Errorf("not done after %s", e.Time)
	ctx, cancel := context.WithTimeoutCause(ctx, e.Time, errLate)
	defer cancel()
	out, err := e.Temporary()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	options, files := e.options, []*os.File{file, out}
	if base != nil {
		options, files = append(slices.Clip(options), "--btf_base=/dev/fd/5"), append(files, base)
	}
	var said decompress.Head
	pahole, err := program.Start(ctx, &program.Command{
		Name: "pahole", Options: slices.Concat(options, []string{"--btf_encode_detached=/dev/fd/4", "/dev/fd/3"}), Files: files,
		Stdout: &said, Stderr: &said, Memory: limits.PaholeMemory, FileSize: uint64(limit) + 1,
	})
	if err != nil {
		return nil, err
	}
	end := pahole.Wait()
	if late := context.Cause(ctx); late != nil {
		return nil, late
	}
	if data, err = mem.Read(io.NewSectionReader(out, 0, 1<<62), -1, limit); err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	switch {
	case end != nil && line != "":
		err = fmt.Errorf("%s (%w)", line, end)
	case end != nil:
		err = end
	case len(data) == 0:
		err = errors.New(cmp.Or(line, "no output"))
	case strings.Contains(said.String(), "DW_TAG_partial_unit"):
		err = errors.New("cannot read DWARF that dwz has made smaller; 1.32 can")
	}
	if err != nil {
		mem.Drop(data)
		return nil, err
	}
	return data, nil
}

// ErrDWARF is the cause for kernels that only corpus import can use.
var ErrDWARF = errors.New("has DWARF and no BTF ('btfgen corpus import' makes BTF of it)")
