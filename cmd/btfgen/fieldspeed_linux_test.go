// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// fieldSpeed has tests of TestField about crashes, time and memory.
var fieldSpeed = map[string]func(t *testing.T, c *cases){
	"types-race": func(t *testing.T, c *cases) {
		for range 3 { // most runs used to crash
			c.commands(t, "types-race", "btfgen check --btf ../../corpus --types memberless.btf -j 8 -q many.o").want(t, `\[btfgen check: 3\]`)
		}
	},
	"check-globs": func(t *testing.T, c *cases) { // 200 patterns of 3 kB used to take 100 s of CPU time
		r := c.commands(t, "check-globs", "btfgen check --json --btf $TESTDATA/vmlinux/debian x.o 2>/dev/null")
		var report struct {
			Programs []struct {
				Findings []struct{ Code, Status string }
			}
		}
		if err := json.NewDecoder(strings.NewReader(r.output)).Decode(&report); err != nil {
			t.Fatal(err)
		}
		for i, p := range report.Programs {
			if !slices.ContainsFunc(p.Findings, func(f struct{ Code, Status string }) bool {
				return f.Code == "attach-target-patterns" && f.Status == "unknown"
			}) {
				t.Errorf("program %d: findings %v", i, p.Findings)
			}
		}
		if len(report.Programs) < 200 {
			t.Errorf("%d programs", len(report.Programs))
		}
	},
	"check-quadratic": func(t *testing.T, c *cases) {
		const settings = 32_000 // used to take 37 s of CPU time
		write(t, filepath.Join(c.dir, "check-quadratic/x.o"), string(unknownSettings(settings)))
		r := c.commands(t, "check-quadratic", "btfgen check --json --btf $TESTDATA/vmlinux/debian/12 x.o 2>/dev/null")
		var report struct {
			Programs []struct{ Findings []any }
		}
		if err := json.NewDecoder(strings.NewReader(r.output)).Decode(&report); err != nil {
			t.Fatal(err)
		}
		if len(report.Programs) != 1 || len(report.Programs[0].Findings) < settings {
			t.Errorf("%d programs, want one with %d findings", len(report.Programs), settings)
		}
	},
}

// unknownSettings returns an object whose program loads n variables of .kconfig with names that are no settings, and calls an unknown helper.
func unknownSettings(n int) []byte {
	le := binary.LittleEndian
	types := btf.NewBuilder(le)
	number := types.Type("int", btf.KindInt, false, 0, 4)
	types.Word(32)
	var code, rel []byte
	var vars []uint32
	symbols := make([]testelf.Symbol, 0, n+1)
	for i := range n {
		name := fmt.Sprintf("K%05d", i)
		vars = append(vars, uint32(types.Type(name, btf.KindVar, false, 0, uint32(number))), 0, 4)
		types.Word(2)
		symbols = append(symbols, testelf.Symbol{Name: name, Section: -1, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE)})
		rel = le.AppendUint64(le.AppendUint64(rel, uint64(len(code))), elf.R_INFO(uint32(i+1), 1))
		code = append(code, 0x18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x61, 0x10, 0, 0, 0, 0, 0, 0)
	}
	code = append(code, 0x85, 0, 0, 0, 0x0f, 0x27, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0)
	types.Type(".kconfig", btf.KindDatasec, false, n, uint32(4*n))
	types.Word(vars...)
	symbols = append(symbols, testelf.Symbol{Name: "prog", Section: 0, Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
	f := testelf.File{
		Order: le, Type: elf.ET_REL, Machine: elf.EM_BPF, Symbols: symbols,
		Sections: []testelf.Section{
			{Name: "kprobe/x", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code},
			{Name: ".relkprobe/x", Type: elf.SHT_REL, Info: 1, Data: rel},
			{Name: "license", Flags: elf.SHF_ALLOC, Data: []byte("GPL\x00")},
			{Name: ".BTF", Data: types.Bytes()},
		},
	}
	data, _ := f.Build()
	return data
}
