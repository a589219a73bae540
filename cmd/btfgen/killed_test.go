package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// victim is a btfgen to be ended before it is done.
type victim struct {
	path    string // of the executable
	dir     string // holds the output and nothing else
	sources string
	objects []string
}

func newVictim(t *testing.T) *victim {
	if testing.Short() {
		t.Skip("starts btfgen many times")
	}
	if runtime.GOOS == "windows" {
		t.Skip("no signals to send")
	}
	v := &victim{path: filepath.Join(t.TempDir(), "btfgen"), dir: t.TempDir(), sources: "../../testdata/vmlinux"}
	if out, err := exec.Command("go", "build", "-o", v.path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	v.objects, _ = filepath.Glob("../../testdata/bpf/*.bpfel.o")
	if len(v.objects) < 10 {
		t.Fatalf("objects: %q", v.objects)
	}
	return v
}

func (v *victim) out() string { return filepath.Join(v.dir, "same.btfa") }

// generate is a command that writes the output for these objects.
func (v *victim) generate(objects []string, options ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	args := append([]string{"generate", "--btf", v.sources, "-o", v.out()}, options...)
	cmd, stderr = exec.Command(v.path, append(args, objects...)...), new(bytes.Buffer)
	cmd.Stderr = stderr
	return cmd, stderr
}

// make writes the output for these objects, undisturbed, and returns it.
func (v *victim) make(t *testing.T, objects ...string) []byte {
	t.Helper()
	cmd, stderr := v.generate(objects)
	cmd.Run()
	if s := cmd.ProcessState.ExitCode(); s != statusOK && s != statusFindings {
		t.Fatalf("exit status %d: %s", s, stderr)
	}
	return v.read(t)
}

func (v *victim) read(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(v.out())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reset leaves nothing in the directory but an output.
func (v *victim) reset(t *testing.T, data []byte) {
	t.Helper()
	for _, name := range v.others(t) {
		if err := os.Remove(filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(v.out(), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// others lists what is in the directory besides the output.
func (v *victim) others(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(v.out()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// state changes as soon as anything is written.
func (v *victim) state(t *testing.T) string {
	t.Helper()
	fi, err := os.Stat(v.out())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(fi.Size(), fi.ModTime(), v.others(t))
}

// Killed at any moment, generate leaves the old archive or the new one.
func TestKilled(t *testing.T) {
	v := newVictim(t)
	before := v.make(t, "../../testdata/bpf/tcplife.bpfel.o")
	start := time.Now()
	after := v.make(t, v.objects...)
	normal := time.Since(start)
	if bytes.Equal(before, after) {
		t.Fatal("both archives are the same")
	}
	count := make(map[string]int)
	// kill starts a run, kills it when moment returns, and looks at what is left.
	kill := func(name string, moment func(done <-chan struct{})) (killed bool) {
		v.reset(t, before)
		cmd, stderr := v.generate(v.objects)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			cmd.Wait()
			close(done)
		}()
		moment(done)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-done
		status := cmd.ProcessState.ExitCode()
		killed = status < 0
		if !killed && status != statusOK && status != statusFindings {
			t.Errorf("%s: exit status %d: %s", name, status, stderr)
		}
		var msgs bytes.Buffer
		if s := run(t.Context(), []string{"archive", "list", v.out()}, io.Discard, &msgs); s != statusOK {
			t.Errorf("%s: archive list: exit status %d: %s", name, s, &msgs)
		}
		switch got := v.read(t); {
		case bytes.Equal(got, after):
			count["new"]++
		case bytes.Equal(got, before) && killed:
			count["old"]++
		case bytes.Equal(got, before):
			t.Errorf("%s: not killed, and the old archive is there", name)
		default:
			t.Errorf("%s: %d bytes that are neither the old archive (%d) nor the new one (%d)", name, len(got), len(before), len(after))
		}
		left := v.others(t)
		if len(left) > 1 || len(left) == 1 && (!killed || !isTemporary(left[0])) {
			t.Errorf("%s: killed: %v, and left behind: %q", name, killed, left)
		}
		count["temporary file left"] += len(left)
		return killed
	}

	runs := 0
	for delay := time.Duration(0); ; {
		runs++
		if !kill(fmt.Sprint("after ", delay), func(<-chan struct{}) { time.Sleep(delay) }) {
			break // it was quicker
		}
		delay += max(normal, delay) / 16
	}
	// The moments that matter are few and late: those at which the new archive is being written.
	for range 12 {
		runs++
		kill("while writing", func(done <-chan struct{}) {
			for start := v.state(t); v.state(t) == start; {
				select {
				case <-done:
					return
				case <-time.After(10 * time.Microsecond):
				}
			}
		})
	}
	t.Logf("%d runs of %v: %v", runs, normal, count)
	if count["old"] == 0 || count["new"] == 0 {
		t.Errorf("never saw both outcomes: %v", count)
	}
}

func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".same.btfa.") && strings.HasSuffix(name, ".tmp")
}

// Interrupted, generate ends soon with its own status and leaves nothing.
func TestInterrupted(t *testing.T) {
	v := newVictim(t)
	before := v.make(t, "../../testdata/bpf/tcplife.bpfel.o")
	v.sources = manyKernels(t)
	soonest := time.Hour
	for n := range 2 {
		v.reset(t, before)
		// In order to end by itself it would take some ten seconds.
		cmd, stderr := v.generate(v.objects, "--jobs", "1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond << n)
		start := time.Now()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		took := time.Since(start)
		status := cmd.ProcessState.ExitCode()
		if status < 0 && n == 0 {
			continue // it had not come so far as to listen, on a busy machine
		}
		soonest = min(soonest, took)
		if status != 130 || !strings.Contains(stderr.String(), "btfgen: interrupted\n") {
			t.Errorf("exit status %d, want %d: %s", status, 130, stderr)
		}
		if left := v.others(t); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if !bytes.Equal(v.read(t), before) {
			t.Error("the archive is not the old one")
		}
	}
	// The quickest counts, for the sake of busy machines.
	if t.Logf("ended %v after the signal", soonest); soonest > time.Second {
		t.Errorf("ended %v after the signal, want a second at most", soonest)
	}
}

// manyKernels makes a corpus of many kernels that takes little space.
func manyKernels(t *testing.T) string {
	t.Helper()
	const kernel = "x86_64/6.1.0-47-amd64.btf.zst"
	data, err := os.ReadFile(filepath.Join("../../testdata/vmlinux/debian/12", kernel))
	if err != nil {
		t.Fatal(err)
	}
	dir, first := t.TempDir(), ""
	for n := range 1000 {
		path := filepath.Join(dir, "debian", fmt.Sprint(n), kernel)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = path
			err = os.WriteFile(path, data, 0o666)
		} else {
			err = os.Link(first, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
