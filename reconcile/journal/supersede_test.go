package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// TestSupersede checks that a journal replaces an unreadable journal. The unreadable journal is
// kept, unless an earlier unreadable journal was kept already.
func TestSupersede(t *testing.T) {
	j := state.Record{UID: "u", Hash: "h", Finished: &plan.PodEnd{UID: "u", Hash: "h"}}
	j.Key.Name = "web"
	file := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	link := func(path string) error { return os.Symlink("/nowhere", path) }
	dir := func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) }
	none := func(string) error { return nil }
	for name, test := range map[string]struct {
		journal, kept func(path string) error // create the two files
		keeps         string                  // text of the kept file; "": no file, "-": not a regular file
		err           string
	}{
		"a file":                        {file("bad"), none, "bad", ""},
		"a file, one is kept":           {file("worse"), file("bad"), "bad", ""},
		"a link":                        {link, none, "-", ""},
		"a directory":                   {dir, none, "-", ""},
		"a directory, one is kept":      {dir, file("bad"), "bad", "remove or rename journal.json.unreadable"},
		"nothing":                       {none, none, "", ""},
		"nothing, as one is kept":       {none, file("bad"), "bad", ""},
		"an empty file, a file is kept": {file(""), file("bad"), "bad", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Root: t.TempDir()}
			path := filepath.Join(s.Root, "u", FileName)
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), test.journal(path), test.kept(path+UnreadableSuffix)); err != nil {
				t.Fatal(err)
			}
			_, before := s.Read("u")
			if missing := errors.Is(before, fs.ErrNotExist); before == nil || missing != (name == "nothing") {
				t.Errorf("error of reading before Supersede: got %v, want fs.ErrNotExist: %t", before, name == "nothing")
			}
			err := s.ReplaceUnreadable(j, true)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if got, rerr := s.Read("u"); err == nil && (rerr != nil || got.Finished == nil) {
				t.Errorf("journal after Supersede: got %+v (error %v), want the new one", got, rerr)
			}
			info, lerr := os.Lstat(path + UnreadableSuffix)
			if test.keeps == "" && !errors.Is(lerr, fs.ErrNotExist) || test.keeps == "-" && (lerr != nil || info.Mode().IsRegular()) {
				t.Errorf("kept unreadable journal: got file info %v (error %v), want content %q (\"\": no file, \"-\": not a regular file)", info, lerr, test.keeps)
			}
			if text, err := os.ReadFile(path + UnreadableSuffix); len(test.keeps) > 1 && string(text) != test.keeps {
				t.Errorf("kept unreadable journal: got content %q (error %v), want %q", text, err, test.keeps)
			}
		})
	}
}
