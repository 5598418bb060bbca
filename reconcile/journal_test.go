package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"podd/reconcile/plan"
)

// TestJournalTooLarge checks that a journal can be read back however long the messages of
// its containers are.
func TestJournalTooLarge(t *testing.T) {
	s := Journals{Root: t.TempDir()}
	j := journal{UID: "u", Hash: "h", Finished: &plan.Finished{UID: "u", Hash: "h"}, Containers: map[string]journalEntry{}}
	j.Key.Name = "a"
	for n := range 100 {
		exit := &plan.Exit{ID: fmt.Sprint(n), TerminationMessage: strings.Repeat("\x01", 4096), MessageRead: true, Message: "x"}
		j.Containers[fmt.Sprintf("c%d", n)] = journalEntry{Attempt: uint32(n), LastExit: exit}
	}
	if err := s.write(j, true); err != nil {
		t.Fatal(err)
	}
	got, err := s.read("u")
	if err != nil || got.Finished == nil || len(got.Containers) != 100 || got.Containers["c7"].Attempt != 7 || got.Containers["c7"].LastExit.MessageRead {
		t.Errorf("read %+v, %v", got, err)
	}
	if e := j.Containers["c7"].LastExit; !e.MessageRead || e.TerminationMessage == "" {
		t.Error("what is remembered in memory was cut")
	}
	j.Hash = strings.Repeat("x", journalLimit)
	if err := s.write(j, true); err == nil || !strings.Contains(err.Error(), "only 1048576 are read back") {
		t.Errorf("written though nobody can read it: %v", err)
	}
}
