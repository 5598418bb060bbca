//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"podd/server"
)

const logLimits = 3 * 100 << 10 // the bytes that boundedLogs allows for the logs of a container

// boundedLogs starts a podd with small limits for container logs.
func boundedLogs(t *testing.T) *daemon {
	t.Helper()
	return startDaemon(t, "--container-log-max-size", "100Ki", "--container-log-max-files", "3")
}

// checkLogLimits returns an error unless a pod has logs and their number and size are within the
// limits.
func (d *daemon) checkLogLimits(name string) error {
	files, err := filepath.Glob(filepath.Join(d.logDir(), "default_"+d.podName(name)+"_*", "main", "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("log files: got %q, error %v; want at least one", files, err)
	}
	total := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		total += info.Size()
	}
	if len(files) > 3 || total > logLimits {
		return fmt.Errorf("got %d bytes in %d files: %q, want at most 3 files and %d bytes", total, len(files), files, logLimits)
	}
	return nil
}

// TestLogsAreBounded checks that a client that follows a log gets every line once, although the log is
// rotated many times. The container waits for the client after every thousand lines. Otherwise podd
// might remove a log file that the client has not read.
func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	const lines, ahead = 20000, 1000
	d := boundedLogs(t)
	script := fmt.Sprintf("trap 'exit 0' TERM; i=0; while [ $i -lt %d ]; do echo \"line $i\"; i=$((i+1)); [ $((i%%100)) = 0 ] && sleep 0.03; "+
		"[ $((i%%%d)) = 0 ] && until [ -e /trace/$i ]; do sleep 0.03; done; done; sleep 3600 & wait", lines, ahead)
	d.apply(d.pod("web", shell("main", script)))
	d.untilApplied("web")
	follow := exec.Command(binary, "logs", "-f", "web")
	follow.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := launch(follow)
	if err != nil {
		t.Fatal(err)
	}
	defer p.signal(syscall.SIGKILL)
	read := bufio.NewScanner(out)
	for i := range lines {
		if want := fmt.Sprintf("line %d", i); !read.Scan() || read.Text() != want {
			t.Fatalf("podd logs -f: got the line %q (%v), want %q", read.Text(), read.Err(), want)
		}
		if (i+1)%ahead == 0 {
			d.touch(strconv.Itoa(i + 1))
		}
	}
	d.eventually("the logs are within their limits", func() error { return d.checkLogLimits("web") })
}

// TestLogsAreBounded_CrashLoop checks that the limits apply to the logs of all attempts of a container
// together.
func TestLogsAreBounded_CrashLoop(t *testing.T) {
	t.Parallel()
	d := boundedLogs(t)
	d.apply(d.pod("db", shell("main", "yes 'a line that fills the log file' | head -n 60000; exit 1")))
	d.untilPod("has crashed twice", "db", func(p *server.PodView) error {
		if restarts(p, "main") == 0 {
			return errors.New("got no restart, want one")
		}
		return waitingFor("main", "CrashLoopBackOff")(p)
	})
	d.eventually("the logs are within their limits", func() error { return d.checkLogLimits("db") })
	// The test polls, because the runtime writes the log with a delay.
	d.eventually("the previous attempt's log is complete", func() error {
		if out, _ := d.verb("logs", "db", "--previous", "--tail", "1"); out != "a line that fills the log file\n" {
			return fmt.Errorf("got the last line %q, want %q", out, "a line that fills the log file\n")
		}
		return nil
	})
}
