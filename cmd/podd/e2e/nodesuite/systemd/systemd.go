// Package systemd implements the part of systemd that the node suite of Kubernetes uses, for hosts
// and containers without systemd: the programs systemd-run and systemctl, and sudo for root.
//
// A unit is a process and a file below /run/node-suite-units. Any of these programs can start, stop
// and list units, and there is no daemon. Therefore a unit is not restarted when its process
// exits, and the process is not moved to a cgroup of its own. The flag --slice, and all properties of
// systemd-run except StandardError, have no effect.
package systemd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Programs lists the names under which Main implements a program.
var Programs = []string{"systemd-run", "systemctl", "sudo"}

// Main runs one of Programs if the name of the running program is in this list. In that case Main
// does not return.
func Main() {
	run, ok := map[string]func([]string) error{"systemd-run": systemdRun, "systemctl": systemctl, "sudo": sudo}[filepath.Base(os.Args[0])]
	if !ok {
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sudo executes a command. It works only for root, and supports no flags.
func sudo(args []string) error {
	if len(args) == 0 {
		return errors.New("no command")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, args, os.Environ())
}

// systemdRun starts a new unit.
func systemdRun(args []string) error {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("systemd 252 (reimplemented for tests)")
		return nil
	}
	u, err := parseRun(args)
	if err != nil {
		return err
	}
	if _, err := readUnit(u.Name); err == nil {
		return fmt.Errorf("unit %s already exists", u.Name)
	}
	return u.start()
}

// parseRun parses the arguments of systemd-run.
func parseRun(args []string) (*unit, error) {
	u := &unit{}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, hasValue := strings.Cut(args[0], "=")
		switch {
		case name == "--unit" && hasValue:
			u.Name = value
		case name == "--slice", name == "--remain-after-exit":
		case name == "-p" && len(args) > 1:
			args = args[1:]
			if log, ok := strings.CutPrefix(args[0], "StandardError=append:"); ok {
				u.Log = log
			}
		default:
			return nil, fmt.Errorf("unsupported argument %q", args[0])
		}
		args = args[1:]
	}
	if u.Name == "" || len(args) == 0 {
		return nil, errors.New("--unit and a command are required")
	}
	for _, word := range args {
		u.Command = append(u.Command, strings.NewReplacer("%%", "%", "$$", "$").Replace(word)) // the caller has escaped systemd's specifiers and variables
	}
	return u, nil
}

// systemctl lists, starts or stops units.
func systemctl(args []string) error {
	if len(args) < 2 {
		return errors.New("an operation and a unit are required")
	}
	if args[0] == "list-units" {
		return listUnits(args[1], len(args) > 2 && args[2] == "--state=running")
	}
	u, err := readUnit(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "reset-failed":
		return nil
	case "kill":
		return u.kill()
	case "stop":
		return errors.Join(u.stop(), os.Remove(unitFile(u.Name)))
	case "start", "restart":
		if err := u.stop(); err != nil {
			return err
		}
		return u.start()
	}
	return fmt.Errorf("unsupported operation %q", args[0])
}

// listUnits prints the units whose names match a pattern.
func listUnits(pattern string, onlyRunning bool) error {
	files, err := filepath.Glob(unitFile(strings.TrimSuffix(pattern, ".service")))
	if err != nil {
		return err
	}
	for _, file := range files {
		u, err := readUnit(strings.TrimSuffix(filepath.Base(file), ".json"))
		if err != nil {
			return err
		}
		state := u.state()
		if state == "running" || !onlyRunning {
			fmt.Printf("  %s loaded active %s %s\n", u.Name, state, u.Command[0])
		}
	}
	return nil
}
