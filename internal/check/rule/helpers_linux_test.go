// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// unprobed are helpers that the tested kernels lack, or that need a configuration
// or rights that tests do not have.
var unprobed = map[string]bool{
	"bpf_override_return": true, "bpf_probe_write_user": true,
	"bpf_skb_pull_data": true,                         // allowed for lwt_seg6local in 6.18, not in 7.2
	"bpf_setsockopt":    true, "bpf_getsockopt": true, // allowed at some hooks of lsm_cgroup and of cgroup/sock
}

// TestVerifierHelpers asks the running kernel, of each type of programs, which
// helpers they may call. None that it lets them call may count as forbidden.
// With -v the answers are logged: helpers.txt is made of them.
func TestVerifierHelpers(t *testing.T) {
	k := datedKernel(t)
	types := 0
	for _, p := range probes {
		s, l := p.loader(t, k)
		if l == nil {
			continue
		}
		types++
		var allowed []int64
		for id := int64(1); id <= facts.LastHelper; id++ {
			if !k.helpers[id] {
				continue
			}
			log, err := l.load(helperCall(id))
			if errors.Is(err, unix.EPERM) {
				t.Fatal(p.section, err)
			}
			why := k.forbidden(s, id)
			status := why.Status
			forbids := slices.ContainsFunc([]string{"unknown func ", "cannot use helper", "sleep", "supported only for", "not supported for program type"},
				func(text string) bool { return strings.Contains(log, text) })
			if !forbids {
				allowed = append(allowed, id)
			}
			switch {
			case !forbids && status == Fails:
				t.Errorf("%s: %s is allowed, but %s", p.section, facts.HelperName(id), why.Code)
			case forbids && status == OK && !unprobed[facts.HelperName(id)]:
				t.Errorf("%s: %s is not allowed: %s", p.section, facts.HelperName(id), cmp.Or(log, fmt.Sprint(err)))
			}
		}
		t.Logf("%s: %s: may call%s", p.section, p.to, ranges(allowed))
	}
	if types < 20 {
		t.Errorf("%d types", types)
	}
}

// ranges writes ascending numbers.
func ranges(l []int64) string {
	var b strings.Builder
	for i := 0; i < len(l); {
		j := i
		for j+1 < len(l) && l[j+1] == l[j]+1 {
			j++
		}
		fmt.Fprintf(&b, " %d", l[i])
		if j > i {
			fmt.Fprintf(&b, "-%d", l[j])
		}
		i = j + 1
	}
	return b.String()
}

// loader returns what loads programs of the type, and their section; nil if the kernel has none, or they cannot be
// loaded here.
func (p *probe) loader(t *testing.T, k *Inventory) (*bpfobj.Section, *loader) {
	s := bpfobj.SectionOf(p.section)
	if s == nil || k.lacks(facts.EnumProg, "BPF_PROG_TYPE_"+s.ProgType) {
		return nil, nil
	}
	l := &loader{kind: uint32(p.kind), attach: uint32(p.attach)}
	if maySleep(s) {
		l.flags = unix.BPF_F_SLEEPABLE
	}
	if p.to != "" {
		y, ok := k.find(p.to, p.toKind)
		if !ok {
			return nil, nil
		}
		l.btfID = uint32(y.id)
	}
	if _, err := l.load(insn{Op: 0xb7}); err != nil {
		l.result = 1 // some types of attachment refuse 0
		if _, err := l.load(insn{Op: 0xb7}); err != nil {
			t.Logf("%s: %s: not probed: %v", p.section, p.to, err)
			return nil, nil
		}
	}
	return s, l
}

// datedKernel is runningKernel with the version of its release.
func datedKernel(t *testing.T, names ...string) *Inventory {
	t.Helper()
	k := runningKernel(t, names...)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	k.version = VersionOf(kernel.Key{Release: unix.ByteSliceToString(u.Release[:])})
	return k
}

// loader loads programs of one type.
type loader struct {
	kind, attach, flags, btfID uint32
	result                     int64
}

// load loads a program of some instructions, and returns the verifier's log.
func (l *loader) load(insns ...insn) (string, error) {
	var code []byte
	for _, in := range append(insns, insn{Op: 0xb7, Imm: l.result}, insn{Op: bpfobj.OpExit}) {
		code = append(code, byte(in.Op), byte(in.Dst|in.Src<<4))
		code = binary.LittleEndian.AppendUint16(code, uint16(in.Off))
		code = binary.LittleEndian.AppendUint32(code, uint32(in.Imm))
	}
	license, log := []byte("GPL\x00"), make([]byte, 1<<14)
	attr := struct {
		kind, insns       uint32
		code, license     uint64
		logLevel, logSize uint32
		log               uint64
		version, flags    uint32
		name              [16]byte
		ifindex, attach   uint32
		btf, funcSize     uint32
		funcs             uint64
		numFuncs          uint32
		lineSize          uint32
		lines             uint64
		numLines, btfID   uint32
	}{
		kind: l.kind, insns: uint32(len(code) / 8), code: address(code), license: address(license),
		logLevel: 1, logSize: uint32(len(log)), log: address(log), flags: l.flags, attach: l.attach, btfID: l.btfID,
	}
	fd, errno := uintptr(0), unix.EAGAIN
	// The verifier stops for signals. Go's scheduler sends some.
	for errno == unix.EAGAIN {
		clear(log)
		fd, _, errno = unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	}
	runtime.KeepAlive([][]byte{code, license, log})
	text, _, _ := bytes.Cut(log, []byte{0})
	if errno != 0 {
		return string(text), errno
	}
	return string(text), unix.Close(int(fd))
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }
