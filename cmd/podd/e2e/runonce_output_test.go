//go:build e2e

package e2e

import (
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// bigChecksum returns the checksum of the 20 MB that bigScript's script writes to one of its streams. The
// prefix of the lines is "O" for stdout and "E" for stderr.
func bigChecksum(prefix string) [sha256.Size]byte {
	h := sha256.New()
	line := prefix + strings.Repeat("x", 60) + "\n"
	_, _ = io.Copy(h, io.LimitReader(&repeated{line: line}, 20_000_000))
	return [sha256.Size]byte(h.Sum(nil))
}

// repeated is a reader of an endless text in which a line is repeated.
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

// bigScript returns a script that writes 20 MB of lines to stdout and, at the same time, 20 MB to
// stderr. Before the script exits, it waits 10 seconds, because containerd's shim discards output that
// it has not written to the log 10 seconds after the exit. On a busy host it can take that long to write
// the output.
func bigScript() string {
	many := func(prefix string) string {
		return "yes " + prefix + strings.Repeat("x", 60) + " | head -c 20000000"
	}
	return "{ " + many("O") + "; } & { " + many("E") + "; } >&2; wait; sleep 10"
}

// TestRunOnce_Output checks that podd prints every byte that a container writes, and on the stream to
// which the container has written it.
func TestRunOnce_Output(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	r := d.runPods(d.jobPod("job", never, shell("c", bigScript())))
	r.wantExit(0, "podd: 1 pod, 0 failed")
	if sha256.Sum256(r.out.Bytes()) != bigChecksum("O") {
		t.Errorf("stdout of the run: got %d bytes with another checksum, want the 20,000,000 bytes that the container wrote", r.out.Len())
	}
	// The last line of the container has no line break. Therefore podd begins a new line for its own
	// output.
	text, _, _ := strings.Cut(r.err.String(), "\npodd: ")
	if sha256.Sum256([]byte(text)) != bigChecksum("E") {
		t.Errorf("stderr of the run: got %d bytes with another checksum, want the 20,000,000 bytes that the container wrote", len(text))
	}
}

// TestRunOnce_OutputOfSeveralPods checks that podd prints each line of a container as one line, with the
// prefix "POD/CONTAINER | ".
func TestRunOnce_OutputOfSeveralPods(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	lines := "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; printf end"
	p := d.jobPod("job", never, shell("a", lines), shell("b", lines))
	p.Spec.InitContainers = []v1.Container{shell("i", "echo init")}
	r := d.runPods(p, d.jobPod("other", never, shell("c", "{ "+lines+"; } >&2")))
	r.wantExit(0)
	got := map[string][]string{}
	for line := range strings.Lines(r.out.String()) {
		name, text, _ := strings.Cut(line, " | ")
		got[name] = append(got[name], strings.TrimSuffix(text, "\n"))
	}
	for _, name := range []string{"job/a", "job/b"} {
		if n := len(got[name]); n != 3001 || got[name][2999] != "line 3000" || got[name][3000] != "end" {
			t.Errorf("stdout of container %s: got %d lines, want 3001 that end with \"line 3000\" and \"end\"", name, n)
		}
		delete(got, name)
	}
	if strings.Join(got["job/i"], ",") != "init" || len(got) != 1 {
		t.Errorf("stdout of the other containers: got %.200q, want the line \"init\" of job/i", got)
	}
	if n := strings.Count(r.err.String(), "other/c | line "); n != 3000 {
		t.Errorf("stderr of container other/c: got %d lines, want 3000", n)
	}
}

// TestRunOnce_QuotedPodName checks that podd does not shorten pod names in quoted output. In its own
// messages, podd shortens the name that a pod has during the run to the name in the manifest. But the
// summary and the report must contain the output of a container unchanged.
func TestRunOnce_QuotedPodName(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("pods", d.jobPod("job", never, shell("a", "echo first; hostname; exit 3"), shell("b", "exit 0")))
	r := d.run("--report", d.filePath("r.json"), "pods.yaml")
	var name string
	for line := range strings.Lines(r.out.String()) {
		if text, ok := strings.CutPrefix(line, "job/a | job-"); ok {
			name = "job-" + strings.TrimSuffix(text, "\n")
		}
	}
	if name == "" {
		t.Fatalf("stdout of the run: got %q, want the hostname of the pod in it", r.out.String())
	}
	r.wantExit(3, "FAIL  job/a exit 3 after ", ": \""+name+"\"\n", "| "+name+"\n")
	if report := d.readFile("r.json"); !strings.Contains(report, `: \"`+name+`\""`) {
		t.Errorf("JSON report: got %s, want the pod name %q in it", report, name)
	}
}

// TestRunOnce_StdinAndVariables checks a manifest from stdin, and flags that add or override environment
// variables of its containers. podd must not print the values of the variables.
func TestRunOnce_StdinAndVariables(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	p := d.jobPod("job", never, shell("c", `echo "$A,$B,$C,$D"; exit 3`))
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "manifest"}, {Name: "D", Value: "$(B)d"}}
	d.write("env", "# comment\nA=file\nB=of file\n")
	r := d.startRun(strings.NewReader(manifestText(d, p)), "-e", "A=$(B) secret", "-e", "C=x=y", "--env-file", "env.yaml", "-")
	r.wantExit(3)
	if want := "$(B) secret,of file,x=y,of filed\n"; r.out.String() != want {
		t.Errorf("stdout of the run: got %q, want %q", r.out.String(), want)
	}
	for line := range strings.Lines(r.err.String()) {
		if !strings.Contains(line, "FAIL") && strings.Contains(line, "secret") {
			t.Errorf("stderr of the run: got the line %q, want no value of a variable outside the quoted output of the container", line)
		}
	}
}
