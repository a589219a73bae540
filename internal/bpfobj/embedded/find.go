// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/limits"
)

// ErrNone is wrapped by the error for a file without a BPF object.
var ErrNone = errors.New("no BPF object inside")

// Object is one BPF ELF object.
type Object struct {
	// Name distinguishes the objects of one file: the host's symbol for it, else its source, else "#1", "#2", … in file order.
	// It is "" if the file is the object, or if the host has no other object and no symbol for it.
	Name string
	// Offset is where the object starts in the file, in bytes.
	Offset int
	// Data is the object and nothing after it.
	Data []byte
	// Hosts are the machines whose kernels run the program or library that embeds the object, as canonical names of
	// pkg/kernel; none if the file is the object or its machine is unknown.
	Hosts []string
}

// Find returns the 64-bit BPF ELF objects in data, in file order, without duplicates. They are parts of data.
//
// If data itself is a damaged object, the error says how it is damaged. If data has no object inside, the error wraps
// [ErrNone] and names the first damaged one. Damaged objects beside intact ones are skipped.
func Find(data []byte) ([]Object, error) {
	objs, err := scan(data)
	if err != nil || len(objs) == 1 && objs[0].Offset == 0 {
		return objs, err
	}
	seen := make(map[[sha256.Size]byte]bool, len(objs))
	objs = slices.DeleteFunc(objs, func(o Object) bool {
		sum := sha256.Sum256(o.Data)
		again := seen[sum]
		seen[sum] = true
		return again
	})
	host, err := parseImage(data)
	if err != nil {
		host = nil
	}
	name(host, objs)
	for i := range objs {
		if host != nil {
			objs[i].Hosts = machine.Hosts(machine.OfELF(host.machine, elf.Class(data[elf.EI_CLASS]), elf.Data(data[elf.EI_DATA])))
		}
	}
	return objs, nil
}

// ReadFile returns the objects that [Find] finds in a file, or in standard input for [Stdin]. Its errors have the type [bpfobj.Error].
// The objects share no memory with the rest of the file.
func ReadFile(path string) ([]Object, error) {
	data, err := read(path)
	if path == Stdin {
		path = "standard input"
	}
	var objs []Object
	if err == nil {
		objs, err = Find(data)
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return nil, &bpfobj.Error{Object: path, Err: err}
	}
	for i := range objs {
		if len(objs[i].Data) < len(data) {
			objs[i].Data = bytes.Clone(objs[i].Data)
		}
	}
	return objs, nil
}

func read(path string) ([]byte, error) {
	f := os.Stdin
	if path != Stdin {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	tooLarge := fmt.Errorf("larger than %d bytes", int64(limits.FileBytes))
	var buf bytes.Buffer
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		if st.Size() > limits.FileBytes {
			return nil, tooLarge
		}
		buf.Grow(int(st.Size()) + bytes.MinRead)
	}
	n, err := io.Copy(&buf, io.LimitReader(f, limits.FileBytes+1)) // a pipe has no size, and a file may grow
	if err == nil && n > limits.FileBytes {
		err = tooLarge
	}
	return buf.Bytes(), err
}

// scan returns the objects of data in file order, at least one if there is no error.
func scan(data []byte) ([]Object, error) {
	var (
		objs    []Object
		damaged error
		// The length of an intact object bounds its section headers. Damaged ones could all point at one long table.
		budget = len(data)/16 + 4096
	)
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(magic))
		if i < 0 {
			break
		}
		at += i
		left := budget
		end, err := object(data[at:], at == 0, &budget)
		switch {
		case err == nil && end > 0:
			objs = append(objs, Object{Offset: at, Data: data[at : at+end : at+end]})
			budget = left
			at += end
			continue
		case errors.Is(err, errBudget):
			return nil, err
		case err != nil && at == 0:
			return nil, fmt.Errorf("damaged BPF object: %w", err)
		case err != nil && damaged == nil:
			damaged = fmt.Errorf("a damaged one at offset %#x: %w", at, err)
		}
		at += len(magic)
	}
	switch {
	case len(objs) > 0:
		return objs, nil
	case damaged != nil:
		return nil, fmt.Errorf("%w, but %w", ErrNone, damaged)
	}
	if kind := Describe(data); kind != nil {
		return nil, noneError{kind}
	}
	return nil, ErrNone
}

// object returns the length of the BPF object at data[0], 0 for another file. whole says that data is the whole
// file: then a header that is cut short is damaged, elsewhere the magic is chance.
func object(data []byte, whole bool, budget *int) (int, error) {
	switch {
	case MayBeObject(data):
	case whole && len(data) < HeadBytes:
		return 0, errTruncated
	default:
		return 0, nil
	}
	im, err := parseImage(data)
	switch {
	case err != nil:
		return 0, err
	case im.word != 8:
		return 0, errors.New("32-bit ELF, want 64-bit")
	case im.typ != elf.ET_REL:
		return 0, fmt.Errorf("ELF type %d, want %d (relocatable)", im.typ, elf.ET_REL)
	}
	return im.extent(budget)
}

// HeadBytes is how many bytes of a file MayBeObject looks at.
const HeadBytes = 20

// MayBeObject reports whether a file that begins with head may be a BPF object.
func MayBeObject(head []byte) bool {
	if len(head) < HeadBytes || !bytes.HasPrefix(head, []byte(magic)) {
		return false
	}
	_, machine := header(head)
	return machine == elf.EM_BPF
}
