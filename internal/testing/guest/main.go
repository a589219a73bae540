// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command guest tests the tracers in a virtual machine, as its init process; see
// scripts/examples-kernels.sh. It starts each tracer, executes a program, compares
// the tracer's output with the facts, and powers the machine off.
//
// It does so twice, because there are two ways to skip the kernel's own BTF: the
// tracer's option, and hiding the file.
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

// traced is the name under which this program exits at once.
const traced = "/traced"

// tracers are the programs to test. Missing ones are skipped.
var tracers = []string{"/go-tracer", "/c-tracer"}

// timeout is the limit for each step. Software emulation is slow.
const timeout = time.Minute

func main() {
	if filepath.Base(os.Args[0]) == filepath.Base(traced) {
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: must be the init process of a virtual machine")
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

// run returns the verdict of a successful test.
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
		return "", fmt.Errorf("%s still exists (%v)", own, err)
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

// tryAll tests every tracer and returns the source of its types.
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
		return "", errors.New("no tracer found")
	}
	return strings.Join(all, "; by "), nil
}

// try runs a tracer until it has reported one program, and then interrupts it. It
// returns the source of the tracer's types.
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
	defer time.AfterFunc(timeout, func() { tracer.Process.Kill() }).Stop()

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
	// The parent is this process, 1. The offsets of all three come from BTF.
	want := fmt.Sprintf("%d 1 %s", program.Process.Pid, filepath.Base(traced))
	fmt.Println("guest: executed:", want)
	event := bufio.NewScanner(stdout) // nothing else is executed here
	event.Scan()
	fmt.Println("guest: reported:", event.Text())
	tracer.Process.Signal(syscall.SIGINT)
	if err := tracer.Wait(); err != nil {
		return "", fmt.Errorf("the tracer ended: %w", err)
	}
	if event.Text() != want {
		return "", fmt.Errorf("reported %q, not %q", event.Text(), want)
	}
	return types, nil
}
