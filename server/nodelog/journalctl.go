package nodelog

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// journalctl is the program that reads the journal of systemd. It is searched for in PATH.
const journalctl = "journalctl"

// listUnitsArgs are the arguments with which journalctl prints the names of the units that have
// entries in the journal, one name per line.
var listUnitsArgs = []string{"--no-pager", "--field=_SYSTEMD_UNIT"}

// logArgs returns the arguments with which journalctl prints the log of services. Every value is in
// the same argument as the name of its option, so that no value can be another option.
func logArgs(services []string, o options) []string {
	args := []string{"--utc", "--no-pager", "--output=short-precise"}
	if !o.Since.IsZero() {
		args = append(args, "--since="+journalTime(o.Since))
	}
	if !o.Until.IsZero() {
		args = append(args, "--until="+journalTime(o.Until))
	}
	if o.Tail != nil {
		args = append(args, "--lines="+strconv.Itoa(*o.Tail))
	}
	for _, name := range services {
		args = append(args, "--unit="+name)
	}
	if o.Pattern != "" {
		args = append(args, "--grep="+o.Pattern)
	}
	if o.Boot != nil {
		args = append(args, "--boot="+strconv.Itoa(*o.Boot))
	}
	return args
}

// journalTime returns a time in a format of journalctl that does not depend on the time zone of the
// host. journalctl does not accept times before 1970, so these times become 1970.
func journalTime(t time.Time) string {
	micros := max(t.UnixMicro(), 0)
	return fmt.Sprintf("@%d.%06d", micros/1e6, micros%1e6)
}

// findUnits returns the elements of services that have entries in the journal.
func findUnits(ctx context.Context, services []string) (found []string, err error) {
	err = runJournalctl(ctx, listUnitsArgs, func(output io.Reader) error {
		for lines := bufio.NewScanner(output); ; {
			if !lines.Scan() || len(found) == len(services) {
				return lines.Err()
			}
			unit := lines.Text()
			for _, name := range services {
				if isUnitOf(unit, name) && !slices.Contains(found, name) {
					found = append(found, name)
				}
			}
		}
	})
	return found, err
}

// isUnitOf reports whether unit is the systemd unit of a service. The name of a service need not
// have the suffix ".service".
func isUnitOf(unit, service string) bool { return unit == service || unit == service+".service" }

// copyUnits writes the log of units to w.
func copyUnits(ctx context.Context, w io.Writer, units []string, o options) error {
	return runJournalctl(ctx, logArgs(units, o), func(output io.Reader) error {
		_, err := io.Copy(w, output)
		return err
	})
}

// runJournalctl runs journalctl and passes its stdout and stderr to read. The process is killed when
// read returns or ctx is done. The error of read comes first. The exit code of journalctl is not an
// error, because journalctl explains failures in its output and also fails if it finds no entries.
func runJournalctl(ctx context.Context, args []string, read func(io.Reader) error) error {
	output, stdout, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("running journalctl: %w", err)
	}
	defer output.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, journalctl, args...)
	cmd.Stdout, cmd.Stderr = stdout, stdout
	cmd.Env = []string{"LC_ALL=C.UTF-8"} // podd's own environment can contain secrets
	err = cmd.Start()
	stdout.Close()
	if err != nil {
		return fmt.Errorf("running journalctl: %w", err)
	}
	// Killing the process is not sufficient to end a read, because a child of journalctl may have
	// the other end of the pipe open.
	stop := context.AfterFunc(ctx, func() { output.SetReadDeadline(time.Unix(0, 1)) })
	defer stop()
	err = read(output)
	ctxErr := ctx.Err()
	cancel()
	_ = cmd.Wait() // ignore the exit code, because journalctl explains failures in its output
	if ctxErr != nil {
		return ctxErr
	}
	return err
}
