//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// countingScript returns a script that writes numbered lines, with pauses.
func countingScript(lines int) string {
	return fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo \"line $i\"; i=$((i+1)); [ $((i%%1000)) = 0 ] && sleep 0.1; done; ", lines)
}

// runLogFiles returns the log files of a container of a run and their total size.
func (d *daemon) runLogFiles(container string) (files []string, total int64) {
	files, _ = filepath.Glob(filepath.Join(d.logDir(), "default_job-*", container, "*"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			total += info.Size()
		}
	}
	return files, total
}

// TestRunOnce_RotatesLogs checks that the logs of a run are rotated, and that the output, the summary
// and the report are complete nevertheless.
func TestRunOnce_RotatesLogs(t *testing.T) {
	t.Parallel()
	const lines = 30000
	d := newRunner(t)
	d.writePods("pods", d.jobPod("job", never,
		shell("main", countingScript(lines)+note("written")+"until [ -e /trace/enough ]; do sleep 0.1; done; echo the end; exit 3"), shell("other", "exit 0")))
	r := d.startRun(nil, "--container-log-max-size", "100Ki", "--container-log-max-files", "3", "--report", d.filePath("r.xml"), "pods.yaml")
	d.untilNote("written")
	d.eventually("the logs are within their limits", func() error {
		files, total := d.runLogFiles("main")
		switch {
		case len(files) < 2:
			return fmt.Errorf("got the log files %q, want two or more", files)
		case len(files) > 3 || total > logLimits:
			return fmt.Errorf("got %d bytes in %d files: %q, want at most 3 files and %d bytes", total, len(files), files, logLimits)
		}
		return nil
	})
	d.touch("enough")
	r.wantExit(3, "FAIL  job/main exit 3 after ", `: "the end"`, fmt.Sprintf("| line %d\n", lines-1))
	checkLines(t, &r.out, "job/main | ", lines)
	if report := d.readFile("r.xml"); !strings.Contains(report, fmt.Sprintf("line %d&#xA;the end</system-out>", lines-1)) {
		t.Errorf("JUnit report: got %s, want the last lines of the container in it", report)
	}
}

// TestRunOnce_RotatesLogs_SlowReader reads the stdout of a run slowly, so that podd also copies the log
// to stdout slowly. podd must not remove a rotated log file before it has copied the file.
func TestRunOnce_RotatesLogs_SlowReader(t *testing.T) {
	t.Parallel()
	const lines = 30000
	d := newRunner(t)
	d.writePods("pods", d.jobPod("job", never, shell("main", countingScript(lines)+note("written")+"sleep 5")))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	r := d.startRunTo(write, "--container-log-max-size", "100Ki", "--container-log-max-files", "2", "pods.yaml")
	write.Close()
	d.untilNote("written")
	checkLines(t, read, "", lines)
	r.wantExit(0)
}

// checkLines checks that r begins with the lines "line 0" to "line N-1", each after the prefix. The
// parameter lines is N.
func checkLines(t *testing.T, r io.Reader, prefix string, lines int) {
	t.Helper()
	s := bufio.NewScanner(r)
	for i := range lines {
		if want := fmt.Sprintf("%sline %d", prefix, i); !s.Scan() || s.Text() != want {
			t.Fatalf("output of the run: got the line %q (%v), want %q", s.Text(), s.Err(), want)
		}
	}
}
