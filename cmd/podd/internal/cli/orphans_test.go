package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// fakeOrphans implements server.Orphans in memory. It cannot remove the directory of the UID "stuck".
type fakeOrphans struct{ all []server.Orphan }

func (f *fakeOrphans) List(context.Context) ([]server.Orphan, error) { return f.all, nil }

func (f *fakeOrphans) Remove(_ context.Context, uid types.UID) error {
	if uid == "stuck" {
		return errors.New("removing the directory of pod stuck: ext4 /dev/sda1 at /x was not mounted by podd; unmount it")
	}
	for i, o := range f.all {
		if o.UID == uid {
			f.all = append(f.all[:i:i], f.all[i+1:]...)
			return nil
		}
	}
	return server.NewNotFoundError("no such directory")
}

func TestOrphans(t *testing.T) {
	f := &poddtest.Podd{LatestView: server.NewLatestView(poddtest.NewView()), Dir: poddtest.ShortDir(t), Orphans: &fakeOrphans{[]server.Orphan{
		{UID: "a", Path: "/r/pods/a", Reason: "no journal, but its volumes contain data", Bytes: 5000},
		{UID: "b", Path: "/r/pods/b", Reason: "journal cannot be read: \x1b[31mred", Bytes: 25 << 30, IsPartial: true},
		{UID: "stuck", Path: "/r/pods/stuck", Reason: "no journal, but its volumes contain data", UnmeasuredReason: "input/output error"},
	}}}
	f.Start(t)
	var text strings.Builder
	for _, words := range [][]string{
		{"orphans"}, {"orphans", "ls", "-o", "json"}, {"orphans", "rm", "a"}, {"orphans", "rm", "a"}, {"orphans", "rm", "--all"}, {"orphans", "ls"},
		{"orphans", "rm"}, {"orphans", "rm", "a", "--all"}, {"orphans", "ls", "a"}, {"orphans", "rm", "-o", "json", "a"},
	} {
		got := podd(t, f, words...)
		text.WriteString("$ podd " + strings.Join(words, " ") + "\n" + got.Out + got.Err)
	}
	compareGolden(t, "orphans", text.String())
}
