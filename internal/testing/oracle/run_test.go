// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/started"
)

// compile compiles testdata/name for BPF and returns the object's path.
func compile(t *testing.T, name string, args ...string) string {
	t.Helper()
	clang := NeedClang(t)
	obj := filepath.Join(t.TempDir(), strings.TrimSuffix(name, ".c")+".o")
	args = append(args, "-mcpu=v3", "-g", "-O2", "-Wall", "-Werror", "-c", "testdata/"+name, "-o", obj)
	if !strings.HasPrefix(args[0], "--target=") {
		args = append([]string{"--target=bpf"}, args...)
	}
	if out, err := exec.CommandContext(t.Context(), clang, args...).CombinedOutput(); err != nil {
		t.Fatalf("clang %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return obj
}

// live runs bpftool and checks that Parse understands every line.
func live(t *testing.T, input string, objects ...string) *Result {
	t.Helper()
	res, log, err := run(t.Context(), Need(t, "bpftool"), input, filepath.Join(t.TempDir(), "out.btf"), objects...)
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, res, log)
	return res
}

// brief is a record without type IDs, which differ between compilers.
func brief(r Record) string {
	at := func(s Spec) string {
		if s.Offset == "" {
			return s.TypeName + s.Path
		}
		return s.TypeName + s.Path + "@" + s.Offset
	}
	text := fmt.Sprintf("%s#%d %s %s", strings.TrimPrefix(r.Program, "kprobe/"), r.Index, r.Kind, at(r.Local))
	for _, c := range r.Candidates {
		if c.Match {
			text += " = " + at(c.Spec)
		} else {
			text += " ! " + at(c.Spec)
		}
	}
	if r.NoMatch {
		text += " none"
	}
	return text
}

func TestRunKinds(t *testing.T) {
	res := live(t, compile(t, "target.c"), compile(t, "kinds.bpf.c"))
	var got []string
	for _, r := range res.Records {
		got = append(got, brief(r))
	}
	want := []string{
		"fields#0 byte_off root.in.y[2]@12 ! root___narrow@0 = root.in.y[2]@24",
		"fields#1 byte_sz root.in@0 = root.in@8",
		"fields#2 byte_sz root.low@20 = root.low@56.5",
		"fields#3 byte_off root.high@20.3 = root.high@57",
		"fields#4 signed root.high@20.3 = root.high@57",
		"fields#5 lshift_u64 root.high@20.3 = root.high@57",
		"fields#6 rshift_u64 root.high@20.3 = root.high@57",
		"fields#7 field_exists root.gone@24 ! root@0 none",
		"fields#8 byte_off root.gone@24 ! root@0 none",
		"fields#9 byte_off root.tail[5]@72 = root.tail[5]@104",
		"fields#10 byte_off root[1].in.x@32 = root[1].in.x@112",
		"flavor#0 byte_off root___flavor.moved@0 ! root___narrow@0 = root.moved@60",
		"flavor#1 byte_off named_t.t@0 = named_t.t@8",
		"types#0 type_exists root = root",
		"types#1 type_exists absent none",
		"types#2 type_size inner = inner___twin = inner",
		"types#3 type_matches inner ! inner___twin ! inner none",
		"types#4 type_matches signed_state = signed_state",
		"types#5 local_type_id inner",
		"types#6 target_type_id named_t = named_t",
		"types#7 target_type_id unsigned long = unsigned long",
		"enums#0 enumval_exists state::BUSY = 7 = state::BUSY = 8",
		"enums#1 enumval_value state::BUSY = 7 = state::BUSY = 8",
		"enums#2 enumval_exists state::LOST = 9 ! state::IDLE = 0 none",
		"enums#3 enumval_value wide::BIG = 81985529216486895 = wide::BIG = 1147797409030816545",
		"enums#4 enumval_value signed_state::BELOW = -5 = signed_state::BELOW = -6",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if res.ExitStatus != 0 || res.Failure != "" || !res.Written || len(res.Warnings) > 0 {
		t.Errorf("exit status %d, failure %q, written %v, warnings %q", res.ExitStatus, res.Failure, res.Written, res.Warnings)
	}
}

func TestRunObjects(t *testing.T) {
	target, kinds := compile(t, "target.c"), compile(t, "kinds.bpf.c")
	one, two := live(t, target, kinds), live(t, target, kinds, kinds)
	if d := cmp.Diff(append(one.Records, one.Records...), two.Records); d != "" {
		t.Errorf("records (-one twice +both):\n%s", d)
	}
	if len(two.Found) != 2*len(one.Found) || !two.Written {
		t.Errorf("%d candidates found, written %v; want twice %d", len(two.Found), two.Written, len(one.Found))
	}
}

func TestRunErrors(t *testing.T) {
	slow.Nightly(t)
	tests := []struct {
		name    string
		err     string // in the last record
		failure string
		warning string
	}{
		1: {"ambiguous offset", "field offset ambiguity: 384 != 320", "recording relocations", ""},
		2: {"ambiguous value", "relocation decision ambiguity: success 64 != success 48", "recording relocations", ""},
		3: {"anonymous", "<byte_off> (0) relocation doesn't support anonymous types", "recording relocations", ""},
		4: {"array element", "can't be applied to array access", "recording relocations", ""},
		5: {"deep", "error matching candidate #0 ", "recording relocations", ""},
		6: {"unexpected kind", "", "", "unexpected kind float relocated"},
		7: {"forward", "", "unsupported kind: fwd", ""},
		8: {"long names", "", "", ""},
	}
	for i, tt := range tests {
		if tt.name == "" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			def := fmt.Sprintf("-DCASE=%d", i)
			res := live(t, compile(t, "target.c", def), compile(t, "errors.bpf.c", def))
			if len(res.Records) != 1 {
				t.Fatalf("%d records, want 1", len(res.Records))
			}
			r := res.Records[0]
			if !strings.Contains(r.Err, tt.err) || (r.Err == "") != (tt.err == "") {
				t.Errorf("error %q, want %q", r.Err, tt.err)
			}
			if !strings.Contains(res.Failure, tt.failure) || (res.Failure == "") != (tt.failure == "") {
				t.Errorf("failure %q, want %q", res.Failure, tt.failure)
			}
			if !strings.Contains(strings.Join(res.Warnings, " "), tt.warning) || (len(res.Warnings) == 0) != (tt.warning == "") {
				t.Errorf("warnings %q, want %q", res.Warnings, tt.warning)
			}
			if ok := tt.failure == ""; (res.ExitStatus == 0) != ok || res.Written != ok {
				t.Errorf("exit status %d, written %v", res.ExitStatus, res.Written)
			}
			if r.Local.Truncated != (tt.name == "long names") {
				t.Errorf("truncated %v", r.Local.Truncated)
			}
		})
	}
}

// An object that libbpf cannot read has no records. A damaged access string gives a
// record without a kind.
func TestRunDamaged(t *testing.T) {
	slow.Skip(t)
	target := compile(t, "target.c")
	if res := live(t, target, target); len(res.Records) != 0 || !strings.Contains(res.Failure, ".BTF.ext not found") || res.Written {
		t.Errorf("without .BTF.ext: %+v", res)
	}

	data, err := os.ReadFile(compile(t, "kinds.bpf.c"))
	if err != nil {
		t.Fatal(err)
	}
	for access, want := range map[string]string{
		"0:0:1:9": "parsing [2] struct root + 0:0:1:9 failed: ",
		"0:0:0:2": "captures type [4] of unexpected kind int; parsing [2] struct root + 0:0:0:2 failed: ",
	} {
		obj := filepath.Join(t.TempDir(), "damaged.o")
		patched := strings.Replace(string(data), "\x000:0:1:2\x00", "\x00"+access+"\x00", 1)
		if err := os.WriteFile(obj, []byte(patched), 0o600); err != nil {
			t.Fatal(err)
		}
		res := live(t, target, obj)
		if len(res.Records) != 1 || !strings.Contains(res.Records[0].Err, want) || res.Records[0].Local.Raw != access {
			t.Errorf("access string %s: records %+v, want error %q", access, res.Records, want)
		}
	}
}

// script writes a stand-in for bpftool.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bpftool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunProcess(t *testing.T) {
	ctx := t.Context()
	out := filepath.Join(t.TempDir(), "out.btf")
	stale := func() {
		if err := os.WriteFile(out, []byte("stale"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	stale()
	res, err := Run(ctx, script(t, `[ "$LC_ALL $*" = "C -d gen min_core_btf in `+out+` obj" ] || echo "$*"; exit 3`), "in", out, "obj")
	if err != nil || res.ExitStatus != 3 || res.Failure != "exit status 3" || res.Written || len(res.Other) > 0 {
		t.Errorf("exit 3: %+v, error %v", res, err)
	}
	res, err = Run(ctx, script(t, `echo new >"$5"; echo to stdout; echo to stderr >&2`), "in", out, "obj")
	if err != nil || res.ExitStatus != 0 || !res.Written || len(res.Other) != 2 {
		t.Errorf("success: %+v, error %v", res, err)
	}
	res, err = Run(ctx, script(t, `kill -SEGV $$`), "in", out, "obj")
	if err != nil || res.ExitStatus != -1 || !strings.Contains(res.Failure, "signal: segmentation fault") {
		t.Errorf("signal: %+v, error %v", res, err)
	}
	if res, err = Run(ctx, filepath.Join(t.TempDir(), "absent"), "in", out, "obj"); err == nil || res != nil {
		t.Errorf("no bpftool: %+v, error %v", res, err)
	}
	if res, err = Run(ctx, script(t, ""), "in", t.TempDir()+"/.", "obj"); err == nil || res != nil {
		t.Errorf("output is a directory: %+v, error %v", res, err)
	}

	runs := filepath.Join(t.TempDir(), "runs")
	hangs := script(t, ": >"+runs+"; exec sleep 1000000")
	if res, err = Run(started.Context(t, runs), hangs, "in", out, "obj"); !errors.Is(err, context.Canceled) || res != nil {
		t.Errorf("cancelled: %+v, error %v", res, err)
	}
}
