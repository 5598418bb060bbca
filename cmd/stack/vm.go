package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"podd/runtime/runtimetest/stack/tools"
	"podd/runtime/runtimetest/vm"
)

// vmCmd runs the tests that need a separate system in a virtual machine.
type vmCmd struct {
	Dir     string        `default:".run/vm" help:"Directory for the disk of the virtual machine and the logs."`
	Version string        `help:"Version that \"podd version\" prints."`
	Step    string        `help:"Run only the steps whose name contains this text."`
	From    string        `help:"Run only the step with this name and the steps after it."`
	Limit   time.Duration `default:"40m" help:"Time limit of a step."`
}

// Run runs the steps in order on one virtual machine. It stops at the first failure.
func (v vmCmd) Run(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("creating the disk of a virtual machine needs root; run this command with sudo")
	}
	p, err := newWorkDir(v.Dir)
	if err != nil {
		return err
	}
	lock, err := p.lock()
	if errors.Is(err, errLocked) {
		return fmt.Errorf("another \"make vm\" is running in %s", relativePath(p.dir))
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	selected, err := selectSteps(v.Step, v.From)
	if err != nil {
		return err
	}
	disk, err := tools.EnsureDisk(ctx, slog.Default())
	if err != nil {
		return err
	}
	printStep("disk", "Debian with systemd and cgroup v2", disk.Took)
	startTime := time.Now()
	h := vmRunner{vmCmd: v, newDisk: disk, options: vm.Options{Dir: p.dir, Payload: filepath.Join(p.dir, "payload"), XFS: filepath.Join(p.dir, "xfs"), Ext4: filepath.Join(p.dir, "ext4")}}
	if err := makePayload(ctx, v.Version, filepath.Join(p.dir, "pack"), h.options.Payload, slices.ContainsFunc(selected, step.needsNodeSuite)); err != nil {
		return err
	}
	printStep("payload", "podd, its tests and packages, two container runtimes and images", time.Since(startTime))
	defer h.removeDisks()
	if err := h.replaceDisk(ctx); err != nil {
		return err
	}
	if err := errors.Join(tools.MakeXFS(ctx, h.options.XFS, stateDiskSize), tools.MakeExt4(ctx, h.options.Ext4, stateDiskSize)); err != nil {
		return err
	}
	return h.runSteps(ctx, selected)
}

// stateDiskSize is the size in bytes of each disk for podd's state. The image of the disk is a
// sparse file.
const stateDiskSize = 1 << 30

// A vmRunner runs steps in a virtual machine. It boots the machine before a step and cuts its
// power after a step if necessary.
type vmRunner struct {
	vmCmd
	newDisk tools.Disk // a disk to which no machine has written
	options vm.Options
	machine *vm.Machine // nil while the machine is powered off
}

// removeDisks powers off the machine and removes its disks. It keeps the logs.
func (h *vmRunner) removeDisks() {
	h.cutPower()
	os.Remove(h.options.Payload) // the next make vm creates a new payload
	os.Remove(filepath.Join(h.options.Dir, "disk"))
	os.Remove(h.options.XFS)
	os.Remove(h.options.Ext4)
}

// replaceDisk powers off the machine and replaces its disk by a copy of the new disk.
func (h *vmRunner) replaceDisk(ctx context.Context) (err error) {
	h.cutPower()
	h.options.Disk, err = vm.CopyDisk(ctx, h.newDisk, h.options.Dir)
	return err
}

func (h *vmRunner) cutPower() {
	if h.machine != nil {
		h.machine.CutPower()
		h.machine = nil
	}
}

func (h *vmRunner) runSteps(ctx context.Context, selected []step) error {
	for _, s := range selected {
		if err := h.runStep(ctx, s); err != nil {
			return fmt.Errorf("step %s: %w", s.name, err)
		}
		if s.needsNewDisk {
			if err := h.replaceDisk(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// runStep runs one step. It boots the machine if necessary, and cuts the power afterwards if the
// step requires it.
func (h *vmRunner) runStep(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Limit, fmt.Errorf("the step exceeded its time limit of %s", h.Limit))
	defer cancel()
	if s.needsNewDisk {
		if err := h.replaceDisk(ctx); err != nil {
			return err
		}
	}
	if memory := cmp.Or(s.memory, defaultMemory); s.kernel != h.options.KernelParameters || memory != h.options.Memory {
		h.cutPower()
		h.options.KernelParameters, h.options.Memory = s.kernel, memory
	}
	if h.machine == nil {
		startTime := time.Now()
		m, err := vm.Boot(ctx, h.options)
		if err != nil {
			return err
		}
		h.machine = m
		printStep("boot", "", time.Since(startTime))
	}
	startTime := time.Now()
	if err := h.runBinary(ctx, s); err != nil {
		return err
	}
	printStep("test", s.name+": "+s.description, time.Since(startTime))
	if s.cutsPower {
		h.cutPower()
		printStep("cut", "the power", 0)
	}
	return nil
}

// runBinary runs the test binary of a step and writes its output to a file. If the step fails,
// the error contains the end of the output.
func (h *vmRunner) runBinary(ctx context.Context, s step) error {
	file := filepath.Join(h.options.Dir, s.name+".log")
	log, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	var output bytes.Buffer
	code, err := h.machine.Run(ctx, s.shellCommand(h.Limit), io.MultiWriter(log, &output))
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return fmt.Errorf("%w; the output is in %s and ends with:\n%s", err, relativePath(file), lastLines(output.Bytes(), 40))
	}
	return nil
}
