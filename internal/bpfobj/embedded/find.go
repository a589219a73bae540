// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/limits"
)

// DefaultLimit is the size in bytes up to which [ReadFile] reads a file when
// told no limit: 1 GiB.
const DefaultLimit = limits.FileBytes

// ErrNone is what [Find] and [ReadFile] wrap when a file has no BPF object in
// it. Test with errors.Is.
var ErrNone = errors.New("no BPF object inside")

// Object is one BPF ELF object. Its zero value is no object.
type Object struct {
	// Name tells the objects of one file apart: empty if the file is the
	// object; else the host's symbol for it; else "#1", "#2", … in file order.
	Name string
	// Offset is where the object starts in the file, in bytes.
	Offset int
	// Data is the object and nothing behind it.
	Data []byte
	// Hosts are the machines whose kernels run the program, or load the library, that the object is embedded in:
	// canonical names of pkg/kernel. None if the file is the object, or does not tell.
	Hosts []string
}

// Find returns the 64-bit BPF ELF objects in data, in file order, identical
// ones once. Data of each is a part of data, which must not change while they
// are in use. Objects of machine "none", which old compilers made, count if
// they have a section .BTF.
//
// If data itself is an object and damaged, the error says how. If it has no
// object inside, the error wraps [ErrNone], and says where one seems to be
// that is damaged. A damaged one beside intact ones is left out.
func Find(data []byte) ([]Object, error) {
	objs, err := scan(data)
	if err != nil {
		return nil, err
	}
	lone := len(objs) == 1 && objs[0].Offset == 0
	objs = dedupe(objs)
	if !lone {
		name(data, objs)
		if im, err := parseImage(data); err == nil {
			for i := range objs {
				objs[i].Hosts = machine.Hosts(machine.OfELF(im.machine, elf.Class(data[elf.EI_CLASS]), elf.Data(data[elf.EI_DATA])))
			}
		}
	}
	return objs, nil
}

// ReadFile reads the file at path, or standard input for [Stdin], of at most limit bytes ([DefaultLimit] if
// limit is not positive), and returns what [Find] finds in it. Errors start
// with the path. The objects share no memory with the rest of the file.
func ReadFile(path string, limit int64) ([]Object, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	data, err := readLimited(path, limit)
	if path == Stdin {
		path = "standard input"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return nil, fmt.Errorf("%s: %w", path, pe.Err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	objs, err := Find(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range objs {
		if len(objs[i].Data) < len(data) {
			objs[i].Data = bytes.Clone(objs[i].Data)
		}
	}
	return objs, nil
}

func readLimited(path string, limit int64) ([]byte, error) {
	f := os.Stdin
	if path != Stdin {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	var buf bytes.Buffer
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		if st.Size() > limit {
			return nil, fmt.Errorf("larger than %d bytes", limit)
		}
		buf.Grow(int(st.Size()) + bytes.MinRead)
	}
	// The size may be unknown, as for a pipe, or grow meanwhile.
	n, err := io.Copy(&buf, io.LimitReader(f, limit))
	if err != nil {
		return nil, err
	}
	if n == limit {
		if k, _ := f.Read(make([]byte, 1)); k > 0 {
			return nil, fmt.Errorf("larger than %d bytes", limit)
		}
	}
	return buf.Bytes(), nil
}

// scan returns the objects of data in file order, at least one if there is no
// error.
func scan(data []byte) ([]Object, error) {
	var (
		objs    []Object
		damaged error
		// An intact object pays for its section headers with its own length.
		// Damaged ones could have every magic point at the same long table.
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
	default:
		return nil, ErrNone
	}
}

// object returns the length of the BPF object that starts with the magic at
// data[0], 0 if what is there is no BPF object, and an error if it is one but
// damaged. first says that data is the whole file: then a header cut short or
// of no machine is taken for a damaged object, elsewhere for chance.
func object(data []byte, first bool, budget *int) (int, error) {
	m, ok := elfMachine(data)
	if !ok {
		if first && len(data) < header64 {
			return 0, errTruncated
		}
		return 0, nil
	}
	end, err := measure(data, budget)
	if m == elf.EM_NONE && err != nil && !first && !errors.Is(err, errBudget) {
		return 0, nil
	}
	return end, err
}

// measure returns the length of the object at data[0], 0 if it is of no
// machine and has no BTF.
func measure(data []byte, budget *int) (int, error) {
	im, err := parseImage(data)
	if err != nil {
		return 0, err
	}
	if !im.is64 {
		return 0, errors.New("32-bit ELF, want 64-bit")
	}
	if im.typ != elf.ET_REL {
		return 0, fmt.Errorf("ELF type %d, want %d (relocatable)", im.typ, elf.ET_REL)
	}
	end, err := im.extent(budget)
	if err != nil {
		return 0, err
	}
	if im.machine == elf.EM_NONE && !im.hasSection(".BTF") {
		return 0, nil
	}
	return end, nil
}

// elfMachine returns the machine that the ELF header at data[0] names, and
// whether it may be a BPF object's: BPF itself, or none in a relocatable file.
func elfMachine(data []byte) (elf.Machine, bool) {
	if len(data) < HeadBytes {
		return elf.EM_NONE, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(data[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	m := elf.Machine(order.Uint16(data[18:]))
	rel := elf.Type(order.Uint16(data[16:])) == elf.ET_REL
	return m, m == elf.EM_BPF || m == elf.EM_NONE && rel
}

// HeadBytes is how many bytes of a file MayBeObject looks at.
const HeadBytes = 20

// MayBeObject reports whether a file that begins with head may be a BPF object, rather than embed some.
func MayBeObject(head []byte) bool {
	_, ok := elfMachine(head)
	return ok && bytes.HasPrefix(head, []byte(magic))
}

// dedupe drops the objects that equal an earlier one.
func dedupe(objs []Object) []Object {
	if len(objs) == 1 {
		return objs
	}
	seen := make(map[[sha256.Size]byte]bool, len(objs))
	kept := objs[:0]
	for _, o := range objs {
		sum := sha256.Sum256(o.Data)
		if seen[sum] {
			continue
		}
		seen[sum] = true
		kept = append(kept, o)
	}
	return kept
}
