package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/archiver"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// NativeSuffix ends the names of native archives.
const NativeSuffix = ".btfa"

// Output is where, and in which form, the minimized BTFs of kernels are written.
type Output struct {
	Path   string
	Native bool   // a native archive; Format is not used then
	Format Format // of the files
	BCC    bool   // the files are for bcc's tools to embed; Format must be TarGz
}

// OutputAt returns the output that a path asks for by its suffix.
func OutputAt(path string) (o Output, err error) {
	o.Path = path
	if o.Native = strings.HasSuffix(path, NativeSuffix); !o.Native {
		o.Format, err = FormatOf(path)
	}
	return o, err
}

// Write writes the kernels, given in any order. info goes into native archives only.
func (o *Output) Write(info archive.Info, kernels []archive.Kernel) error {
	if o.Native {
		var b bytes.Buffer
		if err := archiver.Write(&b, info, kernels); err != nil {
			return fmt.Errorf("%s: %w", o.Path, err)
		}
		return output.WriteFile(o.Path, func(w io.Writer) error {
			_, err := w.Write(b.Bytes())
			return err
		})
	}
	files := make([]File, len(kernels))
	for i, k := range kernels {
		files[i] = File{Name: k.Key.FileName(), Data: k.BTF}
		if o.BCC {
			files[i].Name = bccName(k.Key)
		}
	}
	if o.BCC {
		return WriteBCC(o.Path, files)
	}
	return Write(o.Path, o.Format, files)
}

// bccMachines are the machines that uname spells differently from BTFHub. bcc's
// tools look for uname's.
var bccMachines = map[string]string{"arm64": "aarch64", "arm": "armv7l", "i386": "i686"}

// bccName returns the name, without ./, that bcc's tools look for on a host.
func bccName(k kernel.Key) string {
	if !k.Known() {
		return k.FileName()
	}
	k = k.Canonical()
	if m, ok := bccMachines[k.Arch]; ok {
		k.Arch = m
	}
	// Without a version its level is empty, as the tools have it.
	return strings.Join([]string{k.ID, k.VersionID, k.Arch, k.Release + kernel.FileSuffix}, "/")
}

// ReadKernels reads what an Output writes, whatever its form. The info of those that have none is
// zero. A directory or tar must name each of its .btf files for its kernel, and have one.
func ReadKernels(name string) (archive.Info, []archive.Kernel, error) {
	native, err := IsNative(name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	if native {
		a, err := archive.OpenFile(name)
		if err != nil {
			return archive.Info{}, nil, err
		}
		kernels, err := a.Kernels()
		if err != nil {
			return archive.Info{}, nil, fmt.Errorf("%s: %w", name, err)
		}
		return a.Info(), kernels, nil
	}
	files, err := Read(name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	var kernels []archive.Kernel
	for _, f := range files {
		if path.Ext(f.Name) != kernel.FileSuffix {
			continue
		}
		k, err := kernel.ParseFileName(f.Name)
		if err != nil {
			return archive.Info{}, nil, fmt.Errorf("%s: %w", name, err)
		}
		kernels = append(kernels, archive.Kernel{Key: k, BTF: f.Data})
	}
	if len(kernels) == 0 {
		return archive.Info{}, nil, fmt.Errorf("%s: holds no %s file", name, kernel.FileSuffix)
	}
	return archive.Info{}, kernels, nil
}

// ErrOther says that an archive was made for other relocations than another one.
var ErrOther = errors.New("was made for other relocations than")

// Merge reads several archives, as ReadKernels does, as one. Those of different relocations are
// refused with ErrOther unless mixed is set; then the info tells none. Kernels that are there again must
// have the same BTF.
func Merge(names []string, mixed bool) (info archive.Info, kernels []archive.Kernel, err error) {
	for i, name := range names {
		in, list, err := ReadKernels(name)
		if err != nil {
			return archive.Info{}, nil, err
		}
		switch {
		case i == 0:
			info.Relocations = in.Relocations
		case in.Relocations == info.Relocations:
		case !mixed:
			return archive.Info{}, nil, fmt.Errorf("%s: %w %s", name, ErrOther, names[0])
		default:
			info.Relocations = [len(info.Relocations)]byte{}
		}
		info.Objects = append(info.Objects, in.Objects...)
		kernels = append(kernels, list...)
	}
	kernels, err = distinct(kernels)
	return info, kernels, err
}

// distinct drops kernels that are there again with the same BTF.
func distinct(kernels []archive.Kernel) ([]archive.Kernel, error) {
	seen := make(map[kernel.Key]archive.Kernel, len(kernels))
	var out []archive.Kernel
	for _, k := range kernels {
		c := k.Key.Canonical()
		old, ok := seen[c]
		if !ok {
			seen[c] = k
			out = append(out, k)
		} else if !bytes.Equal(old.BTF, k.BTF) {
			return nil, fmt.Errorf("kernel %s: the archives have two different BTFs", k.Key)
		}
	}
	return out, nil
}

// IsNative reports whether a file is a native archive, by its content. A directory is none.
func IsNative(name string) (bool, error) {
	fi, err := os.Stat(name)
	if err != nil || fi.IsDir() {
		return false, err
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return archive.Is(head), nil
}
