package status

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/status/*.golden")

// TestScenarios tells the stories of testdata/status. A story is a manifest,
// then a line ---, then what happens:
//
//	at 3s                          the time of what follows, up to the next at;
//	                               the pod is shown as it then is
//	sandbox 0 ready 10.88.0.3 …    or dead, or gone
//	web#1 running                  or created, exited 1 [reason], unknown, gone;
//	                               #1 is the attempt; a last word @9s is the
//	                               time by the runtime's clock
//	web waiting REASON message     or ok: no reason to wait any more
//	web ready false                the probe's verdict; also started
//	web exit 137 Error             its last end, remembered
//	web restarts 3                 the count, remembered
//	added debug                    an ephemeral container, which is then told of
//	                               as any other
//	waiting REASON message         of the pod; also failed; finished PHASE
//	terminating
//	forget                         podd has started anew: no previous status
//	status                         shows the pod with its whole status
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../testdata/status/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(text))
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; -update rewrites it)\n%s", golden, diff)
			}
		})
	}
}
