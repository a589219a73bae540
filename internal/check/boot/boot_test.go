// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

func TestEvents(t *testing.T) {
	for _, e := range []Event{
		{Kind: Hello, Name: "6.1.0"},
		{Kind: Program, Object: 3, Name: "on_exec", Error: "no\nway", Errno: 22, Log: "0: (b7) r0 = 0\n@btfgen {}\x00\xff", Attach: Attached, Alone: "loads", Archive: Same, Extern: true},
	} {
		line := e.format()
		if strings.Contains(line, "\n") {
			t.Errorf("%q is no line", line)
		}
		got, ok := parse([]byte(line))
		e.Log = strings.ToValidUTF8(e.Log, "\ufffd")
		if !ok || got != e {
			t.Errorf("%+v became %+v", e, got)
		}
	}
	for _, line := range []string{"", "@btfgen", "@btfgen ", "@btfgen 7", `@btfgen {"kind":`, ` @btfgen {"kind":"end"}`, `[ 1.0] x @btfgen {"kind":"end"}`} {
		if e, ok := parse([]byte(line)); ok {
			t.Errorf("%q is %+v", line, e)
		}
	}
}

// file of an initial RAM file system.
type entry struct {
	mode, device uint64
	data         string
}

// unpack reads the newc format as the kernel does: fields of 8 hexadecimal digits, names and contents padded to 4
// bytes.
func unpack(t *testing.T, b []byte) map[string]entry {
	t.Helper()
	all := make(map[string]entry)
	for {
		field := func(i int) uint64 {
			n, err := strconv.ParseUint(string(b[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if string(b[:6]) != "070701" {
			t.Fatalf("%q is no header", b[:6])
		}
		size, nameEnd := int(field(6)), 110+int(field(11))
		name := string(b[110 : nameEnd-1])
		if b[nameEnd-1] != 0 {
			t.Fatalf("%q does not end", name)
		}
		start := (nameEnd + 3) &^ 3
		if name == "TRAILER!!!" {
			return all
		}
		all[name] = entry{field(1), field(9)<<8 | field(10), string(b[start : start+size])}
		b = b[(start+size+3)&^3:]
	}
}

func TestInitramfs(t *testing.T) {
	m := &Machine{
		Init: []byte("init!"), Config: []byte("CONFIG_X=y\n"), Objects: [][]byte{[]byte("one"), nil}, Modules: [][]byte{[]byte("module")}, Types: [][]byte{[]byte("types")},
		BTF: []byte("kernel's"), Archive: []byte("archive's"),
		Files: []File{{"tool", []byte("tool!")}}, Job: Job{Targets: map[string]string{"a": "b"}},
	}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := writeInitramfs(b, m); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same machine gives other bytes")
	}
	all := unpack(t, first.Bytes())
	for name, want := range map[string]entry{
		"init": {0o100755, 0, "init!"}, "config": {0o100644, 0, "CONFIG_X=y\n"}, "dev/console": {0o020600, 5<<8 | 1, ""}, "proc": {0o040755, 0, ""},
		"objects/0": {0o100644, 0, "one"}, "objects/1": {0o100644, 0, ""}, "modules/0": {0o100644, 0, "module"}, "types/0": {0o100644, 0, "types"}, "work/tool": {0o100755, 0, "tool!"},
		"btf": {0o100644, 0, "kernel's"}, "archive": {0o100644, 0, "archive's"},
		"job.json": {0o100644, 0, `{"objects":2,"modules":1,"types":1,"btf":true,"archive":true,"targets":{"a":"b"}}`},
	} {
		if got := all[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if err := writeInitramfs(full{}, m); err == nil {
		t.Error("no error of the writer")
	}
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// fakeQEMU replaces qemu by a script. KVM fails in it.
func fakeQEMU(t *testing.T, script string) (temporary string) {
	t.Helper()
	return fakeQEMUs(t, "echo 'KVM internal error. Suberror: 1' >&2; exec sleep 1000", script)
}

// fakeQEMUs replaces qemu by a script with KVM and another without.
func fakeQEMUs(t *testing.T, kvm, script string) (temporary string) {
	t.Helper()
	bin, tmp := t.TempDir(), t.TempDir()
	text := "#!/bin/sh\ncase \"$*\" in *'-accel kvm'*) " + kvm + ";; esac\n" + script
	if err := os.WriteFile(filepath.Join(bin, "qemu-system-x86_64"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tmp)
	return tmp
}

func TestBoot(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("needs /dev/fd")
	}
	const hello = `echo '@btfgen {"kind":"hello","name":"6.1.0"}';`
	const late = "not done after 1s"
	for _, tt := range []struct {
		name, script string
		want         string // text of the error, "" for none
		events       int
	}{
		{"as it should be", hello + `printf 'noise @btfgen {"kind":"program"}\r\n@btfgen {"kind":"program"}\r\n@btfgen {"kind":"end"}\r\n'; exec sleep 1000`, "", 2},
		{"gets kernel and files", `[ "$(cat /dev/fd/3)" = kernel ] && head -c 6 /dev/fd/4 | grep -q 070701 && ` + hello + `echo '@btfgen {"kind":"end"}'`, "", 1},
		{"guest fails", hello + `echo '@btfgen {"kind":"end","error":"no BTF"}'`, "the guest failed: no BTF", 1},
		{"ends at once", "exit 0", "the machine ended early", 0},
		{"refuses", "echo 'qemu: no such thing' >&2; exit 1", "qemu: no such thing", 0},
		{"panics", hello + "echo '[ 1.0] Kernel panic - not syncing: no init'; echo '[ 1.1] CPU: 0'; exit 0", "its console ends with: Kernel panic - not syncing: no init", 1},
		{"hangs", hello + "exec sleep 1000", late, 1},
		{"hangs with a child that holds the line", `while [ -d "$TMPDIR" ]; do sleep 0.1; done & exec sleep 1000`, late, 0},
		{"floods", "exec yes", "more than 67108864 bytes from the machine", 0},
		{"floods without lines", "exec cat /dev/zero", "more than 67108864 bytes from the machine", 0},
		{"floods standard error", "yes | head -c 50000000 >&2; " + hello + `echo '@btfgen {"kind":"end"}'`, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmp := fakeQEMU(t, tt.script)
			timeout := time.Hour
			if tt.want == late {
				timeout = time.Second
			}
			if strings.Contains(tt.want, "bytes") {
				raceflag.SkipSerial(t)
				slow.Skip(t)
			}
			events := 0
			emulated, err := Boot(t.Context(), &Machine{Arch: "x86_64", Kernel: []byte("kernel"), Init: []byte("init")}, timeout, time.Hour, func(Event) { events++ })
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if events != tt.events {
				t.Errorf("%d events, want %d", events, tt.events)
			}
			if emulated == "" {
				t.Error("it does not say that the machine was emulated")
			}
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestBootInterrupted(t *testing.T) {
	tmp := fakeQEMU(t, `echo $$ >"$TMPDIR/../pid"; echo '@btfgen {"kind":"hello"}'; exec sleep 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Boot(ctx, &Machine{Arch: "x86_64"}, time.Hour, time.Hour, func(Event) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(tmp, "..", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(text))); err == nil {
		t.Error("qemu still runs")
	}
}

func TestFind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for arch, want := range map[string]string{"x86_64": "needs qemu-system-x86_64", "arm64": "needs qemu-system-aarch64", "s390x": "machines of s390x are not booted"} {
		if _, err := Find(arch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

// FuzzConsole reads the output of a hostile machine.
func FuzzConsole(f *testing.F) {
	f.Add([]byte("[ 1.0] text\r\n@btfgen {\"kind\":\"program\",\"object\":-1}\n@btfgen {\"kind\":\"end\"}\nafter"))
	f.Add([]byte("Kernel panic - not syncing\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events := 0
		b := &running{report: func(Event) { events++ }, heard: func() {}}
		if err := b.read(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if n := len(b.withConsole(io.EOF).Error()); n > limits.GuestConsole+100 {
			t.Errorf("%d bytes of the console", n)
		}
		if n := bytes.Count(data, []byte(mark)); events > n {
			t.Errorf("%d events of %d lines", events, n)
		}
	})
}

// TestSilentKVM emulates a machine that KVM starts and then does not run.
func TestSilentKVM(t *testing.T) {
	if why := noKVM("x86_64"); why != "" {
		t.Skip("needs KVM: " + why)
	}
	// KVM gets a quarter of the time to show an event.
	fakeQEMUs(t, "exec sleep 1000", `echo '@btfgen {"kind":"end"}'`)
	emulated, err := Boot(t.Context(), &Machine{Arch: "x86_64", Kernel: []byte("kernel"), Init: []byte("init")}, 8*time.Second, time.Hour, func(Event) {})
	if err != nil || emulated == "" {
		t.Errorf("emulated because of %q: %v", emulated, err)
	}
}
