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

// script is the state of one script. Its sources share one cache, as they do across restarts
// of podd.
type script struct {
	t       *testing.T
	cache   string
	dir     *Dir
	source  *running
	mark    int // index of the first Batch that the script command "throughout" checks
	writers map[string]*writer
}

// writer is a program that has written a part of a file.
type writer struct {
	file *os.File
	rest string
}

func TestScripts(t *testing.T) {
	commands := map[string]func(s *script, args []string) error{
		"watch": (*script).watch, "stop": (*script).stop, "accept": (*script).accept, "pods": (*script).pods, "problem": (*script).problem,
		"quiet": (*script).quiet, "complete": (*script).complete, "complete_now": (*script).completeNow, "behind": (*script).behind,
		"note": (*script).note, "throughout": (*script).throughout,
		"put": (*script).put, "half": (*script).half, "rest": (*script).rest,
		"fifo": (*script).fifo, "big": (*script).big, "mode": (*script).mode, "share": (*script).share, "damage": (*script).damage, "link": (*script).link,
	}
	params := testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){},
		Setup: func(e *testscript.Env) error {
			s := &script{t: t, cache: filepath.Join(e.WorkDir, "sources"), writers: map[string]*writer{}}
			e.Values["script"] = s
			e.Defer(func() { _ = s.stop(nil) })
			return os.Chmod(e.WorkDir, 0o755)
		},
	}
	for name, command := range commands {
		params.Cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			for i, a := range args {
				if a == "m" || strings.HasPrefix(a, "m/") { // a path of a manifest
					args[i] = ts.MkAbs(a)
				}
			}
			if err := command(ts.Value("script").(*script), args); (err != nil) != neg {
				ts.Fatalf("%s %q: %v", name, args, err)
			}
		}
	}
	testscript.Run(t, params)
}

// watch PATH [patiently] [any] stops the running source and starts a new one. A patient source keeps
// the pods of a removed file, because a script can be slower than an editor. With any, the source
// reads files with any name.
func (s *script) watch(args []string) error {
	if err := s.stop(nil); err != nil {
		return err
	}
	s.dir = NewDir(args[0], Options{NodeName: "node", CacheDir: s.cache, CheckFrequency: time.Hour, ReadsAnyName: slices.Contains(args, "any")})
	if slices.Contains(args, "patiently") {
		s.dir.removeDelay = time.Hour
	}
	s.source, s.mark = run(s.t, s.dir), 0
	return nil
}

// accept accepts the directory as empty.
func (s *script) accept([]string) error { return s.dir.AcceptEmpty(s.t.Context()) }

func (s *script) stop([]string) error {
	if s.source != nil {
		s.source.stop()
		s.source = nil
	}
	return nil
}

// pods NAME... waits until exactly these pods are desired.
func (s *script) pods(names []string) error {
	return s.await("pods", func(b manifest.Batch) bool { return podsOf(b) == strings.Join(names, " ") })
}

// problem TEXT NAME... waits until a Problem contains TEXT and exactly these pods are desired.
func (s *script) problem(args []string) error {
	return s.await("problem", func(b manifest.Batch) bool {
		return strings.Contains(problemsOf(b), args[0]) && podsOf(b) == strings.Join(args[1:], " ")
	})
}

// quiet waits until there is no Problem.
func (s *script) quiet([]string) error {
	return s.await("quiet", func(b manifest.Batch) bool { return len(b.Problems) == 0 })
}

// complete waits for a complete listing.
func (s *script) complete([]string) error {
	return s.await("complete", func(b manifest.Batch) bool { return b.IsComplete })
}

// completeNow fails if the newest Batch is not complete.
func (s *script) completeNow([]string) error {
	all, _ := s.source.batches()
	if b := all[len(all)-1]; !b.IsComplete {
		return fmt.Errorf("newest batch: got %s, want a complete batch", show(b))
	}
	return nil
}

// behind PATH REASON waits until the content in use of a file is outdated for this reason.
func (s *script) behind(args []string) error {
	return s.await("behind", func(b manifest.Batch) bool {
		return slices.ContainsFunc(b.FileStates, func(f manifest.FileState) bool {
			return f.Path == args[0] && f.OutdatedReason == args[1] && f.OutdatedSince.IsZero() == (args[1] == "")
		})
	})
}

func (s *script) await(what string, ok func(manifest.Batch) bool) error {
	if _, instead := s.source.await(ok); instead != "" {
		return fmt.Errorf("command %s: time limit reached, got %s", what, instead)
	}
	return nil
}

// note marks the Batch at which the command throughout starts.
func (s *script) note([]string) error {
	all, _ := s.source.batches()
	s.mark = len(all) - 1
	return nil
}

// throughout NAME... checks that every Batch since the script command "note" contains these pods.
func (s *script) throughout(names []string) error {
	all, _ := s.source.batches()
	for _, b := range all[s.mark:] {
		have := strings.Fields(podsOf(b))
		for _, n := range names {
			if !slices.Contains(have, n) {
				return fmt.Errorf("got a batch without pod %s: %s", n, show(b))
			}
		}
	}
	return nil
}

// newManifest returns a manifest with the given pods, and with an invalid pod or an immutable
// object if the last argument is "broken" or "frozen=DATA".
func newManifest(args []string) string {
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
func (s *script) put(args []string) error {
	return os.WriteFile(args[0], []byte(newManifest(args[1:])), 0o644)
}

// half PATH POD... writes a file up to the end of the first pod and keeps it open.
func (s *script) half(args []string) error {
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
func (s *script) rest(args []string) error {
	w := s.writers[args[0]]
	if _, err := w.file.WriteString(w.rest); err != nil {
		return err
	}
	return w.file.Close()
}

func (s *script) fifo(args []string) error { return unix.Mkfifo(args[0], 0o644) }

// big PATH writes a file of more than 10 MiB.
func (s *script) big(args []string) error {
	return os.WriteFile(args[0], []byte(yaml("big")+strings.Repeat("# fill\n", 11<<20/7)), 0o644)
}

// mode BITS PATH changes the mode of a file, including the sticky bit.
func (s *script) mode(args []string) error {
	var bits uint32
	if _, err := fmt.Sscanf(args[0], "%o", &bits); err != nil {
		return err
	}
	return unix.Chmod(args[1], bits)
}

// share PATH lets a group other than root write to a file.
func (s *script) share(args []string) error {
	info, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 { // otherwise the group is not root
		if err := os.Chown(args[0], 0, 1); err != nil {
			return err
		}
	}
	return os.Chmod(args[0], info.Mode()|0o020)
}

// link PATH TARGET replaces PATH by a symlink, with a rename.
func (s *script) link(args []string) error {
	temp := filepath.Join(filepath.Dir(args[0]), "..link_tmp")
	if err := os.Symlink(args[1], temp); err != nil {
		return err
	}
	return os.Rename(temp, args[0])
}

// damage INDEX|CONTENT cuts off the end of files in the cache.
func (s *script) damage(args []string) error {
	files, err := filepath.Glob(filepath.Join(s.cache, "*", "*"))
	if err != nil {
		return err
	}
	found := false
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		if (filepath.Base(f) == indexName) == (args[0] == "index") {
			found = true
			if err := os.Truncate(f, info.Size()-1); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("no %s in %s", args[0], s.cache)
	}
	return nil
}
