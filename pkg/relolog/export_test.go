package relolog

import (
	"bytes"
	"debug/elf"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// SelfTarget makes the types of an object a kernel.
func SelfTarget(o *Object) (*Target, error) {
	t := new(Target)
	if o.btf == nil {
		return t, t.Load("self", nil)
	}
	t.name = "self"
	t.views = []*view{{BTF: *o.btf}}
	return t, nil
}

// ExtParser returns a function that reads .BTF.ext with the types of an
// object, and the object's own .BTF.ext.
func ExtParser(object []byte) (parse func([]byte) error, ext []byte, err error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, nil, err
	}
	raw, err := f.Section(".BTF").Data()
	if err != nil {
		return nil, nil, err
	}
	btf, err := rawbtf.New(raw, nil)
	if err != nil {
		return nil, nil, err
	}
	ext, err = f.Section(".BTF.ext").Data()
	return func(b []byte) error {
		_, err := parseExt(b, btf)
		return err
	}, ext, err
}
