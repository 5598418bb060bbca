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

const logLimits = 3 * 100 << 10 // of boundedLogs

// boundedLogs begins a podd that keeps little of its pods' logs.
func boundedLogs(t *testing.T) *daemon {
	t.Helper()
	return begin(t, "--container-log-max-size", "100Ki", "--container-log-max-files", "3")
}

// kept tells what there is of a pod's logs.
func (d *daemon) kept(name string) error {
	files, err := filepath.Glob(filepath.Join(d.logs(), "default_"+d.full(name)+"_*", "main", "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no logs: %v", err)
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
		return fmt.Errorf("%d bytes in %d files: %q", total, len(files), files)
	}
	return nil
}

// TestLogsAreBounded: whoever follows a log that is rotated many times sees
// every line of it once, unless it is further behind than what is kept: the
// container waits for it.
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
			t.Fatalf("got %q (%v), want %q", read.Text(), read.Err(), want)
		}
		if (i+1)%ahead == 0 {
			d.tellPods(strconv.Itoa(i + 1))
		}
	}
	d.eventually("the logs are within their bounds", func() error { return d.kept("web") })
}

// TestLogsOfACrashLoopAreBounded: what earlier attempts wrote counts as well.
func TestLogsOfACrashLoopAreBounded(t *testing.T) {
	t.Parallel()
	d := boundedLogs(t)
	d.apply(d.pod("db", shell("main", "yes 'much to say of what goes wrong' | head -n 60000; exit 1")))
	d.untilPod("has crashed twice", "db", func(p *server.PodView) error {
		if restarts(p, "main") == 0 {
			return errors.New("it was not restarted")
		}
		return waitingFor("main", "CrashLoopBackOff")(p)
	})
	d.eventually("the logs are within their bounds", func() error { return d.kept("db") })
	// The runtime writes a log a little behind, the last line in parts.
	d.eventually("the previous attempt's log has its end", func() error {
		if out, _ := d.verb("logs", "db", "--previous", "--tail", "1"); out != "much to say of what goes wrong\n" {
			return fmt.Errorf("it ends with %q", out)
		}
		return nil
	})
}
