package kernellog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	globalRecord  = "4,99,5000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods/podu,task=a,pid=b,pid=77,uid=0\n"
	limitedRecord = `3,1,7000000,c,caller=T9;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=0-1,cpuset=id,mems_allowed=0,2,oom_memcg=/kubepods/podu,task_memcg=/kubepods/podu/a\x5cx2db,task=we,task=b,pid=78,uid=1` + "\n"
)

// TestLog checks which records are reported as OOM kills. Names of processes are untrusted.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, []byte(globalRecord), 0o600); err != nil {
		t.Fatal(err)
	}
	l := Open(path)
	defer l.Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := l.NewOOMKills(); len(got) > 0 {
		t.Errorf("record before the log was opened: got %v, want no OOM kill", got)
	}
	for text, want := range map[string][]OOMKill{
		globalRecord:  {{Constraint: "CONSTRAINT_NONE", VictimCgroup: "/kubepods/podu", ProcessName: "a,pid=b", PID: 77}},
		limitedRecord: {{Constraint: "CONSTRAINT_MEMCG", LimitedCgroup: "/kubepods/podu", VictimCgroup: `/kubepods/podu/a\x2db`, ProcessName: "we,task=b", PID: 78}},
		// A process, and not the kernel, has written a record with a priority of two digits.
		"12" + globalRecord[1:]: nil,
		"12,1,5,-;podd: oom-kill:,global_oom,task_memcg=/,task=lie\n":             nil,
		"4,1,99999999999999999999,-;" + strings.SplitN(globalRecord, ";", 2)[1]:   nil,
		"6,1,5,-;docker0: port 1(veth1) entered blocking state\n SUBSYSTEM=net\n": nil,
		strings.Replace(globalRecord, "pid=77", "pid=99999999999999999999", 1):    nil,
	} {
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
		got := l.NewOOMKills()
		for i := range got {
			got[i].Time = time.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("OOM kills in record %q (-want +got):\n%s", text, diff)
		}
	}
	if none := Open(path + "/none"); none != nil || len(none.NewOOMKills()) > 0 {
		t.Error("missing log: got a log or OOM kills, want neither")
	}
}

// TestAllOOMKills checks that the records before the log was opened are read, and that their times
// are computed from the kernel's clock.
func TestAllOOMKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, []byte(globalRecord), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := AllOOMKills(path)
	if err != nil || len(all) != 1 || !all[0].Time.Before(time.Now()) {
		t.Fatalf("got %v, error %v; want one OOM kill in the past", all, err)
	}
	l, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := l.read(maxRecords)
	if err := os.WriteFile(path, []byte(globalRecord+limitedRecord), 0o600); err != nil {
		t.Fatal(err)
	}
	second := l.read(maxRecords)
	if len(first) != 1 || len(second) != 1 {
		t.Fatalf("got %v and then %v, want one OOM kill each time", first, second)
	}
	if got := second[0].Time.Sub(first[0].Time); got != 2*time.Second {
		t.Errorf("time between records of 5 s and 7 s after the start: got %v, want 2s", got)
	}
	if _, err := AllOOMKills(path + "/none"); err == nil {
		t.Error("missing log: got no error, want one")
	}
}
