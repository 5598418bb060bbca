package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"podd/manifest"
)

// stage is the state of one script. Its sources share one cache, as they do across restarts
// of podd.
type stage struct {
	t       *testing.T
	cache   string
	dir     *Dir
	source  *running
	mark    int // batches before this one are not looked at by throughout
	writers map[string]*writer
}

// writer is a program that has written a part of a file.
type writer struct {
	file *os.File
	rest string
}

func TestScripts(t *testing.T) {
	commands := map[string]func(s *stage, args []string) error{
		"watch": (*stage).watch, "stop": (*stage).stop, "accept": (*stage).accept, "pods": (*stage).pods, "trouble": (*stage).trouble,
		"quiet": (*stage).quiet, "complete": (*stage).complete, "complete_now": (*stage).completeNow, "behind": (*stage).behind,
		"note": (*stage).note, "throughout": (*stage).throughout,
		"put": (*stage).put, "half": (*stage).half, "rest": (*stage).rest,
		"fifo": (*stage).fifo, "big": (*stage).big, "mode": (*stage).mode, "share": (*stage).share, "damage": (*stage).damage, "link": (*stage).link,
	}
	params := testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){},
		Setup: func(e *testscript.Env) error {
			s := &stage{t: t, cache: filepath.Join(e.WorkDir, "sources"), writers: map[string]*writer{}}
			e.Values["stage"] = s
			e.Defer(func() { _ = s.stop(nil) })
			return os.Chmod(e.WorkDir, 0o755)
		},
	}
	for name, command := range commands {
		params.Cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			for i, a := range args {
				if a == "m" || strings.HasPrefix(a, "m/") { // where the manifests are
					args[i] = ts.MkAbs(a)
				}
			}
			if err := command(ts.Value("stage").(*stage), args); (err != nil) != neg {
				ts.Fatalf("%s %q: %v", name, args, err)
			}
		}
	}
	testscript.Run(t, params)
}

// watch PATH [patiently] starts a source; one that runs ends. A patient one waits
// a while for a file to come back, since the script may be slower than an editor.
func (s *stage) watch(args []string) error {
	if err := s.stop(nil); err != nil {
		return err
	}
	s.dir = NewDir(args[0], Options{Node: "node", Cache: s.cache, CheckFrequency: time.Hour})
	if len(args) > 1 {
		s.dir.removeDelay = 5 * time.Second
	}
	s.source, s.mark = run(s.t, s.dir), 0
	return nil
}

// accept takes the directory as empty.
func (s *stage) accept([]string) error { return s.dir.AcceptEmpty(s.t.Context()) }

func (s *stage) stop([]string) error {
	if s.source != nil {
		s.source.stop()
		s.source = nil
	}
	return nil
}

// pods NAME... waits until exactly these are desired.
func (s *stage) pods(names []string) error {
	return s.await("pods", func(b manifest.Batch) bool { return podsOf(b) == strings.Join(names, " ") })
}

// trouble TEXT NAME... waits for a Problem while these pods are desired.
func (s *stage) trouble(args []string) error {
	return s.await("trouble", func(b manifest.Batch) bool {
		return strings.Contains(problemsOf(b), args[0]) && podsOf(b) == strings.Join(args[1:], " ")
	})
}

// quiet waits until there is no Problem.
func (s *stage) quiet([]string) error {
	return s.await("quiet", func(b manifest.Batch) bool { return len(b.Problems) == 0 })
}

// complete waits for a complete listing.
func (s *stage) complete([]string) error {
	return s.await("complete", func(b manifest.Batch) bool { return b.Complete })
}

// completeNow fails when the newest Batch is not complete.
func (s *stage) completeNow([]string) error {
	all, _ := s.source.batches()
	if b := all[len(all)-1]; !b.Complete {
		return fmt.Errorf("got %s", show(b))
	}
	return nil
}

// behind PATH WHY waits until the content of a file is behind for this reason.
func (s *stage) behind(args []string) error {
	return s.await("behind", func(b manifest.Batch) bool {
		return slices.ContainsFunc(b.Files, func(f manifest.FileState) bool {
			return f.Path == args[0] && f.Behind == args[1] && f.Since.IsZero() == (args[1] == "")
		})
	})
}

func (s *stage) await(what string, ok func(manifest.Batch) bool) error {
	if _, instead := s.source.await(ok); instead != "" {
		return fmt.Errorf("%s: got %s", what, instead)
	}
	return nil
}

// note marks the Batch at which throughout starts.
func (s *stage) note([]string) error {
	all, _ := s.source.batches()
	s.mark = len(all) - 1
	return nil
}

// throughout NAME... checks that every Batch since note had these pods.
func (s *stage) throughout(names []string) error {
	all, _ := s.source.batches()
	for _, b := range all[s.mark:] {
		have := strings.Fields(podsOf(b))
		for _, n := range names {
			if !slices.Contains(have, n) {
				return fmt.Errorf("no %s in %s", n, show(b))
			}
		}
	}
	return nil
}

// draftOf is a manifest: of pods, of none (empty), or of something refused; or
// of pods and an immutable object.
func draftOf(args []string) string {
	switch strings.Join(args, " ") {
	case "nothing":
		return ""
	case "comment":
		return "# apiVersion: v1\n# kind: List\n# items: []\n---\n"
	case "list":
		return "apiVersion: v1\nkind: List\nitems: []\n"
	case "broken":
		return broken
	}
	last := args[len(args)-1]
	if last == "broken" {
		return yaml(args[:len(args)-1]...) + "---\n" + broken
	}
	if data, ok := strings.CutPrefix(last, "frozen="); ok {
		return yaml(args[:len(args)-1]...) + "---\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: frozen}\nimmutable: true\ndata: {a: " + data + "}\n"
	}
	return yaml(args...)
}

// put PATH POD... writes a file in place.
func (s *stage) put(args []string) error {
	return os.WriteFile(args[0], []byte(draftOf(args[1:])), 0o644)
}

// half PATH POD... starts to write a file and stops after the first pod, where the written
// part is a valid manifest too.
func (s *stage) half(args []string) error {
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(yaml(args[1:]...), "---\n")
	s.writers[args[0]] = &writer{f, "---\n" + rest}
	_, err = f.WriteString(first)
	return err
}

// rest PATH writes the other half and closes the file.
func (s *stage) rest(args []string) error {
	w := s.writers[args[0]]
	if _, err := w.file.WriteString(w.rest); err != nil {
		return err
	}
	return w.file.Close()
}

func (s *stage) fifo(args []string) error { return unix.Mkfifo(args[0], 0o644) }

// big PATH makes a file of more than 10 MiB.
func (s *stage) big(args []string) error {
	return os.WriteFile(args[0], []byte(yaml("big")+strings.Repeat("# fill\n", 11<<20/7)), 0o644)
}

// mode BITS PATH is chmod, sticky bit included.
func (s *stage) mode(args []string) error {
	var bits uint32
	if _, err := fmt.Sscanf(args[0], "%o", &bits); err != nil {
		return err
	}
	return unix.Chmod(args[1], bits)
}

// share PATH lets a group write that is not root's.
func (s *stage) share(args []string) error {
	info, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 { // else the group is another one already
		if err := os.Chown(args[0], 0, 1); err != nil {
			return err
		}
	}
	return os.Chmod(args[0], info.Mode()|0o020)
}

// link PATH TARGET puts a symlink into place, by a rename.
func (s *stage) link(args []string) error {
	temp := filepath.Join(filepath.Dir(args[0]), "..link_tmp")
	if err := os.Symlink(args[1], temp); err != nil {
		return err
	}
	return os.Rename(temp, args[0])
}

// damage INDEX|CONTENT cuts off the end of files in the cache.
func (s *stage) damage(args []string) error {
	files, err := filepath.Glob(filepath.Join(s.cache, "*", "*"))
	if err != nil {
		return err
	}
	hit := false
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		if (filepath.Base(f) == indexName) == (args[0] == "index") {
			hit = true
			if err := os.Truncate(f, info.Size()-1); err != nil {
				return err
			}
		}
	}
	if !hit {
		return fmt.Errorf("no %s in %s", args[0], s.cache)
	}
	return nil
}
