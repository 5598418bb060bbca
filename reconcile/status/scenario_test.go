package status

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/runtime/runtimetest/golden"
)

// TestScenarios runs the scenarios of testdata/status. A scenario is a manifest, a line
// "---", and a list of steps:
//
//	at 3s                          the time of the following steps, up to the next
//	                               at; prints the status after these steps
//	sandbox 0 ready 10.88.0.3 …    or dead, or gone
//	web#1 running                  or created, exited 1 [reason], unknown, gone;
//	                               #1 is the attempt; a last word @9s is the
//	                               time of the runtime's clock
//	web waiting REASON message     sets the waiting reason; ok removes it
//	web ready false                the result of the probe; also started
//	web exit 137 Error             the recorded last exit
//	web restarts 3                 the recorded restart count
//	added debug                    adds an ephemeral container; the other steps
//	                               apply to it, too
//	restarting web …               all containers restart, and these are being stopped;
//	                               without names: all containers have stopped
//	web restarted                  the container was started again
//	waiting REASON message         of the pod; also failed; finished PHASE
//	terminating
//	forget                         podd restarted: there is no previous status
//	status                         prints the complete status of the pod
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../testdata/status/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no scenarios in testdata/status, error %v, want at least one", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(file, ".txt")+".golden", runScenario(t, string(text)))
		})
	}
}
