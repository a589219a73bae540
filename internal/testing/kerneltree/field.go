// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// pointees are the structs of the kernel about which functions *_btf_struct_access are asked. No kernel allows writes to the last one.
var pointees = []string{"tcp_sock", "task_struct", "bpf_dummy_ops_state", "hid_bpf_ctx", "hid_device", "Qdisc", "sk_buff", "iou_loop_params", "file"}

// pointeeOf is the struct to which a variable of the kernel points.
var pointeeOf = map[string]string{
	"tcp_sock_type": "tcp_sock", "task_struct_type": "task_struct", "loop_params_type": "iou_loop_params",
	"bpf_sk_buff_ids": "sk_buff", "bpf_qdisc_ids": "Qdisc",
}

var (
	verifierOps  = regexp.MustCompile(`\.verifier_ops\s*=\s*&(\w+)`)
	opsName      = regexp.MustCompile(`\.name\s*=\s*"(\w+)"`)
	structAccess = regexp.MustCompile(`\.btf_struct_access\s*=\s*(\w+)`)
	writeRange   = regexp.MustCompile(`\bWRITE_RANGE\(\s*(\w+)\s*,\s*(\w+)\s*,\s*(\w+)\s*\)`)
)

// fields runs the functions *_btf_struct_access for each struct_ops and each struct.
func (t *Tree) fields() {
	for _, bodies := range t.defs.variables {
		for _, body := range bodies {
			name, ops := opsName.FindStringSubmatch(body), verifierOps.FindStringSubmatch(body)
			if name == nil || ops == nil {
				continue
			}
			relation := "fields " + name[1]
			t.Relations.add(relation, "none") // there is such a struct_ops
			for _, body := range t.defs.variables[ops[1]] {
				if check := structAccess.FindStringSubmatch(body); check != nil {
					t.Relations.add(relation, t.written(check[1])...)
				}
			}
		}
	}
}

// written returns the fields that a function lets programs write. In a function with a table it is the table.
func (t *Tree) written(check string) (l []string) {
	c := &calculator{tree: t, parsed: make(map[string]*function)}
	for _, text := range t.defs.functions[check] {
		for _, m := range writeRange.FindAllStringSubmatch(text, -1) {
			field := m[1] + " " + m[1] + "." + m[2] + ".."
			if m[3] == "true" {
				field += "-1"
			}
			l = append(l, field)
		}
	}
	if l != nil {
		return l
	}
	for _, to := range pointees {
		c.marks = &marks{pointee: to, met: make(map[int64]bool)}
		may := func(off, size int64) bool { return c.access(check, off, size) >= 0 }
		if may(0, 1) {
			l = append(l, to+" "+to)
			continue
		}
		for _, at := range slices.Sorted(maps.Keys(c.marks.met)) {
			name, ok := c.marks.name(at)
			switch {
			case !ok || !may(at, markSize):
			case may(at, markSize+1):
				c.note(check + " beyond " + name)
			case may(at+1, 1):
				l = append(l, to+" "+name+"..")
			default:
				l = append(l, to+" "+name)
			}
		}
	}
	t.tookForTrue(c.unknown)
	return l
}

// access runs a function *_btf_struct_access for a write. Older ones are given the type, and whether it is a write.
func (c *calculator) access(check string, off, size int64) int64 {
	f := c.parse(check)
	if f == nil {
		c.note(check + "()")
		return -1
	}
	args := make([]int64, len(f.parameters))
	for i, p := range f.parameters {
		switch p {
		case "off":
			args[i] = off
		case "size":
			args[i] = size
		case "t":
			args[i] = hash(c.marks.pointee)
		case "atype":
			args[i] = 2 // BPF_WRITE
		default:
			args[i] = 1
		}
	}
	return c.call(check, args)
}

// marks are numbers in place of the offsets of members whose place is not known. Each has a bit of its own, so that sums are known, too.
type marks struct {
	pointee string
	names   []string
	met     map[int64]bool // sums of offsets, and offsets
}

const (
	firstMark = 20 // its bit
	markSize  = 64 // bytes of each member
)

// mark returns the offset and size of a member. Elements of an array are its first one, or its last.
func (m *marks) mark(of, path []string) (offset, size int64) {
	name, index, element := strings.Cut(of[len(of)-1]+"."+strings.Join(path, ""), "[")
	i := slices.Index(m.names, name)
	if i < 0 {
		i = len(m.names)
		m.names = append(m.names, name)
	}
	offset, size = 1<<(firstMark+i), markSize
	m.met[offset] = true
	if element {
		size = 8
		if index != "0]" {
			offset += markSize - size
		}
	}
	return offset, size
}

// name returns the name of an offset: of a sum with + between.
func (m *marks) name(at int64) (name string, ok bool) {
	var l []string
	for i := range m.names {
		if at&(1<<(firstMark+i)) != 0 {
			l = append(l, m.names[i])
		}
	}
	return strings.Join(l, "+"), len(l) > 0 && at&(1<<firstMark-1) == 0
}
