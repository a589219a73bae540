// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
)

// TestReadable checks that cilium/ebpf reads the copy of every object of testdata and of BTFGEN_OBJECTS.
func TestReadable(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/bpf/*el.o")
	if err != nil || len(files) == 0 {
		t.Fatal("no objects", err)
	}
	if dir := os.Getenv("BTFGEN_OBJECTS"); dir != "" {
		large, err := filepath.Glob(dir + "/*/*.o")
		if err != nil || len(large) == 0 {
			t.Fatal("no objects in BTFGEN_OBJECTS", err)
		}
		files = append(files, large...)
	}
	changed := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := rule.Parse(t.Context(), file, data)
		if err != nil {
			continue // not an object
		}
		own, err := readable(data, o)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(own, data) {
			changed++
		}
		if _, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(own)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if changed < 4 {
		t.Errorf("%d objects have such externs", changed)
	}
}

// TestExterns loads programs that need externs into the running kernel.
func TestExterns(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	l := &loader{cache: btf.NewCache(), config: map[string]string{
		"CONFIG_BPF_SYSCALL": "y", "CONFIG_BPF_JIT": "y", "CONFIG_BPF_EVENTS": "y", "CONFIG_HZ": "250", "CONFIG_DEFAULT_HOSTNAME": `"(none)"`,
	}}
	for _, tt := range []struct {
		object, without string
		loads           []string
		missing         string
	}{
		{"settings", "", []string{"truth", "tristate", "letter", "number", "text", "not_set", "no_symbol"}, ""},
		{"settings", "CONFIG_BPF_SYSCALL", nil, "extern CONFIG_BPF_SYSCALL: not set in the kernel's configuration"},
		{"guards", "", []string{"kernel_version", "nested"}, ""},
		{"unset", "", nil, "extern CONFIG_NO_SUCH_SETTING: not set"},
	} {
		data, err := os.ReadFile("../../../testdata/bpf/" + tt.object + ".bpfel.o")
		if err != nil {
			t.Fatal(err)
		}
		kept := l.config[tt.without]
		delete(l.config, tt.without)
		o, err := rule.Parse(t.Context(), tt.object, data)
		if err != nil {
			t.Fatal(err)
		}
		own, err := readable(data, o)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(own))
		if err != nil {
			t.Fatal(err)
		}
		e, err := l.resolve(o)
		l.config[tt.without] = kept
		if tt.missing != "" {
			if err == nil || !strings.Contains(err.Error(), tt.missing) {
				t.Errorf("%s without %s: %v", tt.object, tt.without, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.object, err)
			continue
		}
		e.complete(spec)
		for _, name := range tt.loads {
			coll, err := l.load(one(spec, name), &l.own)
			if err != nil {
				t.Errorf("%s: %s: %v", tt.object, name, err)
			}
			coll.Close()
		}
	}
	if _, err := readConfig(); err != nil {
		t.Log(err)
	}
}
