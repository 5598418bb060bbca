// Package csidriver is a CSI driver for tests. It runs in its own process, uses the real
// protocol over real sockets, and performs real mounts. A volume is a directory. A volume that is a
// block device is a file or a device node.
//
// The process runs the test program again, so TestMain must call Main first.
//
//	<Dir>/csi.sock               the endpoint of the driver
//	<Dir>/volumes/<handle>/      the files of a volume, or <handle>.img, the file of a block device
//	<Dir>/calls                  a line of JSON for the start and the end of every call
//	<Dir>/control/<method>       the behavior of calls; see SetBehavior
//	<Dir>/control/max-volumes    the maximum number of volumes; see SetMaxVolumes
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
	"strconv"
	"strings"
	"time"

	"podd/runtime/runtimetest/child"
)

// driverEnv is the environment variable that contains the Driver as JSON in the driver's process.
// When that process is ready, it writes a byte to the descriptor readyDescriptor.
const (
	driverEnv       = "PODD_TEST_CSI_DRIVER"
	readyDescriptor = 3
)

// A Driver is a CSI driver. Dir, Name and Registry are required.
type Driver struct {
	Dir        string // directory of the driver; its path must be short, because it contains a socket
	Name       string
	Registry   string // plugins_registry in the root directory
	NodeID     string // "" means "node-of-" followed by Name
	Topology   map[string]string
	MaxVolumes int64    // maximum number of volumes on the node
	Versions   []string // versions that the driver reports at its registration; nil means 1.0.0
	// Capabilities contains the capabilities of the node service. The names are those of the
	// protocol, such as "STAGE_UNSTAGE_VOLUME".
	Capabilities []string
	// Device is the device node that the driver publishes for a volume that is a block device.
	// "" means a file.
	Device string

	process *exec.Cmd
}

// CallBegun is the event at the start of a call; its Call contains the request. CallEnded is the
// event at the end of a call; its Call contains the status code.
const CallBegun, CallEnded = "begun", "ended"

// A Call is a recorded event of a call.
type Call struct {
	Event   string // CallBegun or CallEnded
	Method  string
	Code    string          // gRPC status code; set only for CallEnded
	Request json.RawMessage `json:",omitempty"`
	Volume  string          // handle of the volume, or "" if the request has none
	// Path is the target path, volume path or staging path in the request. It is set only for
	// CallBegun.
	Path string `json:"-"`
	// Overlaps reports whether another call for the volume was in progress.
	Overlaps bool
}

// Main runs the driver if this process was started by Driver.Start. In that case Main does not
// return.
func Main() {
	text := os.Getenv(driverEnv)
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

// registrationSocket returns the path of the registration socket.
func (d *Driver) registrationSocket() string { return filepath.Join(d.Registry, d.Name+"-reg.sock") }

// Endpoint returns the path of the CSI socket.
func (d *Driver) Endpoint() string { return filepath.Join(d.Dir, "csi.sock") }

// startTimeout is the maximum time until a started driver is ready.
const startTimeout = 5 * time.Minute

// Start starts the process of the driver and returns when the driver is ready. The process is
// killed when its parent exits.
func (d *Driver) Start() error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.Registry, 0o750); err != nil {
		return err
	}
	ready, notify, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	d.process = exec.Command("/proc/self/exe")
	d.process.Env = append(os.Environ(), driverEnv+"="+string(text))
	d.process.Stdout, d.process.Stderr = os.Stderr, os.Stderr
	d.process.ExtraFiles = []*os.File{notify}
	err = child.Start(d.process)
	_ = notify.Close()
	if err != nil {
		d.process = nil
		return err
	}
	if err := ready.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return errors.Join(err, d.Stop())
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil { // if the driver has exited, Read returns io.EOF
		return errors.Join(fmt.Errorf("the CSI driver is not ready: %w", err), d.Stop())
	}
	return nil
}

// Stop kills the process and removes its sockets, as if the pod of a driver had terminated. Mounts
// remain.
func (d *Driver) Stop() error {
	if d.process == nil {
		return nil
	}
	_ = d.process.Process.Kill()
	_ = d.process.Wait() // an error is expected, because the process was killed
	d.process = nil
	return errors.Join(ignoreNotExist(os.Remove(d.registrationSocket())), ignoreNotExist(os.Remove(d.Endpoint())))
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SetBehavior sets the behavior of later calls of a method:
//
//	"hang"           wait until the behavior is set again or the call is canceled
//	"late"           perform the call, then behave as for "hang"
//	"CODE message"   return an error; "once CODE message" for one call
//	""               perform the call
func (d *Driver) SetBehavior(method, behavior string) error {
	if behavior == "" {
		return ignoreNotExist(os.Remove(d.controlFile(method)))
	}
	return d.writeControlFile(method, behavior)
}

// maxVolumesFile is the name of the control file with the maximum number of volumes.
const maxVolumesFile = "max-volumes"

// SetMaxVolumes sets the maximum number of volumes in later responses to NodeGetInfo. It has precedence
// over the field MaxVolumes, and the driver may be running.
func (d *Driver) SetMaxVolumes(n int64) error {
	return d.writeControlFile(maxVolumesFile, strconv.FormatInt(n, 10))
}

func (d *Driver) controlFile(name string) string { return filepath.Join(d.Dir, "control", name) }

// writeControlFile replaces a control file atomically.
func (d *Driver) writeControlFile(name, text string) error {
	path := d.controlFile(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// FilesDir returns the path of the directory with the files of a volume.
func (d *Driver) FilesDir(handle string) string { return filepath.Join(d.Dir, "volumes", handle) }

// Calls returns the recorded events of all calls, in order.
func (d *Driver) Calls() ([]Call, error) {
	text, err := os.ReadFile(filepath.Join(d.Dir, "calls"))
	if err != nil {
		return nil, ignoreNotExist(err)
	}
	var calls []Call
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, err
		}
		var r struct{ TargetPath, StagingTargetPath, VolumePath string }
		if c.Event == CallBegun {
			if err := json.Unmarshal(c.Request, &r); err != nil {
				return nil, err
			}
		}
		c.Path = cmp.Or(r.TargetPath, r.VolumePath, r.StagingTargetPath)
		calls = append(calls, c)
	}
	return calls, lines.Err()
}

// Changes returns the successful calls that change something, in order. Each has the form "METHOD
// HANDLE", for example "NodeStageVolume vol-1".
func (d *Driver) Changes() ([]string, error) {
	calls, err := d.Calls()
	var changes []string
	for _, c := range calls {
		if c.Event != CallEnded || c.Code != "OK" || !strings.HasPrefix(c.Method, "Node") || strings.HasPrefix(c.Method, "NodeGet") {
			continue
		}
		changes = append(changes, c.Method+" "+c.Volume)
	}
	return changes, err
}
