// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command guest tries the tracers on the kernel of a virtual machine, of
// which it is the first program; see scripts/examples-kernels.sh. It starts
// each of them, executes a program for it to see, compares what it tells of that
// program with what is true, and powers the machine off.
//
// It does so twice, so that the kernel's own BTF is passed over in both ways
// that there are: on request, and because it cannot be found.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// traced is the name under which this program does nothing but be executed.
const traced = "/traced"

// tracers are the programs that are tried, as far as they are there.
var tracers = []string{"/go-tracer", "/c-tracer"}

// patience is how long anything may take. Software emulation is slow.
const patience = time.Minute

func main() {
	if filepath.Base(os.Args[0]) == filepath.Base(traced) {
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: made to be the first program of a virtual machine")
		os.Exit(2)
	}
	verdict, err := run()
	if err != nil {
		verdict = "failed: " + err.Error()
	}
	fmt.Println("guest: verdict:", verdict)
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("guest: power off:", err)
	}
	select {}
}

// run returns what to say of a success.
func run() (verdict string, err error) {
	for _, m := range [][2]string{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tracefs", "/sys/kernel/tracing"}, {"bpf", "/sys/fs/bpf"},
	} {
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return "", fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	const own = "/sys/kernel/btf/vmlinux"
	if _, err := os.Stat(own); err != nil {
		fmt.Println("guest: this kernel has no BTF of its own")
	}
	types, err := tryAll("-ignore-kernel-btf")
	if err != nil {
		return "", fmt.Errorf("own BTF ignored: %w", err)
	}
	if err := unix.Mount("tmpfs", filepath.Dir(own), "tmpfs", 0, ""); err != nil && !errors.Is(err, unix.ENOENT) {
		return "", fmt.Errorf("mount over %s: %w", filepath.Dir(own), err)
	}
	if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is still there (%v)", own, err)
	}
	again, err := tryAll()
	if err != nil {
		return "", fmt.Errorf("own BTF hidden: %w", err)
	}
	if again != types {
		return "", fmt.Errorf("own BTF hidden: %s, but ignored: %s", again, types)
	}
	return "traced twice by " + types, nil
}

// tryAll tries every tracer that is there, and says where each has its types from.
func tryAll(args ...string) (string, error) {
	var all []string
	for _, tracer := range tracers {
		if _, err := os.Stat(tracer); err != nil {
			continue
		}
		types, err := try(tracer, args...)
		if err != nil {
			return "", fmt.Errorf("%s: %w", tracer, err)
		}
		all = append(all, filepath.Base(tracer)+", "+types)
	}
	if len(all) == 0 {
		return "", errors.New("no tracer is there")
	}
	return strings.Join(all, "; by "), nil
}

// try runs a tracer until it told of one program that was executed, and
// interrupts it then. It returns where the tracer has the types from.
func try(name string, args ...string) (types string, err error) {
	tracer := exec.Command(name, args...)
	stdout, err := tracer.StdoutPipe()
	if err != nil {
		return "", err
	}
	stderr, err := tracer.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := tracer.Start(); err != nil {
		return "", err
	}
	defer time.AfterFunc(patience, func() { tracer.Process.Kill() }).Stop()

	var said []string
	ready := false
	for lines := bufio.NewScanner(stderr); !ready && lines.Scan(); {
		if ready = lines.Text() == "ready"; !ready {
			said = append(said, lines.Text())
		}
	}
	types = strings.Join(said, "; ")
	if !ready {
		return "", fmt.Errorf("%w: %s", tracer.Wait(), types)
	}
	if !strings.HasPrefix(types, "types from: archive ") {
		return "", errors.New(types)
	}

	program := exec.Command(traced)
	if err := program.Run(); err != nil {
		return "", err
	}
	// The parent is process 1, this one. All three are read at offsets that only BTF tells.
	want := fmt.Sprintf("%d 1 %s", program.Process.Pid, filepath.Base(traced))
	fmt.Println("guest: executed:", want)
	event := bufio.NewScanner(stdout) // nothing else is executed here
	event.Scan()
	fmt.Println("guest: told:    ", event.Text())
	tracer.Process.Signal(syscall.SIGINT)
	if err := tracer.Wait(); err != nil {
		return "", fmt.Errorf("the tracer ended: %w", err)
	}
	if event.Text() != want {
		return "", fmt.Errorf("told %q, not %q", event.Text(), want)
	}
	return types, nil
}
