// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/limits"
)

// Guest is the first process of a booted machine: it does its job and ends the machine. It returns only where
// it is no such process, with an error.
func Guest() error {
	if os.Getpid() != 1 {
		return errors.New("this word is for the machines that check --boot boots")
	}
	g := &guest{w: os.Stdout}
	if err := g.run(); err != nil {
		g.tell(Event{Kind: End, Error: err.Error()})
	} else {
		g.tell(Event{Kind: End})
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // qemu takes that for the end, and the host ends qemu anyway
	select {}
}

type guest struct{ w io.Writer }

// tell writes an event. What the kernel or firmware has written before may lack the end of its line.
func (g *guest) tell(e Event) {
	e.Error, e.Log, e.Attach = end(e.Error, 1024), end(e.Log, limits.GuestLog), end(e.Attach, 1024)
	e.Alone = end(e.Alone, 1024)
	fmt.Fprintf(g.w, "\n%s\n", e.format())
}

// end returns the last n bytes of a text.
func end(s string, n int) string { return s[max(0, len(s)-n):] }

// mounts are those of a distribution, as far as loaders need them. Some kernels lack some, which shows where it matters.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"bpf", "/sys/fs/bpf"},
	{"debugfs", "/sys/kernel/debug"}, {"tracefs", "/sys/kernel/tracing"}, {"cgroup2", "/sys/fs/cgroup"},
}

func (g *guest) run() error {
	for _, m := range mounts {
		_ = unix.Mount(m.kind, m.at, m.kind, 0, "")
	}
	// From here on the kernel's own messages, which would get between ours, are only those of its end.
	_ = os.WriteFile("/proc/sys/kernel/printk", []byte("1"), 0)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	release := unix.ByteSliceToString(u.Release[:])
	g.tell(Event{Kind: Hello, Name: release})
	_ = os.Symlink("/"+configPath, "/boot/config-"+release) // where loaders look for it
	text, err := os.ReadFile("/" + jobPath)
	if err != nil {
		return err
	}
	var j Job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	// Before 5.11 maps are locked memory. The library's way probes the kernel as soon as any program starts that has it.
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	for i := range j.Modules {
		e := Event{Kind: Module, Object: i}
		if err := loadModule(file(modulesPath, i)); err != nil {
			e.Error = err.Error()
		}
		g.tell(e)
	}
	if len(j.Command) > 0 {
		return g.command(&j)
	}
	return objects(&j, g.tell)
}

// file returns the path of a file with a number.
func file(dir string, i int) string { return path.Join("/", dir, strconv.Itoa(i)) }

func loadModule(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// command runs a program, and tells what it prints and ends with.
func (g *guest) command(j *Job) error {
	cmd := exec.Command(path.Join("/", workPath, j.Command[0]), j.Command[1:]...)
	cmd.Dir = path.Join("/", workPath)
	cmd.Env = append([]string{"PATH=" + cmd.Dir, "HOME=/tmp", "TMPDIR=/tmp"}, j.Env...)
	out := &outputs{g: g, left: limits.GuestOutput}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	e := Event{Kind: Exit}
	if err != nil {
		e.Error, e.Status = err.Error(), max(1, cmd.ProcessState.ExitCode())
	}
	g.tell(e)
	return nil
}

// outputs tells what a command prints, as far as it may be told. One goroutine writes to it.
type outputs struct {
	g    *guest
	left int
}

func (o *outputs) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && o.left > 0 {
		part := b[:min(len(b), o.left, 4096)]
		b, o.left = b[len(part):], o.left-len(part)
		o.g.tell(Event{Kind: Output, Output: string(part)})
		if o.left == 0 {
			o.g.tell(Event{Kind: Output, Output: "\n[no more of its output is told]\n"})
		}
	}
	return n, nil
}
