//go:build e2e

package e2e

import (
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/runtime/runtimetest/stack/registry"
)

const (
	always    = v1.RestartPolicyAlways
	onFailure = v1.RestartPolicyOnFailure
	never     = v1.RestartPolicyNever
)

// TestRunOnce_ExitCodes checks the exit code and stderr of podd run --runonce for different exits of
// containers.
func TestRunOnce_ExitCodes(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	oom := shell("c", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done")
	oom.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("32Mi")}
	failingInit := d.jobPod("job", never, shell("c", note("never")))
	failingInit.Spec.InitContainers = []v1.Container{shell("i", "exit 4")}
	absent := shell("c", "")
	absent.Command = []string{"/no/such/program"}
	absentCode, absentText := 128, "did not start: "
	if !d.on.CreatesWithoutProgram() {
		absentCode, absentText = 125, "cannot succeed"
	}
	tests := []struct {
		name   string
		pods   []*v1.Pod
		code   int
		stderr []string
	}{
		{"success", []*v1.Pod{d.jobPod("job", never, shell("c", "exit 0"))}, 0, []string{"podd: 1 pod, 0 failed, ", "\n  ok    job exit 0 in "}},
		{"failure", []*v1.Pod{d.jobPod("job", never, shell("c", "echo last words; exit 3"))}, 3, []string{"\n  FAIL  job/c exit 3 after ", `"last words"`}},
		{"one of two fails", []*v1.Pod{d.jobPod("a", never, shell("c", "exit 7")), d.jobPod("b", onFailure, shell("c", "sleep 0.3"))}, 7, []string{"podd: 2 pods, 1 failed, ", "\n  ok    b   exit 0"}},
		{"both fail", []*v1.Pod{d.jobPod("a", never, shell("c", "exit 7")), d.jobPod("b", never, shell("c", "exit 7"))}, 1, []string{"podd: 2 pods, 2 failed, "}},
		{"init fails", []*v1.Pod{failingInit}, 4, []string{"FAIL  job/i exit 4"}},
		{"fails at first", []*v1.Pod{d.jobPod("job", onFailure, shell("c", failFirst("retry")))}, 0, []string{"job/c: exit 1 after ", "starts again (1 of 5)", "on attempt 2"}},
		{"signal", []*v1.Pod{d.jobPod("job", never, shell("c", "sh -c 'kill -SEGV $$$$'; exit $?"))}, 139, []string{"SIGSEGV (139)"}},
		{"out of memory", []*v1.Pod{d.jobPod("job", never, oom)}, 137, []string{"OOMKilled (137) after ", ": limit 32Mi, pods.yaml:"}},
		{"no such program", []*v1.Pod{d.jobPod("job", never, absent)}, absentCode, []string{absentText, "/no/such/program"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := *d
			d.t = t
			d.runPods(test.pods...).wantExit(test.code, test.stderr...)
		})
	}
	if slices.Contains(d.notes(), "never") {
		t.Errorf("notes: got %q, want no \"never\", because the init container of this pod has failed", d.notes())
	}
}

// TestRunOnce_ExitCodesOfPodd checks that podd run --runonce exits with 124 after a timeout, and with 125
// after other errors that no container has caused.
func TestRunOnce_ExitCodesOfPodd(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	r, ref := withRegistry(d, registry.Options{})
	none := d.jobPod("job", never, withImage(r.Host()+"/team/none:1", shell("c", "")))
	invalid := d.jobPod("job", never, withImage("Not A Name", shell("c", "")))
	slow := d.jobPod("job", never, shell("c", "echo at work; sleep 3600"))
	conflict := []*v1.Pod{d.jobPod("a", always, shell("c", "")), d.jobPod("b", never, shell("c", ""))}
	for _, p := range conflict {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8123}}
	}
	bad := strings.Replace(manifestText(d, slow), "image:", "imagee:", 1)
	d.write("bad", bad)
	d.writePods("none", none)
	d.writePods("invalid", invalid)
	d.writePods("slow", slow)
	d.writePods("conflict", conflict...)
	d.write("empty", "")
	d.write("no-pods", "{apiVersion: v1, kind: List, items: []}")
	tests := []struct {
		name   string
		args   []string
		code   int
		stderr []string
	}{
		{"bad manifest", []string{"bad.yaml"}, 125, []string{"bad.yaml:", "spec.containers[0].image: required", "nothing was started"}},
		{"a valid and an invalid manifest", []string{"slow.yaml", "bad.yaml"}, 125, []string{"nothing was started"}},
		{"no file", []string{"absent.yaml"}, 125, []string{"absent.yaml: error: cannot be read"}},
		{"no pod", []string{"no-pods.yaml"}, 125, []string{"there is no pod to run"}},
		{"empty file", []string{"empty.yaml"}, 125, []string{"empty.yaml: error: contains no pods", "nothing was started"}},
		{"nothing named", nil, 125, []string{"there is no pod to run"}},
		{"one pod twice", []string{"slow.yaml", "slow.yaml"}, 125, []string{"is also defined at slow.yaml:1"}},
		{"host port of a service", []string{"conflict.yaml"}, 125, []string{"8123 is already used by default/a"}},
		{"no such image", []string{"none.yaml"}, 125, []string{"404 from " + r.Host(), "job cannot succeed"}},
		{"no image name", []string{"invalid.yaml"}, 125, []string{"not a valid image name"}},
		{"too long", []string{"--timeout", "45s", "slow.yaml"}, 124, []string{": timed out", "still running after ", ": \"at work\""}},
		{"unknown flag", []string{"--no-such-flag", "slow.yaml"}, 125, []string{"--no-such-flag"}},
		{"no directory for the report", []string{"--report", "none/x.xml", "slow.yaml"}, 125, []string{"no such file or directory; no pod was started"}},
		{"unknown report format", []string{"--report", "x.txt", "slow.yaml"}, 125, []string{".xml"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := *d
			d.t = t
			d.run(test.args...).wantExit(test.code, test.stderr...)
		})
	}
	t.Run("no runtime", func(t *testing.T) {
		d := *d
		d.t = t
		d.endpoint = d.filePath("none.sock")
		d.run("slow.yaml").wantExit(125, "the socket does not exist")
	})
	t.Run("registry that fails", func(t *testing.T) {
		d := *d
		d.t = t
		r.Inject(registry.Fault{Status: 503, Times: 1})
		d.writePods("pulled", d.jobPod("job", never, withImage(ref, shell("c", "echo pulled"))))
		run := d.run("pulled.yaml")
		run.wantExit(0)
		if run.out.String() != "pulled\n" {
			t.Errorf("stdout of the run: got %q, want %q", run.out.String(), "pulled\n")
		}
	})
}

// TestRunOnce_CrashingContainer checks that podd gives up a pod after its container has crashed six
// times, or three times if the pod has restartPolicy Always.
func TestRunOnce_CrashingContainer(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.write("config", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {KubeletCrashLoopBackOffMax: true}\ncrashLoopBackOff: {maxContainerRestartPeriod: 2s}\n")
	d.writePods("sixth", d.jobPod("job", onFailure, shell("c", note("try")+"echo no; exit 9")))
	d.run("--config", "config.yaml", "sixth.yaml").wantExit(9, "starts again (5 of 5)", `job/c crashed 6 times, last: exit 9 after `)
	if n := len(d.notes()); n != 6 {
		t.Errorf("attempts of the crashing container: got %d, want 6", n)
	}
	d.writePods("third", d.jobPod("db", always, shell("c", "exit 1")), d.jobPod("job", never, shell("c", "trap 'exit 0' TERM; sleep 3600 & wait")))
	d.run("--config", "config.yaml", "third.yaml").wantExit(125, "db/c crashed 3 times, last: exit 1")
}

// TestRunOnce_Reports checks the JUnit and JSON reports.
func TestRunOnce_Reports(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("pods", d.jobPod("good", never, shell("c", "echo fine; exit 0")), d.jobPod("bad", never, shell("c", `printf 'odd \033[31m\001 words\n'; exit 3`)))
	d.run("--report", d.filePath("r.xml"), "pods.yaml").wantExit(3)
	var suites struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name string `xml:"name,attr"`
				Out  string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(d.readFile("r.xml")), &suites); err != nil {
		t.Fatal(err)
	}
	s := suites.Suite
	if s.Tests != 2 || s.Failures != 1 || s.Cases[0].Name != "good" || s.Cases[0].Out != "fine" || s.Cases[1].Name != "bad" || !strings.Contains(s.Cases[1].Out, "odd ") {
		t.Errorf("JUnit report: got %s, want that pod good passed and pod bad failed, with their output", d.readFile("r.xml"))
	}
	d.run("--report", d.filePath("r.json"), "absent.yaml").wantExit(125)
	var report struct {
		Code    int
		Results []struct{ State, Text string }
	}
	if err := json.Unmarshal([]byte(d.readFile("r.json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Code != 125 || len(report.Results) != 1 || report.Results[0].State != "failed" {
		t.Errorf("JSON report: got %s, want code 125 and one failed result", d.readFile("r.json"))
	}
}

// TestRunOnce_ConfiguredSources checks that podd run --runonce runs the pods of --pod-manifest-path, which
// may be a directory or a file.
func TestRunOnce_ConfiguredSources(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("a", d.jobPod("a", never, shell("c", "echo a")))
	d.writePods("b", d.jobPod("b", never, shell("c", "echo b; exit 6")))
	r := d.run("--pod-manifest-path", d.manifestDir())
	r.wantExit(6, "podd: 2 pods, 1 failed")
	lines := strings.Fields(strings.ReplaceAll(r.out.String(), " | ", "="))
	slices.Sort(lines)
	if got, want := strings.Join(lines, " "), "a/c=a b/c=b"; got != want {
		t.Errorf("stdout: got %q, want %q", r.out.String(), want)
	}
	d.run("--pod-manifest-path", filepath.Join(d.manifestDir(), "b.yaml")).wantExit(6, "podd: 1 pod, 1 failed")
}
