// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Machine is a machine to boot, and what it is to do.
type Machine struct {
	Arch    string // x86_64 or arm64
	Kernel  []byte // its image
	Init    []byte // btfgen, statically linked, for Arch
	Config  []byte // the kernel's configuration; may be nil
	Objects [][]byte
	Modules [][]byte // in the order to load them in
	Types   [][]byte // BTF that loaders add to the kernel's
	Files   []File   // for Job.Command
	Job     Job      // but for the numbers of the files above
}

// Host boots machines, one at a time.
type Host struct {
	// Timeout is how long a machine may run.
	Timeout time.Duration

	// Emulated is why the last machine was emulated rather than run by the processor (KVM); empty if it was not.
	Emulated string

	brokenKVM bool // it has turned out not to work, and is not tried again
}

// emulators are qemu's programs, and what they are told for a machine; KVM takes another model of the processor.
var emulators = map[string]struct {
	program string
	args    []string
	cpu     string
	kernel  string // words of its command line
}{
	// qemu 7.2 leaves wrong flags behind an exchange of 16 bytes, of which kernels panic: hence no cx16.
	// Emulated on a busy machine, timers may be too slow for the kernel's test of them, which then panics: hence no_timer_check.
	"x86_64": {"qemu-system-x86_64", nil, "max,cx16=off", "console=ttyS0 no_timer_check"},
	"arm64":  {"qemu-system-aarch64", []string{"-machine", "virt,gic-version=max"}, "cortex-a72", "console=ttyAMA0"},
}

// Find looks for the program that emulates a machine.
func Find(arch string) (string, error) {
	e, ok := emulators[arch]
	if !ok {
		return "", fmt.Errorf("machines of %s are not booted, only x86_64 and arm64", arch)
	}
	path, err := exec.LookPath(e.program)
	if err != nil {
		return "", fmt.Errorf("needs %s, which is not installed", e.program)
	}
	return filepath.Abs(path)
}

// Installed returns an error if no machine can be booted, because none of the emulators is there.
func Installed() error {
	_, x86 := Find("x86_64")
	_, arm := Find("arm64")
	if x86 != nil && arm != nil {
		return x86
	}
	return nil
}

// kvmSeconds is how long a machine run by KVM may take to its first event. It takes 2 s; some machines have a /dev/kvm that does not work.
const kvmSeconds = 15

// errKVM is the cause where a machine is emulated after all.
var errKVM = errors.New("/dev/kvm does not work")

// Boot boots a machine and calls tell for its events, but for the last one. An error says why the machine did not come to its
// end; what it told before holds. Whatever happens qemu has ended when Boot returns, and nothing is left behind.
func (h *Host) Boot(ctx context.Context, m *Machine, tell func(Event)) error {
	qemu, err := Find(m.Arch)
	if err != nil {
		return err
	}
	kernelFile, err := temporary(func(w io.Writer) error { _, err := w.Write(m.Kernel); return err })
	if err != nil {
		return err
	}
	defer kernelFile.Close()
	initramfs, err := temporary(func(w io.Writer) error { return writeInitramfs(w, m) })
	if err != nil {
		return err
	}
	defer initramfs.Close()
	b := &running{host: h, m: m, qemu: qemu, files: []*os.File{kernelFile, initramfs}, tell: tell}
	if h.Emulated = h.noKVM(m.Arch); h.Emulated == "" {
		err := b.run(ctx, true)
		if !errors.Is(err, errKVM) {
			return err
		}
		h.Emulated, b.console = errKVM.Error(), lastText{}
	}
	err = b.run(ctx, false)
	h.brokenKVM = h.brokenKVM || h.Emulated == errKVM.Error() && b.hello // or it was the kernel's fault
	return err
}

// noKVM says why KVM cannot run a machine, as far as that is known before.
func (h *Host) noKVM(arch string) string {
	if here := kernel.CanonicalArch(runtime.GOARCH); here != arch {
		return "this machine is not of " + arch
	}
	if h.brokenKVM {
		return errKVM.Error()
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return "/dev/kvm cannot be opened"
	}
	f.Close()
	return ""
}

// temporary makes a file without a name, which is gone when it is closed, or when the process ends in whatever way.
func temporary(write func(io.Writer) error) (*os.File, error) {
	f, err := os.CreateTemp("", ".btfgen.*.tmp")
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(os.Remove(f.Name()), write(f)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// running is a machine that runs.
type running struct {
	host  *Host
	m     *Machine
	qemu  string
	files []*os.File // kernel and initial RAM file system
	tell  func(Event)

	probe        *time.Timer // ends what KVM does not run; nil without KVM
	hello, ended bool
	failed       string   // of the End event
	console      lastText // the kernel's messages
}

func (b *running) args(kvm bool) []string {
	e := emulators[b.m.Arch]
	cpu, accel := e.cpu, "tcg"
	if kvm {
		cpu, accel = "host", "kvm"
	}
	args := append([]string{"-accel", accel, "-cpu", cpu}, e.args...)
	return append(args, "-m", strconv.Itoa(limits.GuestMemory), "-smp", "1", "-nographic", "-nodefaults", "-no-reboot", "-serial", "stdio",
		"-kernel", "/dev/fd/3", "-initrd", "/dev/fd/4",
		"-append", e.kernel+" panic=-1 quiet mitigations=off rdinit=/"+initPath+" -- "+Word)
}

// run runs qemu once.
func (b *running) run(ctx context.Context, kvm bool) error {
	late := fmt.Errorf("not done after %s", b.host.Timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(b.host.Timeout, func() { cancel(late) }).Stop()

	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Unix(1, 0)) })()

	cmd := exec.CommandContext(ctx, b.qemu, b.args(kvm)...)
	cmd.ExtraFiles = b.files
	cmd.WaitDelay = time.Second // for what qemu may have started
	cmd.Stdout = w
	stderr := &complaints{kvm: kvm, broken: func() { cancel(errKVM) }}
	cmd.Stderr = stderr
	// qemu ends with the thread that starts it, should this process be killed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithUs(cmd)
	err = cmd.Start()
	w.Close()
	if err != nil {
		return err
	}
	if kvm {
		b.probe = time.AfterFunc(kvmSeconds*time.Second, func() { cancel(errKVM) })
		defer b.probe.Stop()
	}
	readErr := b.read(r)
	if b.ended || readErr != nil {
		cancel(readErr)
	}
	waitErr := cmd.Wait()
	cause := context.Cause(ctx)
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
	}
	if line := stderr.line(); line != "" && !b.hello {
		return fmt.Errorf("%s: %s", filepath.Base(b.qemu), line)
	}
	if waitErr != nil {
		return b.withConsole(fmt.Errorf("%s ended early: %w", filepath.Base(b.qemu), waitErr))
	}
	return b.withConsole(errors.New("the machine ended early"))
}

// withConsole adds what the kernel said last to an error.
func (b *running) withConsole(err error) error {
	if text := b.console.text(); text != "" {
		return fmt.Errorf("%w; its console ends with: %s", err, text)
	}
	return err
}
