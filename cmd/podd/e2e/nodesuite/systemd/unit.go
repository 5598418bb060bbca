package systemd

import (
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

	"podd/runtime/runtimetest/stack/reservation"
)

// unitsDir is the directory with a file for each unit.
const unitsDir = "/run/node-suite-units"

// stopTimeout is the time after which systemd kills a process that does not stop.
const stopTimeout = 90 * time.Second

// A unit is a command that systemd-run has started.
type unit struct {
	Name    string // with the suffix .service
	Command []string
	Log     string // file for the output
	Process reservation.Owner
	Killed  bool // whether systemctl kill was called since the last start
}

// state returns the state that list-units prints. If the process has exited although systemctl did
// not kill it, state returns "running", because systemd would restart the process (Restart=always).
// Otherwise the suite would write no further configuration after podd has rejected one, and all later
// specs would fail.
func (u *unit) state() string {
	if u.Killed && !u.Process.IsAlive() {
		return "exited"
	}
	return "running"
}

// unitFile returns the path of a unit's file. The suffix .service in name is optional.
func unitFile(name string) string {
	return filepath.Join(unitsDir, strings.TrimSuffix(name, ".service")+".service.json")
}

func readUnit(name string) (*unit, error) {
	text, err := os.ReadFile(unitFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("unit %s does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	u := &unit{}
	return u, json.Unmarshal(text, u)
}

// kill sends SIGTERM to the unit's process if it is running, and writes the unit's file.
func (u *unit) kill() error {
	u.Killed = true
	return errors.Join(u.signal(syscall.SIGTERM), u.write())
}

// start starts the unit's process and writes the unit's file. The process continues after this
// program has exited.
func (u *unit) start() error {
	log, err := os.OpenFile(u.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of unit %s: %w", u.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(u.Command[0], u.Command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting unit %s: %w", u.Name, err)
	}
	if u.Process, err = reservation.FindProcess(cmd.Process.Pid); err != nil {
		return fmt.Errorf("starting unit %s: %w", u.Name, err)
	}
	u.Killed = false
	return u.write()
}

// write writes the unit's file.
func (u *unit) write() error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(unitsDir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(unitFile(u.Name), text, 0o600)
}

// signal sends a signal to the unit's process if it is running.
func (u *unit) signal(s syscall.Signal) error {
	if !u.Process.IsAlive() {
		return nil
	}
	return syscall.Kill(u.Process.PID, s)
}

// stop stops the unit's process. It kills the process after stopTimeout. It returns when the process
// has been reaped, because a process may hold locks until its last thread has exited.
func (u *unit) stop() error {
	if err := u.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping unit %s: %w", u.Name, err)
	}
	killAt := time.Now().Add(stopTimeout)
	for ; u.exists(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(killAt) {
			if err := u.signal(syscall.SIGKILL); err != nil {
				return fmt.Errorf("killing unit %s: %w", u.Name, err)
			}
		}
	}
	return nil
}

// exists reports whether the unit's process exists, perhaps as a zombie.
func (u *unit) exists() bool {
	p, err := reservation.FindProcess(u.Process.PID)
	return err == nil && p == u.Process
}
