// SPDX-License-Identifier: Apache-2.0

package btf_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
)

// words describes each word of a type of every kind, except the word with the kind: a name
// (n), a reference (r), or neither (-).
var words = map[btf.Kind]string{
	btf.KindInt:       "n--",
	btf.KindPtr:       "nr",
	btf.KindArray:     "n-rr-",
	btf.KindStruct:    "n- nr- nr- nr-",
	btf.KindUnion:     "n- nr-",
	btf.KindEnum:      "n- n- n-",
	btf.KindFwd:       "n-",
	btf.KindTypedef:   "nr",
	btf.KindVolatile:  "nr",
	btf.KindConst:     "nr",
	btf.KindRestrict:  "nr",
	btf.KindFunc:      "nr",
	btf.KindFuncProto: "nr nr nr",
	btf.KindVar:       "nr-",
	btf.KindDatasec:   "n- r-- r--",
	btf.KindFloat:     "n-",
	btf.KindDeclTag:   "nr-",
	btf.KindTypeTag:   "nr",
	btf.KindEnum64:    "n- n-- n--",
}

// TestOutside sets each word of a type of each kind to a value outside the blob. Load must
// report names and references, and no other words.
func TestOutside(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for kind := btf.KindInt; kind <= btf.KindEnum64; kind++ {
			elems := strings.Fields(words[kind])[1:]
			layout := strings.ReplaceAll(words[kind], " ", "")
			load := func(word int, value uint32) error {
				b := btf.NewBuilder(order)
				b.Type("", btf.KindPtr, false, 0, 0)
				id := b.Type("", kind, false, len(elems), 0)
				for range layout[2:] {
					b.Word(0)
				}
				b.Type("", btf.KindPtr, false, 0, 0)
				raw := b.Bytes()
				if word++; word == 1 {
					word = 0 // the second word is the kind's
				}
				order.PutUint32(raw[24+12*(id-1)+4*btf.TypeID(word):], value)
				_, err := btf.New(raw, nil)
				return err
			}
			for i, what := range layout {
				for _, value := range []uint32{3, 4, 1 << 31} { // there are types 1 to 3, and a string of one byte
					err := load(i, value)
					want := ""
					switch {
					case what == 'n':
						want = fmt.Sprintf("types: type 2 (%s) has a name at byte %d, strings end at 1", kind, value)
					case what == 'r' && value > 3:
						want = fmt.Sprintf("types: type 2 (%s) refers to type %d of 3", kind, value)
					}
					if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
						t.Errorf("%s %s, word %d (%c) set to %d: %v, want %q", order, kind, i, what, value, err, want)
					}
				}
			}
		}
	}
}

// TestUnaligned loads data that this machine cannot read in place.
func TestUnaligned(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for shift := range 4 {
			data := append(make([]byte, shift, 1<<10), sample(order)...)[shift:]
			v, err := btf.New(data, nil)
			if err != nil {
				t.Fatal(shift, err)
			}
			if u := v.Type(3); v.NumTypes() != 11 || string(u.Name()) != "s" || u.Member(0).BitSize != 3 {
				t.Errorf("shifted by %d: %d types, type 3 is %s", shift, v.NumTypes(), u.Name())
			}
		}
	}
}
