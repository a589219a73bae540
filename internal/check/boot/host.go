// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/workers/program"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Machine is a machine to boot.
type Machine struct {
	Arch    string // x86_64 or arm64
	Kernel  []byte // image of the kernel
	Init    []byte // btfgen, statically linked, for Arch
	Config  []byte // configuration of the kernel; may be nil
	Objects [][]byte
	Modules [][]byte // modules to load, in order
	Types   [][]byte // BTF that loaders add to the kernel's
	BTF     []byte   // BTF for a kernel without its own; may be nil
	Archive []byte   // archive's BTF for the kernel; may be nil
	Files   []File   // files for Job.Command
	Job     Job      // job, without the numbers of the files above
}

// emulators are qemu's programs and their arguments for a machine. KVM uses another model of the processor.
var emulators = map[string]struct {
	program string
	args    []string
	cpu     string
	kernel  string // words of the kernel's command line
}{
	// cx16=off: qemu 7.2 sets wrong flags after an exchange of 16 bytes, and kernels panic.
	// no_timer_check: emulated timers may be too slow for the kernel's test on a busy machine, and it panics.
	"x86_64": {"qemu-system-x86_64", nil, "max,cx16=off", "console=ttyS0 no_timer_check"},
	"arm64":  {"qemu-system-aarch64", []string{"-machine", "virt,gic-version=max"}, "cortex-a72", "console=ttyAMA0"},
}

// Find returns the name of the program that emulates a machine, if it is installed.
func Find(arch string) (string, error) {
	e, ok := emulators[arch]
	if !ok {
		return "", fmt.Errorf("machines of %s are not booted, only x86_64 and arm64", arch)
	}
	if _, err := program.Find(e.program); err != nil {
		return "", err
	}
	return e.program, nil
}

// Installed returns an error if no emulator is installed.
func Installed() error {
	_, x86 := Find("x86_64")
	if _, arm := Find("arm64"); arm == nil {
		return nil
	}
	return x86
}

// kvmPatience is how long KVM gets to the first event, for which it needs two seconds.
const kvmPatience = 20 * time.Second

// errKVM is the reason to emulate a machine after KVM failed.
var errKVM = errors.New("/dev/kvm does not work")

// Boot boots a machine and calls report for its events except the last. It returns why the machine was emulated, "" if KVM ran it.
// The error says why the machine did not finish, such as after the timeout, or if it was silent for so long after its first event;
// events before it are valid. When Boot returns, qemu has ended and its files are gone.
func Boot(
	ctx context.Context, m *Machine, timeout, silent time.Duration, report func(Event),
) (emulated string, err error) {
	qemu, err := Find(m.Arch)
	if err != nil {
		return "", err
	}
	kernelFile, err := temporary(func(w io.Writer) error { _, err := w.Write(m.Kernel); return err })
	if err != nil {
		return "", err
	}
	defer kernelFile.Close()
	initramfs, err := temporary(func(w io.Writer) error { return writeInitramfs(w, m) })
	if err != nil {
		return "", err
	}
	defer initramfs.Close()
	b := &running{
		timeout: timeout, silent: silent, arch: m.Arch, qemu: qemu,
		files: []*os.File{kernelFile, initramfs}, report: report,
	}
	if emulated = noKVM(m.Arch); emulated == "" {
		if err := b.run(ctx, true); !errors.Is(err, errKVM) {
			return "", err
		}
		emulated, b.console = errKVM.Error(), nil
	}
	return emulated, b.run(ctx, false)
}

// noKVM returns a reason why KVM cannot run a machine, "" if there is none.
func noKVM(arch string) string {
	if kernel.CanonicalArch(runtime.GOARCH) != arch {
		return "this machine is not of " + arch
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return "/dev/kvm cannot be opened"
	}
	f.Close()
	return ""
}

// temporary makes a file without a name. It vanishes when it is closed or the process ends.
func temporary(write func(io.Writer) error) (*os.File, error) {
	f, err := output.Nameless("")
	if err != nil {
		return nil, err
	}
	if err = write(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// running is a machine that runs.
type running struct {
	timeout    time.Duration
	silent     time.Duration
	arch, qemu string
	files      []*os.File // kernel and initial RAM file system
	report     func(Event)

	heard        func() // restarts the time of silence
	hello, ended bool
	failed       string // error of the End event
	console      []byte // the kernel's last messages
}

func (b *running) args(kvm bool) []string {
	e := emulators[b.arch]
	cpu, accel := e.cpu, "tcg"
	if kvm {
		cpu, accel = "host", "kvm"
	}
	args := append([]string{"-accel", accel, "-cpu", cpu}, e.args...)
	return append(args, "-m", strconv.Itoa(limits.GuestMemory), "-smp", "1",
		"-nographic", "-nodefaults", "-no-reboot", "-serial", "stdio",
		"-kernel", "/dev/fd/3", "-initrd", "/dev/fd/4",
		"-append", e.kernel+" panic=-1 quiet mitigations=off rdinit=/"+initPath+" -- "+Word)
}

// run runs qemu once.
func (b *running) run(ctx context.Context, kvm bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := fmt.Errorf("not done after %s", b.timeout)
	defer time.AfterFunc(b.timeout, func() { cancel(late) }).Stop()
	silence := time.AfterFunc(time.Hour, func() { cancel(fmt.Errorf("silent for %s", b.silent)) })
	silence.Stop() // heard starts it
	defer silence.Stop()
	b.heard = func() { silence.Reset(b.silent) }
	if kvm { // some hosts have KVM, and a machine that does nothing
		patience := time.AfterFunc(min(kvmPatience, b.timeout/4), func() { cancel(errKVM) })
		defer patience.Stop()
		b.heard = func() { patience.Stop(); silence.Reset(b.silent) }
	}

	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Unix(1, 0)) })()

	stderr := &messages{broken: func() { cancel(errKVM) }}
	qemu, err := program.Start(ctx, &program.Command{
		Name: b.qemu, Options: b.args(kvm), Files: b.files, Stdout: w, Stderr: stderr,
	})
	w.Close()
	if err != nil {
		return err
	}
	readErr := b.read(r)
	if b.ended || readErr != nil {
		cancel(readErr)
	}
	waitErr := qemu.Wait()
	cause := context.Cause(ctx)
	line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	switch {
	case b.ended && b.failed != "":
		return fmt.Errorf("the guest failed: %s", b.failed)
	case b.ended:
		return nil
	case kvm && !b.hello && (cause == nil || errors.Is(cause, errKVM)):
		return errKVM
	case readErr != nil:
		return readErr
	case cause != nil:
		return b.withConsole(cause)
	case line != "" && !b.hello:
		return fmt.Errorf("%s: %s", b.qemu, line)
	case waitErr != nil:
		return b.withConsole(fmt.Errorf("%s ended early: %w", b.qemu, waitErr))
	}
	return b.withConsole(errors.New("the machine ended early"))
}

// messages are the first messages of qemu. If KVM fails while the machine runs, qemu says so and waits for a debugger.
type messages struct {
	decompress.Head
	broken func()
}

func (m *messages) Write(p []byte) (int, error) {
	n, err := m.Head.Write(p)
	if strings.Contains(m.String(), "KVM internal error") {
		m.broken()
	}
	return n, err
}

// read reads the serial line up to the last event or the end of qemu, which is not an error.
func (b *running) read(src io.Reader) error {
	limited := &io.LimitedReader{R: src, N: limits.GuestBytes + 1}
	in := bufio.NewReaderSize(limited, limits.GuestLine)
	for !b.ended {
		line, err := in.ReadSlice('\n')
		if limited.N == 0 {
			return &limits.Exceeded{Max: limits.GuestBytes, What: "bytes from the machine"}
		}
		b.line(bytes.TrimRight(line, "\r\n"))
		// A line that is too long for the buffer is not an event.
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil
		}
	}
	return nil
}

func (b *running) line(text []byte) {
	e, ok := parse(text)
	switch {
	case !ok && len(bytes.TrimSpace(text)) > 0:
		b.console = append(append(b.console, text...), '\n')
		if n := len(b.console) - limits.GuestConsole; n > limits.GuestConsole {
			b.console = b.console[:copy(b.console, b.console[n:])]
		}
	case !ok:
	case e.Kind == End:
		b.ended, b.failed = true, e.Error
	default:
		if e.Kind == Hello {
			b.hello = true
		}
		b.heard()
		b.report(e)
	}
}

// withConsole adds the kernel's panic, or else its last messages, to an error.
func (b *running) withConsole(err error) error {
	const most = 8
	text := string(bytes.TrimSpace(b.console[max(0, len(b.console)-limits.GuestConsole):]))
	if i := strings.LastIndex(text, "Kernel panic"); i >= 0 {
		text, _, _ = strings.Cut(text[i:], "\n")
	} else if l := strings.Split(text, "\n"); len(l) > 1 {
		text = strings.Join(l[max(0, len(l)-most):], " / ")
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; its console ends with: %s", err, text)
}
