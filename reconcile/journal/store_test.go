package journal

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// TestWrite_TooLarge checks that a written journal can be read, even if the messages of its
// containers are very long.
func TestWrite_TooLarge(t *testing.T) {
	s := Store{Root: t.TempDir()}
	j := state.Record{UID: "u", Hash: "h", Finished: &plan.PodEnd{UID: "u", Hash: "h"}, Containers: map[string]state.ContainerRecord{}}
	j.Key.Name = "a"
	for n := range 100 {
		exit := &plan.Exit{ID: fmt.Sprint(n), TerminationMessage: strings.Repeat("\x01", 4096), MessageRead: true, Message: "x"}
		j.Containers[fmt.Sprintf("c%d", n)] = state.ContainerRecord{Attempt: uint32(n), LastExit: exit}
	}
	if err := s.Write(j, true); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read("u")
	if err != nil || got.Finished == nil || len(got.Containers) != 100 || got.Containers["c7"].Attempt != 7 || got.Containers["c7"].LastExit.MessageRead {
		t.Errorf("got %+v (error %v), want the end and 100 containers without messages", got, err)
	}
	if e := j.Containers["c7"].LastExit; !e.MessageRead || e.TerminationMessage == "" {
		t.Error("messages of the record in memory: got none, want them unchanged")
	}
	j.Hash = strings.Repeat("x", maxBytes)
	if err := s.Write(j, true); err == nil || !strings.Contains(err.Error(), "(limit 1048576)") {
		t.Errorf("journal above the limit: got error %v, want one with \"(limit 1048576)\"", err)
	}
}

// TestStore_Durable checks that Write calls Store.Replace with the value of its own parameter
// durable.
func TestStore_Durable(t *testing.T) {
	var got []bool
	s := Store{Root: t.TempDir(), Replace: func(dir string, _ []byte, durable bool) error {
		if filepath.Base(dir) != "u" {
			t.Errorf("directory of the write: got %s, want u", dir)
		}
		got = append(got, durable)
		return nil
	}}
	for _, durable := range []bool{true, false} {
		if err := s.Write(state.Record{UID: "u"}, durable); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || !got[0] || got[1] {
		t.Errorf("got durable %v, want true and false", got)
	}
}
