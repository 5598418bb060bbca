package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podd/manifest"
	"podd/runtime"
	"podd/runtime/runtimetest/golden"
)

// TestTranscripts replays testdata/plan/*.txt. A file consists of blocks, separated by empty
// lines: a command, its input in the following lines, a line ----, and the decision that
// follows. A line that begins with # is a comment. The commands:
//
//	pod NAME              defines a pod by the manifest in the input
//	written NAME          the same for a pod that was created through the API
//	apply NAME            makes the pod the desired one; remove: no pod is desired;
//	                      lose: no pod is desired, but not all sources were read
//	effect ok [SUBJECT]   the first action in progress with that subject succeeds;
//	                      fail SUBJECT TEXT: it fails; lost SUBJECT: it succeeds and
//	                      its result is lost, or the probe could not be made
//	settle [PATIENCE]     all actions succeed, until no action is left and no wait ends
//	                      within PATIENCE
//	observe               the actual state is observed; the following commands, which
//	                      change it, are observed at once unless the last word is
//	                      "unseen"
//	exit C CODE [REASON]  container C exits; unknown C, created C: it gets that state;
//	                      drop C: the runtime loses its record
//	sandbox dies|gone     the sandbox stops or is removed; doubled: a second one exists
//	foreign UID           a foreign sandbox is created; foreign ends: it is removed
//	volumes TEXT          volumes fail with TEXT; "ok": they succeed
//	health C KIND TEXT    attempts of that probe fail with TEXT; "ok": they succeed
//	objects NAME WORD     objects of a pod: missing TEXT, soon TEXT, volume TEXT, refused TEXT,
//	                      there, or hold CONTENT
//	image NAME TEXT       pulls of the image fail with TEXT; "ok": they succeed
//	node WORD             up, down, unready, ready, nonetwork, network, adopt;
//	                      dead EXTRA MINAGE: sets DeadContainerPolicy;
//	                      leaves GRACE: the node shuts down and the pod is stopped now;
//	                      stays: the shutdown is canceled
//	verdict ANSWER TEXT   admit, wait or reject
//	restart C             a restart of the container is requested
//	add C [TARGET]        an ephemeral container is added
//	delete GRACE          the pod is deleted with that grace period
//	evict GRACE           the node evicts the pod with that grace period, also if it is
//	                      being deleted
//	advance 10s           time passes
//	messages PATH         containers write termination messages to PATH
//	term CODE             exit code of stopped containers
//	podd restarts         only the runtime, the disk and the journal keep their state
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("../../testdata/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts in testdata/plan: got none (error %v), want at least one", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, file, replayTranscript(t, string(text)))
		})
	}
}

// replayTranscript returns the text with the result of each command.
func replayTranscript(t *testing.T, text string) string {
	s := &stage{world: newWorld(), pods: map[string]*manifest.Pod{}}
	var out strings.Builder
	for i, block := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		command, _, _ := strings.Cut(block+"\n", "----\n")
		lines := slices.DeleteFunc(strings.Split(strings.TrimRight(command, "\n"), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(strings.TrimRight(command, "\n") + "\n")
		if len(lines) == 0 {
			continue
		}
		before := s.in.Now
		got, err := s.command(strings.Fields(lines[0]), strings.Join(lines[1:], "\n"))
		if err != nil {
			t.Fatalf("%s: %v", lines[0], err)
		}
		if got != "" {
			out.WriteString("----\n" + got)
		}
		if lasted := s.in.Now.Sub(before); lasted > 0 && lines[0] != "advance" && strings.HasPrefix(lines[0], "settle") {
			fmt.Fprintf(&out, "it took %s\n", lasted)
		}
	}
	return out.String()
}

// A stage is a world with the pods of its transcript.
type stage struct {
	*world
	pods map[string]*manifest.Pod
}

func (s *stage) command(words []string, input string) (string, error) {
	name, args := words[0], words[1:]
	if name == "pod" || name == "written" {
		p, err := decodePod(input, name == "written")
		s.pods[args[0]] = p
		return "", err
	}
	unseen := len(args) > 0 && args[len(args)-1] == "unseen"
	if unseen {
		args = args[:len(args)-1]
	}
	done, ok := commands[name]
	if !ok {
		return "", fmt.Errorf("unknown command")
	}
	if err := done(s, args); err != nil {
		return "", err
	}
	switch {
	case name == "settle":
		return s.settled(args)
	case unseen:
		return "", nil
	case observedAtOnce[name]:
		s.observe()
	}
	return s.show(s.decide()), nil
}

var observedAtOnce = map[string]bool{"exit": true, "unknown": true, "created": true, "drop": true, "sandbox": true, "foreign": true, "observe": true}

var commands = map[string]func(*stage, []string) error{
	"apply":    func(s *stage, a []string) error { s.order(s.pods[a[0]]); s.in.SourcesRead = true; return nil },
	"remove":   func(s *stage, _ []string) error { s.order(nil); s.in.SourcesRead = true; return nil },
	"lose":     func(s *stage, _ []string) error { s.order(nil); s.in.SourcesRead = false; return nil },
	"observe":  func(*stage, []string) error { return nil },
	"settle":   func(*stage, []string) error { return nil },
	"effect":   (*stage).effect,
	"exit":     (*stage).exits,
	"unknown":  func(s *stage, a []string) error { return s.change(a[0], runtime.Unknown) },
	"created":  func(s *stage, a []string) error { return s.change(a[0], runtime.Created) },
	"drop":     (*stage).drop,
	"sandbox":  (*stage).sandbox,
	"foreign":  (*stage).foreign,
	"image":    (*stage).image,
	"health":   (*stage).health,
	"volumes":  (*stage).volume,
	"objects":  (*stage).object,
	"node":     (*stage).node,
	"verdict":  (*stage).verdict,
	"restart":  (*stage).restart,
	"add":      func(s *stage, a []string) error { s.add(a[0], append(a, "")[1]); return nil },
	"delete":   (*stage).deletes,
	"evict":    (*stage).evict,
	"advance":  (*stage).advance,
	"messages": func(s *stage, a []string) error { s.messages = a[0]; return nil },
	"term":     func(s *stage, a []string) error { s.termCode = code(a[0]); return nil },
	"podd":     func(s *stage, _ []string) error { s.poddRestarts(); return nil },
}

func (s *stage) effect(args []string) error {
	subject := ""
	if len(args) > 1 {
		subject = args[1]
	}
	for _, flight := range s.flights() {
		if !strings.HasPrefix(flight, subject) {
			continue
		}
		switch args[0] {
		case "ok":
			s.complete(flight, nil)
		case "lost":
			s.complete(flight, errLost)
		default:
			s.complete(flight, errors.New(strings.Join(args[2:], " ")))
		}
		return nil
	}
	return fmt.Errorf("no action with subject %q is in progress, only %v", subject, s.flights())
}

func (s *stage) advance(args []string) error {
	d, err := time.ParseDuration(args[0])
	s.in.Now = s.in.Now.Add(d)
	return err
}

func (s *stage) restart(args []string) error {
	for i := range s.in.Observed {
		for _, c := range s.in.Observed[i].Containers {
			if c.Name == args[0] && c.State == runtime.Running {
				s.container(c.Name, func(h *ContainerHistory) { h.RestartRequestedID = c.ID })
			}
		}
	}
	return nil
}

func (s *stage) settled(args []string) (string, error) {
	patience := time.Duration(0)
	if len(args) > 0 {
		var err error
		if patience, err = time.ParseDuration(args[0]); err != nil {
			return "", err
		}
	}
	var out strings.Builder
	last, quiet := s.settle(patience, func(d Decision) { out.WriteString(recorded(d)) }, func(a Action) { out.WriteString("did " + a.String() + "\n") })
	if !quiet {
		return out.String(), errors.New("it does not settle")
	}
	return out.String() + s.show(last), nil
}

// show returns a decision with the fields that its String omits.
func (s *stage) show(d Decision) string {
	text := d.String() + recorded(d)
	if !d.WakeAt.IsZero() {
		text += fmt.Sprintf("  wake in %s\n", d.WakeAt.Sub(s.in.Now))
	}
	if !d.ProbeAt.IsZero() {
		text += fmt.Sprintf("  probe in %s\n", d.ProbeAt.Sub(s.in.Now).Round(time.Millisecond))
	}
	return text
}

// recorded returns the facts that a decision records.
func recorded(d Decision) (text string) {
	if d.Stopping != nil {
		text += "  record that it is being stopped\n"
	}
	if f := d.Finished; f != nil {
		text += fmt.Sprintf("  record that it has finished, failed %v%s\n", f.Failed, inParentheses(f.Message))
	}
	return text
}
