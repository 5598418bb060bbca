// Package csidriver is a driver of the Container Storage Interface for tests: a
// process of its own, which speaks the real protocol over real sockets and mounts
// for real. A volume is a directory or, as a block device, a file or a device node.
//
// Its process is the test's own program, started again: TestMain calls Main first.
//
//	<Dir>/csi.sock               where it serves
//	<Dir>/volumes/<handle>/      the files of a volume; <handle>.img of a device
//	<Dir>/calls                  a line of JSON for every call that begins and ends
//	<Dir>/control/<method>       what is to become of calls, see Set
package csidriver

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// variable has the Driver that a process is; a byte to descriptor serving says that it
// serves.
const (
	variable = "PODD_TEST_CSI_DRIVER"
	serving  = 3
)

// Driver is one driver. Dir, Name and Registry are required.
type Driver struct {
	Dir      string // of its own; short, for a socket is in it
	Name     string
	Registry string // the root directory's plugins_registry
	NodeID   string // "": "node-of-" and the name
	Topology map[string]string
	Most     int64    // volumes on the machine
	Versions []string // that it registers with; nil: 1.0.0
	// Can are its capabilities, as the protocol names them: "STAGE_UNSTAGE_VOLUME".
	Can []string
	// Device is what is published of a volume that is a block device; "": a file.
	Device string

	process *exec.Cmd
	ended   chan struct{}
}

// Begun is a call that began, with its request as JSON; Ended one with its code.
const Begun, Ended = "begun", "ended"

// Call is what was written of a call.
type Call struct {
	What, Method, Code string
	Request            json.RawMessage `json:",omitempty"`
	Volume             string          // its handle, or ""
	// Path is the request's target, or what it has instead.
	Path string `json:"-"`
	// Overlaps says that another call for the volume was under way.
	Overlaps bool
}

// Main is the driver where the process is one, and does not return then.
func Main() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var d Driver
	err := json.Unmarshal([]byte(text), &d)
	if err == nil {
		err = d.serve()
	}
	fmt.Fprintln(os.Stderr, "CSI driver:", err)
	os.Exit(1)
}

// Registration is the socket by which it is found.
func (d *Driver) Registration() string { return filepath.Join(d.Registry, d.Name+"-reg.sock") }

// Endpoint is the socket at which it serves.
func (d *Driver) Endpoint() string { return filepath.Join(d.Dir, "csi.sock") }

// startTime is how long it may take until it serves.
const startTime = time.Minute

// Start starts it, and returns when it serves. It ends with its parent.
func (d *Driver) Start() error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.Registry, 0o750); err != nil {
		return err
	}
	serves, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer serves.Close()
	d.process = exec.Command("/proc/self/exe")
	d.process.Env = append(os.Environ(), variable+"="+string(text))
	d.process.Stdout, d.process.Stderr = os.Stderr, os.Stderr
	d.process.ExtraFiles = []*os.File{tell}
	d.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = d.process.Start()
	_ = tell.Close()
	if err != nil {
		d.process = nil
		return err
	}
	ended, process := make(chan struct{}), d.process
	d.ended = ended
	go func() { _ = process.Wait(); close(ended) }()
	if err := serves.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return errors.Join(err, d.Stop())
	}
	if _, err := serves.Read(make([]byte, 1)); err != nil { // its end is one, too
		return errors.Join(fmt.Errorf("the CSI driver does not serve: %w", err), d.Stop())
	}
	return nil
}

// Stop kills it, and removes its sockets as its end in a pod would. What it mounted
// stays.
func (d *Driver) Stop() error {
	if d.process == nil {
		return nil
	}
	_ = d.process.Process.Kill()
	<-d.ended
	d.process = nil
	return errors.Join(unlessAbsent(os.Remove(d.Registration())), unlessAbsent(os.Remove(d.Endpoint())))
}

func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Set says what becomes of the calls of a method from now on:
//
//	"hang"           nothing, until it is set anew or the call is given up
//	"late"           it is done, and then as "hang"
//	"CODE message"   an error; "once CODE message" for one call
//	""               they are done
func (d *Driver) Set(method, what string) error {
	at := filepath.Join(d.Dir, "control", method)
	if what == "" {
		return unlessAbsent(os.Remove(at))
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(at+".new", []byte(what), 0o600); err != nil {
		return err
	}
	return os.Rename(at+".new", at)
}

// Files is where the files of a volume are.
func (d *Driver) Files(handle string) string { return filepath.Join(d.Dir, "volumes", handle) }

// Calls are those that began or ended so far.
func (d *Driver) Calls() ([]Call, error) {
	text, err := os.ReadFile(filepath.Join(d.Dir, "calls"))
	if err != nil {
		return nil, unlessAbsent(err)
	}
	var all []Call
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, err
		}
		var r struct{ TargetPath, StagingTargetPath, VolumePath string }
		if c.What == Begun {
			if err := json.Unmarshal(c.Request, &r); err != nil {
				return nil, err
			}
		}
		c.Path = cmp.Or(r.TargetPath, r.VolumePath, r.StagingTargetPath)
		all = append(all, c)
	}
	return all, lines.Err()
}

// Done are, in their order, the calls that ended well and change something, as
// "NodeStageVolume handle".
func (d *Driver) Done() ([]string, error) {
	all, err := d.Calls()
	var done []string
	for _, c := range all {
		if c.What != Ended || c.Code != "OK" || !strings.HasPrefix(c.Method, "Node") || strings.HasPrefix(c.Method, "NodeGet") {
			continue
		}
		done = append(done, c.Method+" "+c.Volume)
	}
	return done, err
}
