//go:build e2e

package e2e

import (
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// big is 20 MB of numbered lines, as the scripts below make it.
func big(prefix string) [sha256.Size]byte {
	h := sha256.New()
	line := prefix + strings.Repeat("x", 60) + "\n"
	_, _ = io.Copy(h, io.LimitReader(&repeated{line: line}, 20_000_000))
	return [sha256.Size]byte(h.Sum(nil))
}

type repeated struct {
	line string
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r.line[(r.at+i)%len(r.line)]
	}
	r.at += len(b)
	return len(b), nil
}

// writeBig writes 20 MB of lines to both streams at once. It lingers: what
// containerd's shim holds 10 s after a container has ended, because the disk with
// the log is busy, is lost, and this suite keeps it busy.
func writeBig() string {
	many := func(prefix string) string {
		return "yes " + prefix + strings.Repeat("x", 60) + " | head -c 20000000"
	}
	return "{ " + many("O") + "; } & { " + many("E") + "; } >&2; wait; sleep 10"
}

// TestOnceOutput: every byte of a container arrives on its stream.
func TestOnceOutput(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	r := d.runPods(d.job("job", never, shell("c", writeBig())))
	r.ends(0, "podd: 1 pod, 0 failed")
	if sha256.Sum256(r.out.Bytes()) != big("O") {
		t.Errorf("stdout has %d bytes, and others than were written", r.out.Len())
	}
	// The last line had no end: podd's own begins another.
	text, _, _ := strings.Cut(r.err.String(), "\npodd: ")
	if sha256.Sum256([]byte(text)) != big("E") {
		t.Errorf("stderr has %d bytes, and others than were written", len(text))
	}
}

// TestOnceOutputOfSeveral: each line of each container, whole, behind its name.
func TestOnceOutputOfSeveral(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	lines := "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; printf end"
	p := d.job("job", never, shell("a", lines), shell("b", lines))
	p.Spec.InitContainers = []v1.Container{shell("i", "echo init")}
	r := d.runPods(p, d.job("other", never, shell("c", "{ "+lines+"; } >&2")))
	r.ends(0)
	got := map[string][]string{}
	for line := range strings.Lines(r.out.String()) {
		name, text, _ := strings.Cut(line, " | ")
		got[name] = append(got[name], strings.TrimSuffix(text, "\n"))
	}
	for _, name := range []string{"job/a", "job/b"} {
		if n := len(got[name]); n != 3001 || got[name][2999] != "line 3000" || got[name][3000] != "end" {
			t.Errorf("%s: %d lines", name, n)
		}
		delete(got, name)
	}
	if strings.Join(got["job/i"], ",") != "init" || len(got) != 1 {
		t.Errorf("others wrote %.200q", got)
	}
	if n := strings.Count(r.err.String(), "other/c | line "); n != 3000 {
		t.Errorf("other/c: %d lines on stderr", n)
	}
}

// TestOnceStdinAndEnv: a manifest from stdin, variables over it, and no value of
// them in what podd says.
func TestOnceStdinAndEnv(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	p := d.job("job", never, shell("c", `echo "$A,$B,$C,$D"; exit 3`))
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "manifest"}, {Name: "D", Value: "$(B)d"}}
	d.write("env", "# comment\nA=file\nB=of file\n")
	r := d.beginRun(strings.NewReader(text(d, p)), "-e", "A=$(B) secret", "-e", "C=x=y", "--env-file", "env.yaml", "-")
	r.ends(3)
	if want := "$(B) secret,of file,x=y,of filed\n"; r.out.String() != want {
		t.Errorf("stdout %q, want %q", r.out.String(), want)
	}
	for line := range strings.Lines(r.err.String()) {
		if !strings.Contains(line, "FAIL") && strings.Contains(line, "secret") {
			t.Errorf("stderr tells a value: %q", line)
		}
	}
}
