//go:build e2e

package e2e

import (
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// big returns the checksum of the 20 MB of lines that writeBig writes with a prefix.
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

// writeBig returns a script that writes 20 MB of lines to both streams at once. It then waits,
// because containerd's shim loses output that it still holds 10 s after a container has exited,
// which happens if the disk with the log is as busy as these tests make it.
func writeBig() string {
	many := func(prefix string) string {
		return "yes " + prefix + strings.Repeat("x", 60) + " | head -c 20000000"
	}
	return "{ " + many("O") + "; } & { " + many("E") + "; } >&2; wait; sleep 10"
}

// TestOnceOutput checks that every byte that a container writes is printed on the right stream.
func TestOnceOutput(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	r := d.runPods(d.job("job", never, shell("c", writeBig())))
	r.wantExit(0, "podd: 1 pod, 0 failed")
	if sha256.Sum256(r.out.Bytes()) != big("O") {
		t.Errorf("stdout: got %d bytes, want the bytes that were written", r.out.Len())
	}
	// The last line of the container was not terminated; podd's own output starts a new line.
	text, _, _ := strings.Cut(r.err.String(), "\npodd: ")
	if sha256.Sum256([]byte(text)) != big("E") {
		t.Errorf("stderr: got %d bytes, want the bytes that were written", len(text))
	}
}

// TestOnceOutputOfSeveral checks that each line of each container is printed whole, after the
// container's name.
func TestOnceOutputOfSeveral(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	lines := "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; printf end"
	p := d.job("job", never, shell("a", lines), shell("b", lines))
	p.Spec.InitContainers = []v1.Container{shell("i", "echo init")}
	r := d.runPods(p, d.job("other", never, shell("c", "{ "+lines+"; } >&2")))
	r.wantExit(0)
	got := map[string][]string{}
	for line := range strings.Lines(r.out.String()) {
		name, text, _ := strings.Cut(line, " | ")
		got[name] = append(got[name], strings.TrimSuffix(text, "\n"))
	}
	for _, name := range []string{"job/a", "job/b"} {
		if n := len(got[name]); n != 3001 || got[name][2999] != "line 3000" || got[name][3000] != "end" {
			t.Errorf("%s: got %d lines, want 3001 in order", name, n)
		}
		delete(got, name)
	}
	if strings.Join(got["job/i"], ",") != "init" || len(got) != 1 {
		t.Errorf("got the other lines %.200q, want init", got)
	}
	if n := strings.Count(r.err.String(), "other/c | line "); n != 3000 {
		t.Errorf("other/c: got %d lines on stderr, want 3000", n)
	}
}

// TestOnceStdinAndEnv checks a manifest from stdin and overrides of its variables, and that
// podd does not print their values.
func TestOnceStdinAndEnv(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	p := d.job("job", never, shell("c", `echo "$A,$B,$C,$D"; exit 3`))
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "manifest"}, {Name: "D", Value: "$(B)d"}}
	d.write("env", "# comment\nA=file\nB=of file\n")
	r := d.startRun(strings.NewReader(text(d, p)), "-e", "A=$(B) secret", "-e", "C=x=y", "--env-file", "env.yaml", "-")
	r.wantExit(3)
	if want := "$(B) secret,of file,x=y,of filed\n"; r.out.String() != want {
		t.Errorf("stdout: got %q, want %q", r.out.String(), want)
	}
	for line := range strings.Lines(r.err.String()) {
		if !strings.Contains(line, "FAIL") && strings.Contains(line, "secret") {
			t.Errorf("stderr contains the value of a variable: %q", line)
		}
	}
}
