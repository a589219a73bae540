// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// settingPrefix begins the names of externs that are settings of the kernel's build.
const settingPrefix = "CONFIG_"

// Variables that loaders set without the configuration.
const (
	versionVariable = "LINUX_KERNEL_VERSION"
	wrapperVariable = "LINUX_HAS_SYSCALL_WRAPPER"
	cookieVariable  = "LINUX_HAS_BPF_COOKIE"
)

// settingKind is what a variable for a setting can hold, as libbpf has it (find_kcfg_type in src/libbpf.c).
type settingKind uint8

const (
	settingOther settingKind = iota
	settingBool
	settingChar
	settingInt
	settingTristate // enum libbpf_tristate
	settingText     // an array of char
)

// settingKindOf returns the kind of a variable's type, its size in bytes, and whether numbers in it have a sign.
func (o *Object) settingKindOf(x *bpfobj.Extern) (kind settingKind, size int, signed bool) {
	v := o.BTF.Type(x.Type)
	t, ok := o.BTF.SkipMods(v.Ref())
	if !ok {
		return settingOther, 0, false
	}
	switch size = int(t.Size()); t.Kind() {
	case btf.KindInt:
		enc := t.IntEncoding()
		signed = enc&btf.IntSigned != 0
		switch {
		case enc&btf.IntBool != 0 && size == 1:
			return settingBool, size, signed
		case enc&btf.IntBool != 0:
		case size == 1:
			return settingChar, size, signed
		case size == 2 || size == 4 || size == 8:
			return settingInt, size, signed
		}
	case btf.KindEnum, btf.KindEnum64:
		if size == 4 && string(t.Name()) == "libbpf_tristate" {
			return settingTristate, size, false
		}
	case btf.KindArray:
		e, _ := o.BTF.SkipMods(t.Array().Elem)
		if n := t.Array().Nelems; n > 0 && e.Kind() == btf.KindInt && e.Size() == 1 {
			return settingText, int(n), false
		}
	}
	return settingOther, 0, false
}

// errNotSet says that a setting is not in the configuration.
var errNotSet = errors.New("not set in the kernel's configuration")

// Setting returns what libbpf writes into a variable for a setting of the kernel's build that is text in the
// configuration, in the object's byte order, or why it refuses to; text is followed by zeros. See set_kcfg_value_tri,
// set_kcfg_value_str and set_kcfg_value_num in its src/libbpf.c.
func (o *Object) Setting(x *bpfobj.Extern, text string) ([]byte, error) {
	kind, size, signed := o.settingKindOf(x)
	no := fmt.Errorf("is %s in the kernel's configuration, which the variable's type does not take", text)
	if strings.HasPrefix(text, `"`) {
		if kind != settingText || len(text) < 2 || !strings.HasSuffix(text, `"`) {
			return nil, no
		}
		b := make([]byte, min(size, len(text)-1))
		copy(b[:len(b)-1], text[1:len(text)-1])
		return b, nil
	}
	var n uint64
	switch text {
	case "y", "m", "n":
		switch {
		case kind == settingChar:
			n = uint64(text[0])
		case kind == settingTristate && text == "m":
			n = 2
		case kind != settingBool && kind != settingTristate, text == "m":
			return nil, no
		case text == "y":
			n = 1
		}
	default:
		var err error
		n, err = parseSetting(text)
		takes := kind == settingInt || kind == settingChar || kind == settingBool && n <= 1
		if err != nil || !takes || !inRange(n, size, signed) {
			return nil, no
		}
	}
	b := make([]byte, 8)
	if o.Order() == binary.LittleEndian {
		binary.LittleEndian.PutUint64(b, n)
		return b[:size], nil
	}
	binary.BigEndian.PutUint64(b, n)
	return b[8-size:], nil
}

// setting is what a loader writes into a variable for a setting, as a number, and why it refuses to.
func (k *Inventory) setting(o *Object, x *bpfobj.Extern) (interp.Number, error) {
	text, ok := k.known.config[x.Name]
	if !ok {
		return interp.Number{}, errNotSet
	}
	b, err := o.Setting(x, text)
	if err != nil {
		return interp.Number{}, err
	}
	var w [8]byte
	if o.Order() == binary.LittleEndian {
		copy(w[:], b)
		return interp.Number{V: binary.LittleEndian.Uint64(w[:])}, nil
	}
	if strings.HasPrefix(text, `"`) {
		return interp.Number{Unknown: ^uint64(0)}, nil
	}
	copy(w[8-len(b):], b)
	return interp.Number{V: binary.BigEndian.Uint64(w[:])}, nil
}

// ebpfGoKconfig judges a variable that libbpf sets without the configuration, and cilium/ebpf may not: see
// resolveKconfig in its collection.go.
func (o *Object) ebpfGoKconfig(x *bpfobj.Extern) Finding {
	v := o.BTF.Type(x.Type)
	t := o.BTF.Type(v.Ref())
	isInt := t.Kind() == btf.KindInt
	f := Finding{Status: Fails, Code: KconfigEbpfGo, Subject: x.Name, Loader: EbpfGo}
	switch {
	case strings.HasPrefix(x.Name, settingPrefix):
		return Finding{}
	case x.Name == versionVariable && isInt && t.Size() == 4, x.Name == wrapperVariable && isInt:
		return Finding{}
	case x.Name == versionVariable:
		f.Size = 4
	case x.Name != wrapperVariable:
		f.Code = KconfigNoLookup
	}
	return f
}

// parseSetting reads a number as strtoull does, which takes negative ones.
func parseSetting(text string) (uint64, error) {
	digits, negative := strings.CutPrefix(text, "-")
	n, err := strconv.ParseUint(digits, 0, 64)
	if negative {
		n = -n
	}
	return n, err
}

// inRange is is_kcfg_value_in_range in libbpf's src/libbpf.c.
func inRange(v uint64, size int, signed bool) bool {
	if size == 8 {
		return true
	}
	bits := 8 * size
	if signed {
		return v+1<<(bits-1) < 1<<bits
	}
	return v>>bits == 0
}

// kconfig is what a loader puts into a .kconfig variable.
func (k *Inventory) kconfig(o *Object, x *bpfobj.Extern) interp.Number {
	yes := func(b bool) interp.Number {
		if b {
			return interp.Number{V: 1}
		}
		return interp.Number{}
	}
	switch x.Name {
	case versionVariable:
		return k.version
	case cookieVariable:
		_, ok := k.enums[facts.EnumHelper]["BPF_FUNC_get_attach_cookie"]
		return yes(ok)
	case wrapperVariable:
		if k.funcs > 0 {
			return yes(k.wrapper)
		}
	}
	if strings.HasPrefix(x.Name, settingPrefix) && k.known.config != nil {
		v, _ := k.setting(o, x) // if the setting is refused, no program is loaded
		return v
	}
	return interp.Number{Unknown: ^uint64(0)}
}

// settingFinding judges an extern for a setting.
func (k *Inventory) settingFinding(o *Object, x *bpfobj.Extern) Finding {
	if !strings.HasPrefix(x.Name, settingPrefix) || k.known.config == nil && x.Weak {
		return Finding{}
	}
	if k.known.config == nil {
		return Finding{Status: MayFail, Code: KconfigUnknown}
	}
	_, err := k.setting(o, x)
	switch {
	case err == nil || err == errNotSet && x.Weak:
		return Finding{}
	case err == errNotSet:
		return Finding{Status: Fails, Code: KconfigUnset}
	}
	return Finding{Status: Fails, Code: KconfigType, Args: Args{Name: k.known.config[x.Name]}}
}
