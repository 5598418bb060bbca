package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"podd/runtime/runtimetest/child"
	"podd/runtime/runtimetest/stack/tools"
)

// Options configure Boot.
type Options struct {
	Disk    tools.Disk // the machine writes to the image of its disk, so use a copy; see CopyDisk
	Payload string     // an image with the file system label "payload"
	XFS     string     // the image of XFSDevice; the machine writes to it
	Ext4    string     // the image of Ext4Device; the machine writes to it
	Dir     string     // directory to which the console's log is written
	Memory  string     // memory of the machine, like "2G"
	// KernelParameters are added to the command line of the kernel, such as "security=selinux".
	KernelParameters string
}

// Paths in the machine of the disks in Options.XFS and Options.Ext4. Only tests use these disks.
const (
	XFSDevice  = "/dev/vdc"
	Ext4Device = "/dev/vdd"
)

// A Machine is a running virtual machine. It is not safe for concurrent use.
type Machine struct {
	o      Options
	in     *os.File
	out    *bufio.Reader
	closer func()
	cmd    *exec.Cmd
	ended  chan struct{} // closed after Wait has returned
}

// CopyDisk returns a copy of a disk in dir, for a machine that writes to the disk.
func CopyDisk(ctx context.Context, d tools.Disk, dir string) (tools.Disk, error) {
	to := filepath.Join(dir, "disk")
	if out, err := exec.CommandContext(ctx, "cp", "--sparse=always", "--reflink=auto", d.Image, to).CombinedOutput(); err != nil {
		return d, fmt.Errorf("copying the disk of the virtual machine: %w: %s", err, out)
	}
	d.Image = to
	return d, nil
}

// Boot starts a machine and returns when the machine's shell responds. The caller must call
// CutPower when the machine is no longer needed.
func Boot(ctx context.Context, o Options) (*Machine, error) {
	if err := os.Remove(o.console()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the console log of the last boot: %w", err)
	}
	m, err := start(o)
	if err != nil {
		return nil, fmt.Errorf("starting qemu: %w", err)
	}
	code, err := m.Run(ctx, "true", io.Discard)
	if err == nil && code != 0 {
		err = fmt.Errorf("the shell of the virtual machine is not usable: the command true exited with code %d", code)
	}
	if err != nil {
		m.CutPower()
		return nil, fmt.Errorf("booting the virtual machine: %w", err)
	}
	return m, nil
}

// Run runs a shell command in the machine, copies its output to the writer line by line, and
// returns its exit code. If ctx is done, Run cuts the power.
func (m *Machine) Run(ctx context.Context, command string, to io.Writer) (code int, err error) {
	defer context.AfterFunc(ctx, m.kill)()
	const marker = "podd-vm: exit "
	if _, err := fmt.Fprintf(m.in, "( %s\n) </dev/null; code=$?; echo; echo '%s'$code\n", command, marker); err != nil {
		return 0, m.noResponseError(ctx, err)
	}
	for {
		line, err := m.out.ReadString('\n')
		if err != nil {
			return 0, m.noResponseError(ctx, err)
		}
		if rest, ok := strings.CutPrefix(line, marker); ok {
			return strconv.Atoi(strings.TrimSpace(rest))
		}
		if _, err := io.WriteString(to, line); err != nil {
			return 0, fmt.Errorf("copying the output of the virtual machine: %w", err)
		}
	}
}

// noResponseError returns the error for a machine that does not respond.
func (m *Machine) noResponseError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("no response from the virtual machine: %w; its console ends with:\n%s", err, m.o.consoleTail())
}

// CutPower cuts the power and returns when the machine has stopped. It may be called more than once.
func (m *Machine) CutPower() {
	m.kill()
	<-m.ended
	m.closer()
}

func (m *Machine) kill() { _ = m.cmd.Process.Kill() } // Kill returns an error if qemu has exited

// start starts qemu and the goroutine that waits for it.
func start(o Options) (*Machine, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inRead.Close(), inWrite.Close())
	}
	defer inRead.Close() // qemu inherits copies of these descriptors
	defer outWrite.Close()
	m := &Machine{
		o: o, in: inWrite, out: bufio.NewReader(outRead), cmd: o.command(), ended: make(chan struct{}),
		closer: func() { inWrite.Close(); outRead.Close() },
	}
	m.cmd.Stdin, m.cmd.Stdout, m.cmd.Stderr = inRead, outWrite, os.Stderr
	if err := child.Start(m.cmd); err != nil {
		m.closer()
		return nil, err
	}
	go func() {
		defer close(m.ended)
		_ = m.cmd.Wait() // an error is expected, because qemu was killed to cut the power
	}()
	return m, nil
}

func (o Options) console() string { return filepath.Join(o.Dir, "console.log") }

func (o Options) consoleTail() string {
	text, err := os.ReadFile(o.console())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-1500):])
}

func (o Options) command() *exec.Cmd {
	cmd := exec.Command("qemu-system-x86_64",
		"-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot",
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", o.Memory,
		"-kernel", o.Disk.Kernel, "-initrd", o.Disk.Initrd, "-append", "root=/dev/vda rw console=ttyS0 panic=-1 "+o.KernelParameters,
		// With cache=unsafe, the host's page cache contains the writes of the machine, so that they
		// are not lost when qemu is killed.
		"-drive", "file="+o.Disk.Image+",format=raw,if=virtio,cache=unsafe,discard=unmap",
		"-drive", "file="+o.Payload+",format=raw,if=virtio,readonly=on",
		"-drive", "file="+o.XFS+",format=raw,if=virtio,cache=unsafe,discard=unmap",
		"-drive", "file="+o.Ext4+",format=raw,if=virtio,cache=unsafe,discard=unmap",
		"-device", "virtio-rng-pci",
		"-serial", "file:"+o.console(),
		"-chardev", "stdio,id=shell,signal=off", "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=shell,name=podd",
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // in its own process group, so that Ctrl-C interrupts only the test
	return cmd
}
