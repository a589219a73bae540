// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers/program"
)

// Guest is the first process of a booted machine: it does its job and ends the machine. In any other process it returns
// an error.
func Guest() error {
	if os.Getpid() != 1 {
		return errors.New("this word is for the machines that check --boot boots")
	}
	g := &guest{w: os.Stdout}
	if err := g.run(); err != nil {
		g.report(Event{Kind: End, Error: err.Error()})
	} else {
		g.report(Event{Kind: End})
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // ends qemu
	select {}
}

type guest struct{ w io.Writer }

// report writes an event on a line of its own: the kernel or firmware may have written a part of a line.
func (g *guest) report(e Event) {
	e.Error, e.Attach, e.Alone = end(e.Error, 1024), end(e.Attach, 1024), end(e.Alone, 1024)
	e.Log = end(e.Log, limits.GuestLog)
	e.Archive = end(e.Archive, 1024)
	fmt.Fprintf(g.w, "\n%s\n", e.format())
}

// end returns the last n bytes of a text.
func end(s string, n int) string { return s[max(0, len(s)-n):] }

// mounts are what loaders need. A kernel may lack some.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"bpf", "/sys/fs/bpf"},
	{"debugfs", "/sys/kernel/debug"}, {"tracefs", "/sys/kernel/tracing"}, {"cgroup2", "/sys/fs/cgroup"},
}

func (g *guest) run() error {
	for _, m := range mounts {
		_ = unix.Mount(m.kind, m.at, m.kind, 0, "")
	}
	// The kernel's messages would get between the events. Only a panic is still printed.
	_ = os.WriteFile("/proc/sys/kernel/printk", []byte("1"), 0)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	release := unix.ByteSliceToString(u.Release[:])
	g.report(Event{Kind: Hello, Name: release})
	_ = os.Symlink("/"+configPath, "/boot/config-"+release) // loaders look there
	text, err := os.ReadFile("/" + jobPath)
	if err != nil {
		return err
	}
	var j Job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	// Before 5.11 maps are locked memory. The library's rlimit package would probe the kernel in every process.
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	for i := range j.Modules {
		e := Event{Kind: Module, Object: i}
		if err := loadModule(file(modulesPath, i)); err != nil {
			e.Error = err.Error()
		}
		g.report(e)
	}
	if len(j.Command) > 0 {
		return g.command(&j)
	}
	return objects(&j, g.report)
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

// command runs a program and reports its output and how it ended.
func (g *guest) command(j *Job) error {
	dir := path.Join("/", workPath)
	out := &outputs{g: g, left: limits.GuestOutput}
	e := Event{Kind: Exit}
	p, err := program.Start(context.Background(), &program.Command{
		Name: path.Join(dir, j.Command[0]), Options: j.Command[1:], Dir: dir,
		Env:    append([]string{"PATH=" + dir, "HOME=/tmp", "TMPDIR=/tmp"}, j.Env...),
		Stdout: out, Stderr: out,
	})
	if err != nil {
		e.Error, e.Status = err.Error(), 1
	} else if err := p.Wait(); err != nil {
		e.Error, e.Status = err.Error(), max(1, p.ExitCode())
	}
	g.report(e)
	return nil
}

// outputs reports the beginning of a command's output. One goroutine writes to it.
type outputs struct {
	g    *guest
	left int
}

func (o *outputs) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && o.left > 0 {
		part := b[:min(len(b), o.left, 4096)]
		b, o.left = b[len(part):], o.left-len(part)
		o.g.report(Event{Kind: Output, Output: string(part)})
		if o.left == 0 {
			o.g.report(Event{Kind: Output, Output: "\n[the rest of the output is cut off]\n"})
		}
	}
	return n, nil
}
